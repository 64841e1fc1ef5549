"""Time as the domain speaks it: integers of milliseconds, never a clock."""

from collections.abc import Callable
from typing import NewType

EpochMs = NewType("EpochMs", int)
"""An instant: milliseconds since 1970-01-01T00:00:00Z."""

DurationMs = NewType("DurationMs", int)
"""A length of time in milliseconds."""

Now = Callable[[], EpochMs]
"""Tells the time when it is called."""

SECOND = DurationMs(1_000)
MINUTE = DurationMs(60_000)
HOUR = DurationMs(3_600_000)
DAY = DurationMs(86_400_000)


def later(at: EpochMs, by: int) -> EpochMs:
    """The instant *by* milliseconds after *at*."""
    return EpochMs(at + by)
