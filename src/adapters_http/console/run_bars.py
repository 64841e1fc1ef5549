"""The latest executions of a workflow as bars: how long each took, and how it ended."""

from collections.abc import Sequence
from math import log1p

from attrs import frozen

from wfcore.model.execution import ExecutionStatus
from wfcore.ports.records import LatestExecution
from wfcore.time import SECOND, DurationMs, EpochMs

_HIGH, _LEAST = 22, 3
"""The height of the longest and of the shortest bar, in pixels."""


@frozen
class RunBar:
    """An execution as a bar: `height` in pixels; `took` in ms, until now if it runs."""

    run: LatestExecution
    took: DurationMs
    height: float


def bars_of(latest: Sequence[LatestExecution], now: EpochMs) -> Sequence[RunBar]:
    """
    The bars of the executions *latest*, the oldest first. Heights grow with the logarithm of the
    duration, so that an execution of a day leaves one of a minute visible.
    """
    took = [DurationMs(max((one.completed_at or now) - one.accepted_at, 0)) for one in latest]
    most = max((log1p(one / SECOND) for one in took), default=0.0) or 1.0
    heights = [_LEAST + (_HIGH - _LEAST) * log1p(one / SECOND) / most for one in took]
    return [
        RunBar(one, long, round(high, 1))
        for one, long, high in zip(reversed(latest), reversed(took), reversed(heights), strict=True)
    ]


def durations(latest: Sequence[LatestExecution]) -> Sequence[DurationMs]:
    """How long the executions took that completed."""
    return [
        DurationMs(one.completed_at - one.accepted_at)
        for one in latest
        if one.status is ExecutionStatus.COMPLETED and one.completed_at is not None
    ]
