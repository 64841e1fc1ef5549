"""Quota windows, and the answer when a window is full. Spec: rate limits."""

from collections.abc import Sequence
from typing import NamedTuple

from attrs import field, frozen

from wfcore.errors import InvalidInput, RateLimited
from wfcore.model.access import Admission, Tier, Window
from wfcore.rules.limits import REQUESTS
from wfcore.time import DAY, MINUTE, EpochMs


def windows(plan: Tier, now: EpochMs) -> tuple[Window, Window]:
    """
    The minute window, aligned to the epoch minute, and the day window, by UTC date. RL-1, RL-2.

    Neither window slides. UTC has no leap seconds in epoch time, so a day has 86,400 s.
    """
    per_minute, per_day = REQUESTS[plan]
    return _window("minute", now, MINUTE, per_minute), _window("day", now, DAY, per_day)


def _window(kind: str, now: EpochMs, length: int, limit: int | None) -> Window:
    start = now - now % length
    return Window(kind, EpochMs(start), EpochMs(start + length), limit)


MONTH_DAYS = 30
"""
The number of days for which counts of requests are shown. Counts of days are kept that much longer.
RL-7.
"""
KEPT_LONGER = {"day": MONTH_DAYS * DAY}
"""The additional time for which counts are kept, in ms, by kind of window."""


def days_until(now: EpochMs) -> tuple[Window, ...]:
    """The windows of this day and of the days before it, `MONTH_DAYS` in all. RL-7."""
    ago = (EpochMs(now - n * DAY) for n in range(MONTH_DAYS) if now >= n * DAY)
    return tuple(_window("day", at, DAY, None) for at in ago)


@frozen
class Quota:
    """
    The requests left of a quota after a request was admitted, in the window with fewer requests
    left.
    """

    limit: int
    remaining: int
    window: str


def verdict(*, asked: Sequence[Window], taken: Admission, now: EpochMs) -> Quota:
    """
    The rest of the quota. Raises `RateLimited` for a full window; if both are full, for the day.
    RL-3.

    Raises `InvalidInput` if *taken* counts other windows than *asked*, or if no window has a limit.
    """
    if len(taken.counts) != len(asked):
        fix = f"has {len(taken.counts)} counts for {len(asked)} windows"
        raise InvalidInput("taken", fix)
    left: Quota | None = None
    for window, count in zip(asked, taken.counts, strict=True):
        if window.limit is not None:
            remaining = window.limit - count
            if left is None or remaining < left.remaining:
                left = Quota(window.limit, remaining, window.kind)
    if left is None:
        raise InvalidInput("asked", "no window has a limit: there is nothing to tell")
    if taken.full:
        full = [window for window in asked if window.kind in taken.full]
        worst = max(full, key=lambda window: window.end - window.start)
        wait_s = -(-(worst.end - now) // 1_000)
        raise RateLimited(worst.kind, worst.limit or 0, max(wait_s, 1))
    return left


def nearly_used(asked: Sequence[Window], taken: Admission) -> Window | None:
    """
    The day's window, if exactly a tenth of its limit is left after this request; otherwise None. So
    exactly one request of each window gets the window, however many requests are counted. NT-3.
    """
    for window, count in zip(asked, taken.counts, strict=True):
        if window.kind != "day" or window.limit is None or taken.full:
            continue
        if count == window.limit - window.limit // 10:
            return window
    return None


class Count(NamedTuple):
    """The requests that one window has admitted, and its end."""

    admitted: int
    end: EpochMs


@frozen
class Ledger:
    """
    Counts by subject and window, for one process: the rule that every counter of quotas follows,
    whatever stores the counts. RL-4.

    The methods are plain calls, so each call is atomic within a process.
    """

    counts: dict[tuple[str, str, int], Count] = field(factory=dict)

    def peek_counts(self, subject: str, windows: Sequence[Window]) -> tuple[int, ...]:
        """The number of requests that each window has admitted."""
        found = [self.counts.get((subject, w.kind, w.start)) for w in windows]
        return tuple(count.admitted if count else 0 for count in found)

    def take(self, subject: str, windows: Sequence[Window]) -> Admission:
        """Count one request in every window; count nothing if a window is full."""
        counts = self.peek_counts(subject, windows)
        if full := full_of(windows, counts):
            return Admission(full, counts)
        for window, count in zip(windows, counts, strict=True):
            key = (subject, window.kind, window.start)
            self.counts[key] = Count(count + 1, window.end)
        return Admission((), tuple(count + 1 for count in counts))

    def trim(self, before: EpochMs) -> None:
        """Forget windows that ended before *before*; days are kept longer. RL-7."""
        over = [
            key
            for key, count in self.counts.items()
            if count.end < before - KEPT_LONGER.get(key[1], 0)
        ]
        for key in over:
            del self.counts[key]


def full_of(windows: Sequence[Window], counts: Sequence[int]) -> tuple[str, ...]:
    """The kinds of the full windows."""
    return tuple(
        window.kind
        for window, count in zip(windows, counts, strict=True)
        if window.limit is not None and count >= window.limit
    )
