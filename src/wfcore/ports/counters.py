"""Quota counters: atomic, bounded, exact."""

from typing import Protocol

from wfcore.model.access import Admission, Window
from wfcore.time import EpochMs


class Counters(Protocol):
    """Counts admissions by subject and window."""

    async def take(self, subject: str, windows: tuple[Window, ...], now: EpochMs) -> Admission:
        """
        Count one admission in every window, or in none if any window is full.

        Exactly `limit` calls are admitted per window, however many arrive at once, across restarts
        and across processes on the same store. A counter is kept for at least 48 h, so setting the
        clock back does not grant new admissions.
        """

    async def peek_counts(self, subject: str, windows: tuple[Window, ...]) -> tuple[int, ...]:
        """The admissions of each window so far. Counts nothing."""

    async def last_used(self, subject: str) -> EpochMs | None:
        """The instant of the last admission of *subject*, to within a minute; None if unknown."""

    async def trim(self, before: EpochMs) -> None:
        """
        Delete windows that ended before *before*. Windows of a day may be kept longer. RL-7.
        """

    async def close(self) -> None:
        """Release everything. Safe to call twice."""
