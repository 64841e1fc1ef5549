"""Quota windows, and the answer when one is full. Spec: rate limits."""

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
The days whose numbers of requests are shown. The counts of days are kept so much longer. RL-7.
"""
KEPT_LONGER = {"day": MONTH_DAYS * DAY}
"""How much longer than others counts of a kind of window are kept, in ms."""


def days_until(now: EpochMs) -> tuple[Window, ...]:
    """The window of this day and those of the days before it, `MONTH_DAYS` in all. RL-7."""
    ago = (EpochMs(now - n * DAY) for n in range(MONTH_DAYS) if now >= n * DAY)
    return tuple(_window("day", at, DAY, None) for at in ago)


@frozen
class Quota:
    """The rest of a quota after a request was admitted, in the window with the smaller rest."""

    limit: int
    remaining: int
    window: str


def verdict(*, asked: Sequence[Window], taken: Admission, now: EpochMs) -> Quota:
    """
    The rest of the quota. Raises `RateLimited` for a full window; if both are full, for the day.
    RL-3.

    Raises `InvalidInput` if *taken* counts other windows than *asked*, or if none of these has a
    limit.
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
    The day's window, if this very request is the one after which a tenth of it is left: one
    request of each window, however many count. NT-3.
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

    Plain calls, so each one is atomic within a process.
    """

    counts: dict[tuple[str, str, int], Count] = field(factory=dict)

    def peek_counts(self, subject: str, windows: Sequence[Window]) -> tuple[int, ...]:
        """What each window has admitted."""
        found = [self.counts.get((subject, w.kind, w.start)) for w in windows]
        return tuple(count.admitted if count else 0 for count in found)

    def take(self, subject: str, windows: Sequence[Window]) -> Admission:
        """Count one in every window, or in none where one is full."""
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
