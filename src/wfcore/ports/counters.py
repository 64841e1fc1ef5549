"""Quota counters: atomic, bounded, exact."""

from typing import Protocol

from attrs import frozen

from wfcore.instants import EpochMs


@frozen
class Window:
    """
    One window of a quota: `kind` is "minute" or "day", [`start`, `end`) in epoch ms.

    `limit` None: unlimited (counted all the same).
    """

    kind: str
    start: EpochMs
    end: EpochMs
    limit: int | None


@frozen
class Taken:
    """
    What came of one attempt. `full` holds the kinds of the windows that were full
    (empty: admitted), `counts` what each window had admitted, this one included, in order.
    """

    full: tuple[str, ...]
    counts: tuple[int, ...]

    @property
    def admitted(self) -> bool:
        return not self.full


class Counters(Protocol):
    """Counts admissions by subject and window."""

    async def take(self, subject: str, windows: tuple[Window, ...], now: EpochMs) -> Taken:
        """
        Count one admission in every window, or, when one of them is full, in none.

        Exactly `limit` calls are admitted in a window, however many come at once, over
        restarts, and from several processes on the same store. A counter is kept for at least
        48 h, so a clock that was set back grants nothing anew.
        """

    async def last_used(self, subject: str) -> EpochMs | None:
        """When *subject* was last admitted, to within a minute; None: not in memory."""

    async def strike(self, subject: str, windows: tuple[Window, ...], now: EpochMs) -> Taken:
        """Like `take`; for failed logins, kept apart from quotas."""

    async def struck(self, subject: str, windows: tuple[Window, ...]) -> Taken:
        """What `strike` would find, without counting."""

    async def trim(self, before: EpochMs) -> None:
        """Forget windows that ended before *before*."""

    async def close(self) -> None:
        """Release everything. Safe to call twice."""
