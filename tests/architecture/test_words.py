"""One word has one meaning."""

from .measure import ambiguous, shared_names

SHARED = 12
"""Class names that several parts use today. The number may only fall, to five at most."""


def test_no_class_shares_its_name_with_another_one_of_its_ring() -> None:
    """Whoever reads a name in one ring or adapter knows which class is meant."""
    assert ambiguous() == []


def test_a_class_name_means_one_thing_in_all_parts() -> None:
    """No more names than today stand for classes of several parts."""
    shared = shared_names()
    assert len(shared) <= SHARED, shared
