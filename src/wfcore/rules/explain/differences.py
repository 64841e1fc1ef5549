"""What is different between two executions: inputs, steps, results. XP-4."""

from collections.abc import Iterator, Mapping

from attrs import frozen

from wfcore.model.execution import Execution, StepResult
from wfcore.model.json import Json

_ABSENT: Json = object()  # type: ignore[assignment]


@frozen
class Difference:
    """
    What both say under one name; None: nothing. `fields`: what is not the same, of `status`,
    `output`, `error`, `attempts`; of an input `value`.
    """

    name: str
    one: StepResult | None
    other: StepResult | None
    fields: frozenset[str]


_COMPARED = ("status", "output", "error", "attempts")


def step_differences(one: Execution, other: Execution) -> Iterator[Difference]:
    """Each step of either, in the order of the one, then what only the other has. XP-4."""
    mine, theirs = one.step_results, other.step_results
    for key in dict.fromkeys((*mine, *theirs)):
        first, second = mine.get(key), theirs.get(key)
        yield Difference(key, first, second, _fields(first, second))


def _fields(one: StepResult | None, other: StepResult | None) -> frozenset[str]:
    if one is None or other is None:
        return frozenset({"status"})
    return frozenset(name for name in _COMPARED if getattr(one, name) != getattr(other, name))


def changed(one: Mapping[str, Json], other: Mapping[str, Json]) -> tuple[str, ...]:
    """The names under which the two do not say the same."""
    names = dict.fromkeys((*one, *other))
    return tuple(n for n in names if one.get(n, _ABSENT) != other.get(n, _ABSENT))
