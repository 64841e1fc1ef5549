"""One word has one meaning."""

from .measure import ambiguous, shared_names

SHARED = 5
"""The most class names that several parts may use."""


def test_no_class_shares_its_name_with_another_one_of_its_ring() -> None:
    """Whoever reads a name in one ring or adapter knows which class is meant."""
    assert ambiguous() == []


def test_a_class_name_means_one_thing_in_all_parts() -> None:
    """At most five names stand for classes of several parts."""
    shared = shared_names()
    assert len(shared) <= SHARED, shared
