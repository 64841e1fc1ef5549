"""One word has one meaning."""

from architecture.measure import ambiguous


def test_no_class_shares_its_name_with_another_one_of_its_ring() -> None:
    """Whoever reads a name in one ring or adapter knows which class is meant."""
    assert ambiguous() == []
