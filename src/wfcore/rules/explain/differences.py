"""The differences between two executions: inputs, steps, results. XP-4."""

from collections.abc import Iterator, Mapping

from attrs import frozen

from wfcore.model.execution import Execution, StepResult
from wfcore.model.json import Json

_ABSENT: Json = object()  # type: ignore[assignment]


@frozen
class Difference:
    """
    The two values under one name; None: absent. `fields`: the fields that differ, of `status`,
    `output`, `error`, `attempts`; for an input `value`.
    """

    name: str
    one: StepResult | None
    other: StepResult | None
    fields: frozenset[str]


_COMPARED = ("status", "output", "error", "attempts")


def step_differences(one: Execution, other: Execution) -> Iterator[Difference]:
    """
    The steps of both executions: the steps of *one* in order, then the steps that only *other* has.
    XP-4.
    """
    mine, theirs = one.step_results, other.step_results
    for key in dict.fromkeys((*mine, *theirs)):
        first, second = mine.get(key), theirs.get(key)
        yield Difference(key, first, second, _fields(first, second))


def _fields(one: StepResult | None, other: StepResult | None) -> frozenset[str]:
    if one is None or other is None:
        return frozenset({"status"})
    return frozenset(name for name in _COMPARED if getattr(one, name) != getattr(other, name))


def changed(one: Mapping[str, Json], other: Mapping[str, Json]) -> tuple[str, ...]:
    """The names whose values differ."""
    names = dict.fromkeys((*one, *other))
    return tuple(n for n in names if one.get(n, _ABSENT) != other.get(n, _ABSENT))
