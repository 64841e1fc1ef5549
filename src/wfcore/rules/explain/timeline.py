"""
When the steps of an execution ran, on an axis from which long waiting is cut out. XP-3.

Work is what a process, a model or another execution does. Where nothing works (an approval is open,
a delay runs, the machine was off), the axis keeps a short piece of fixed width, and says how long
the wait was: a step of 84 ms stays visible beside an approval of two days.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

from attrs import frozen

from wfcore.model.event import Event, EventKind
from wfcore.model.execution import Awaits, Execution, StepResult, StepStatus
from wfcore.model.workflow import (
    ApprovalStep,
    Definition,
    DelayStep,
    LoopStep,
    MailStep,
    ParallelStep,
    SwitchStep,
)
from wfcore.rules.execution.scope import name_of
from wfcore.time import DAY, HOUR, MINUTE, SECOND, DurationMs, EpochMs

LONG, LEAST = 0.2, 10 * SECOND
"""
A wait is cut if it is longer than the part `LONG` of all the work, and longer than `LEAST` ms.
"""
CUT_WIDTH = 0.06
"""The width of a cut, in parts of the axis; less if there are many cuts."""
MOST_CUTS = 8

Interval = tuple[EpochMs, EpochMs]


@frozen
class Cut:
    """Waiting of `length` ms that takes only `width` of the axis from `x`."""

    x: float
    width: float
    length: DurationMs


@frozen
class Axis:
    """Places from 0 to 1; between two `points` (instant, place) time runs evenly."""

    points: tuple[tuple[EpochMs, float], ...]
    cuts: tuple[Cut, ...] = ()

    def place(self, at: EpochMs) -> float:
        """The place of an instant; an instant outside of the axis is at its edge."""
        before = self.points[0]
        for point in self.points[1:]:
            if at <= point[0]:
                span = point[0] - before[0]
                part = max(at - before[0], 0) / span if span else 1.0
                return before[1] + part * (point[1] - before[1])
            before = point
        return before[1]


MOST_TICKS = 5
"""The most marks on an axis, the beginning included."""
_APART = 0.22
"""The least distance between two marks, in parts of the axis, so that their texts do not touch."""
_STEPS = (
    *(factor * power for power in (1, 10, 100) for factor in (1, 2, 5)),
    *(seconds * SECOND for seconds in (1, 2, 5, 10, 15, 30)),
    *(minutes * MINUTE for minutes in (1, 2, 5, 10, 15, 30)),
    *(hours * HOUR for hours in (1, 2, 3, 6, 12)),
)
"""The round lengths between two marks, in ms; beyond the last, whole days."""


def ticks(axis: Axis) -> tuple[tuple[float, DurationMs], ...]:
    """
    Marks of *axis* at round times since the beginning, each with its place and that time: the
    beginning first, at most `MOST_TICKS`. Within a cut, and too near to the mark before, there is
    no mark.
    """
    begin, worked = axis.points[0][0], axis.points[-1][0] - axis.points[0][0]
    worked -= sum(cut.length for cut in axis.cuts)
    enough = (step for step in _STEPS if step * (MOST_TICKS - 1) >= worked)
    step = next(enough, -(-worked // (DAY * (MOST_TICKS - 1))) * DAY)
    found = [(0.0, DurationMs(0))]
    for since, until in pairwise(axis.points):
        if any(cut.x == since[1] for cut in axis.cuts):
            continue
        first = -(-(since[0] - begin) // step) * step
        for length in range(first, until[0] - begin + 1, step):
            place = axis.place(EpochMs(begin + length))
            if place - found[-1][0] >= _APART:
                found.append((place, DurationMs(length)))
    return tuple(found[:MOST_TICKS])


@frozen
class EarlierAttempt:
    """
    An attempt of a step before the step's last attempt: it failed with `error`, or its worker died.
    """

    since: EpochMs
    until: EpochMs
    status: StepStatus
    error: str | None = None


def earlier_attempts(events: Iterable[Event]) -> Mapping[str, Sequence[EarlierAttempt]]:
    """
    The attempts of each step before its last attempt, by the step's key, as far as *events* show
    them. XP-5.
    """
    begun, found = dict[str, EpochMs](), defaultdict[str, list[EarlierAttempt]](list)
    for event in events:
        key = str(event.data.get("step"))
        match event.kind:
            case EventKind.STEP_STARTED:
                begun[key] = event.at
            case EventKind.STEP_RETRYING if key in begun:
                since, why = begun.pop(key), event.data.get("error")
                error = why if isinstance(why, str) else None
                found[key].append(EarlierAttempt(since, event.at, StepStatus.FAILED, error))
            case EventKind.EXECUTION_INTERRUPTED:
                for one, since in begun.items():
                    found[one].append(EarlierAttempt(since, event.at, StepStatus.INTERRUPTED))
                begun.clear()
            case EventKind.STEP_POSTPONED | EventKind.STEP_COMPLETED | EventKind.STEP_FAILED:
                begun.pop(key, None)
            case _:
                pass
    return found


def axis(run: Execution, definition: Definition | None, now: EpochMs) -> Axis:
    """The axis of the whole *run* until *now*. XP-3."""
    begin = run.accepted_at
    end = max(run.completed_at or now, begin + 1)
    worked = _merged(_work(run, definition, EpochMs(end)))
    total = sum(until - since for since, until in worked) or end - begin
    gaps = _gaps(worked, begin, EpochMs(end))
    by_length = sorted(gaps, key=lambda gap: gap[0] - gap[1])
    long = {gap for gap in by_length[:MOST_CUTS] if gap[1] - gap[0] > max(LONG * total, LEAST)}
    if not worked or not long:
        return Axis(((begin, 0.0), (EpochMs(end), 1.0)))
    return _cut(begin, EpochMs(end), sorted(long))


def _cut(begin: EpochMs, end: EpochMs, long: Sequence[Interval]) -> Axis:
    width = min(CUT_WIDTH, 0.4 / len(long))
    kept = end - begin - sum(until - since for since, until in long)
    scale = (1 - width * len(long)) / kept if kept else 0.0
    points, cuts, x, at = [(begin, 0.0)], list[Cut](), 0.0, begin
    for since, until in long:
        x += (since - at) * scale
        cuts.append(Cut(x, width, DurationMs(until - since)))
        points += [(since, x), (until, x + width)]
        x, at = x + width, until
    return Axis((*points, (end, 1.0)), tuple(cuts))


def _work(run: Execution, definition: Definition | None, end: EpochMs) -> Iterable[Interval]:
    """The intervals of work; a failed attempt's wait for the next counts as work of its step."""
    for key, result in run.step_results.items():
        if not _waits(key, result, definition):
            yield max(result.started_at, run.accepted_at), min(result.completed_at or end, end)


def _waits(key: str, result: StepResult, definition: Definition | None) -> bool:
    """Whether the step only contains other steps, or lets time pass."""
    passive = (
        result.awaits in (Awaits.STEPS, Awaits.TIME, Awaits.MAIL) or result.approval_id is not None
    )
    try:
        step = definition.step(name_of(key)) if definition else None
    except KeyError:
        step = None
    passive_kinds = ParallelStep | LoopStep | SwitchStep | ApprovalStep | DelayStep | MailStep
    holds = isinstance(step, passive_kinds)
    ended = result.completed_at is None and result.status is not StepStatus.RUNNING
    return passive or holds or ended


def _merged(intervals: Iterable[Interval]) -> list[Interval]:
    found: list[Interval] = []
    for since, until in sorted(intervals):
        if found and since <= found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], until))
        else:
            found.append((since, max(since, until)))
    return found


def _gaps(worked: Sequence[Interval], begin: EpochMs, end: EpochMs) -> list[Interval]:
    edges = [begin, *(at for interval in worked for at in interval), end]
    pairs = zip(edges[::2], edges[1::2], strict=True)
    return [(since, until) for since, until in pairs if until > since]
