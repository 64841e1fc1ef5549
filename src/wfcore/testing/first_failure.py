"""
The report of a failure by comparisons and walks: the first failure at once, then a shrunk one
within a time limit.

Shrinking runs the code under test hundreds of times. Hypothesis allows five minutes for shrinking,
which is a long wait; half a minute finds nearly the same script.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any
from unittest import TestCase, mock

from hypothesis.errors import HypothesisException
from hypothesis.internal.conjecture import engine
from hypothesis.stateful import RuleBasedStateMachine

SHORTENING_S = 30
_LIMIT = "MAX_SHRINKING_SECONDS"
_TOLD: set[type] = set()


def tell_first(machine: type) -> None:
    """Print the failure that is being raised, unless a failure of *machine* was printed before."""
    error = sys.exc_info()[1]
    if not isinstance(error, Exception) or isinstance(error, HypothesisException):
        return
    if machine not in _TOLD:
        _TOLD.add(machine)
        said = f"{machine.__name__} fails: {type(error).__name__}: {error}"
        print(f"{said}\nshrinking it for {SHORTENING_S} s at most")


@contextmanager
def bounded() -> Iterator[None]:
    """Limit shrinking to half a minute within the block."""
    if not hasattr(engine, _LIMIT):  # another Hypothesis: it stops by itself, only later
        yield
        return
    with mock.patch.object(engine, _LIMIT, SHORTENING_S):
        yield


class BoundedTestCase:
    """`RuleBasedStateMachine.TestCase` with shrinking limited to half a minute."""

    def __get__(self, machine: Any, owner: type[RuleBasedStateMachine]) -> Any:
        return _case(owner)


@cache
def _case(owner: type[RuleBasedStateMachine]) -> type[TestCase]:
    given: Any = vars(RuleBasedStateMachine)["TestCase"].__get__(None, owner)

    class Case(given):  # type: ignore[misc]
        """The test of one machine."""

        def runTest(self) -> None:
            _TOLD.discard(owner)
            with bounded():
                super().runTest()

        runTest.is_hypothesis_test = True  # type: ignore[attr-defined]

    Case.__name__ = Case.__qualname__ = f"{owner.__name__}.TestCase"
    return Case
