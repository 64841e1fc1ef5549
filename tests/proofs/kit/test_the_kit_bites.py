"""The shipped suites bite: each planted bug breaks the promise that is there to find it."""

import pytest

from tests.proofs.kit.bugs import rules, runtime, stores
from tests.proofs.kit.bugs.catching import CAUGHT, Bug, impatient

BUGS = (*rules.BUGS, *stores.BUGS, *runtime.BUGS)


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
def test_a_planted_bug_is_found(bug: Bug):
    """With the bug the promise is broken."""
    with impatient(), bug.plant(), pytest.raises(CAUGHT):
        bug.catcher()


CATCHERS = {
    bug.catcher: pytest.param(bug.catcher, id=bug.name)
    for bug in BUGS
    if "walk" not in bug.catcher.__qualname__
}
"""Once each; walks and comparisons without bugs are tests of their own."""


@pytest.mark.parametrize("catcher", CATCHERS.values())
def test_without_the_bug_the_promise_holds(catcher):
    """What found the bug finds nothing where there is none."""
    catcher()


def test_bugs_are_planted_everywhere():
    """Over fifty, in rules, stores and runtime."""
    assert len(BUGS) > 50
    assert min(map(len, (rules.BUGS, stores.BUGS, runtime.BUGS))) >= 10
