"""Each rule of docs/rules.md is cited where it lives and where it is tested, and no other."""

import pytest

from wfdocs.rules import places, rules

LISTED = [rule.id for rule in rules()]


def test_no_rule_is_listed_twice():
    """An id stands for one sentence."""
    assert len(set(LISTED)) == len(LISTED) > 100


@pytest.mark.parametrize("folder", ["src", "tests"])
def test_every_rule_is_cited(folder: str):
    """A rule without code or without a test is a wish."""
    missing = set(LISTED) - places(folder).keys()
    assert not missing, f"not cited in {folder}: {', '.join(sorted(missing))}"


@pytest.mark.parametrize("folder", ["src", "tests"])
def test_every_cited_rule_is_listed(folder: str):
    """A citation leads to a sentence."""
    unknown = {id: str(at[0]) for id, at in places(folder).items() if id not in LISTED}
    assert not unknown
