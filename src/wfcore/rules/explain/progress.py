"""The progress of each step of a definition: a row for each, over all rounds of loops. XP-3."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from attrs import frozen

from wfcore.model.execution import Execution, StepResult, StepStatus
from wfcore.model.workflow import Definition, LoopStep, Step, lists_of
from wfcore.rules.definition.flow import kind_of
from wfcore.rules.execution.scope import name_of
from wfcore.rules.explain.timeline import Axis, EarlierAttempt
from wfcore.time import DurationMs, EpochMs

_TELLING = (
    StepStatus.FAILED,
    StepStatus.INTERRUPTED,
    StepStatus.REJECTED,
    StepStatus.AWAITING_APPROVAL,
    StepStatus.RUNNING,
    StepStatus.CANCELLED,
    StepStatus.COMPLETED,
    StepStatus.SKIPPED,
)
"""
The states that count most: the first of these that occurs in any round is the state of the step.
"""


@frozen
class Attempt:
    """
    One attempt of a step; its waiting for the next attempt does not count. `until` None: it runs,
    or waits.
    """

    since: EpochMs
    until: EpochMs | None
    status: StepStatus
    error: str | None = None


@frozen
class Bar:
    """An attempt, and its place on the axis: from `x`, `width` wide."""

    x: float
    width: float
    attempt: Attempt

    @property
    def status(self) -> StepStatus:
        """The status of the attempt."""
        return self.attempt.status


@frozen
class ProgressRow:
    """
    One step of the definition. `depth`: how many steps are around it; `loops`: the loops among
    these steps, the outermost first. `status` None: not begun. `results`: by key, one for each
    round, in order of the rounds. `took`: the duration of a single result that has ended. `begun`
    and `rounds`: for a running loop outside of other loops, the number of rounds that have begun,
    and of all rounds.
    """

    step: Step
    kind: str
    depth: int
    loops: tuple[str, ...]
    status: StepStatus | None
    results: tuple[tuple[str, StepResult], ...]
    counts: Mapping[StepStatus, int]
    bars: tuple[Bar, ...]
    took: DurationMs | None
    begun: int = 0
    rounds: int | None = None


MOST_BARS = 50


Attempts = Mapping[str, Sequence[EarlierAttempt]]


def rows(
    run: Execution, definition: Definition, axis: Axis, now: EpochMs, earlier: Attempts
) -> tuple[ProgressRow, ...]:
    """
    The rows of the steps, in the order of the text. *earlier*: the known attempts before a step's
    last attempt, by the key of the step. XP-3, XP-5.
    """
    by_name: dict[str, list[tuple[str, StepResult]]] = defaultdict(list)
    for key, result in run.step_results.items():
        by_name[name_of(key)].append((key, result))
    bars = _Bars(axis, now, earlier)
    return tuple(
        _row(run, step, depth, loops, by_name[step.name], bars)
        for step, depth, loops in _walk((*definition.steps, *definition.on_failure), 0, ())
    )


def _walk(
    steps: Sequence[Step], depth: int, loops: tuple[str, ...]
) -> Iterator[tuple[Step, int, tuple[str, ...]]]:
    for step in steps:
        yield step, depth, loops
        around = (*loops, step.name) if isinstance(step, LoopStep) else loops
        for _, inside in lists_of(step):
            yield from _walk(inside, depth + 1, around)


def _row(
    run: Execution,
    step: Step,
    depth: int,
    loops: tuple[str, ...],
    results: list[tuple[str, StepResult]],
    drawn: "_Bars",
) -> ProgressRow:
    results.sort(key=lambda one: rounds_of(one[0]))
    counts: dict[StepStatus, int] = defaultdict(int)
    for _, result in results:
        counts[result.status] += 1
    status = next((one for one in _TELLING if one in counts), None)
    took = results[0][1].duration_ms if len(results) == 1 and not loops else None
    bars = tuple(bar for one in results[:MOST_BARS] for bar in drawn.of(*one))[:MOST_BARS]
    rounds = _rounds_now(results[0][1]) if len(results) == 1 and not loops else None
    begun = 0 if rounds is None else begun_rounds(run, step.name)
    kind, found = kind_of(step), tuple(results)
    return ProgressRow(step, kind, depth, loops, status, found, counts, bars, took, begun, rounds)


def _rounds_now(result: StepResult) -> int | None:
    """The number of rounds of a running loop."""
    return result.rounds if result.status is StepStatus.RUNNING else None


def begun_rounds(run: Execution, loop: str) -> int:
    """The number of rounds of the loop with this key that have begun."""
    inside = f"{loop}."
    keys = (key.removeprefix(inside) for key in run.step_results if key.startswith(inside))
    return len({key.partition(".")[0] for key in keys})


def running_loop(run: Execution) -> tuple[int, int] | None:
    """The first running loop: how many rounds have begun, and how many it has."""
    for key, result in run.step_results.items():
        if (rounds := _rounds_now(result)) is not None:
            return begun_rounds(run, key), rounds
    return None


@frozen
class _Bars:
    """The bars of each result, one for each attempt."""

    axis: Axis
    now: EpochMs
    earlier: Attempts

    def of(self, key: str, result: StepResult) -> Iterator[Bar]:
        for one in attempts_of(key, result, self.earlier):
            x = self.axis.place(one.since)
            yield Bar(x, self.axis.place(one.until or self.now) - x, one)


def attempts_of(key: str, result: StepResult, earlier: Attempts) -> Iterator[Attempt]:
    """
    The attempts of the step with *key*, the first one first; a single one over the whole time if
    *earlier* has not all of them.
    """
    waits, last = result.retry_at is not None, result.attempt_at or result.started_at
    before = [
        one for one in earlier.get(key, ())
        if one.since >= result.started_at and (one.since < last or waits)
    ]  # fmt: skip
    if len(before) != result.tries - (not waits):
        before, waits, last = [], False, result.started_at
    yield from (Attempt(one.since, one.until, one.status, one.error) for one in before)
    if not waits:
        yield Attempt(last, result.completed_at, result.status, result.error)


def rounds_of(key: str) -> tuple[int, ...]:
    """The rounds in the key of a step: `outer.2.inner.0.step` is in (2, 0)."""
    return tuple(int(part) for part in key.split(".")[1:-1:2])


def key_of(name: str, loops: Sequence[str], rounds: Sequence[int]) -> str:
    """The key of the step *name* in these rounds of the loops around it."""
    around = (f"{loop}.{round}." for loop, round in zip(loops, rounds, strict=True))
    return "".join((*around, name))
