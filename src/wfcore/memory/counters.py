"""Quota counters in memory: exact within one process."""

from wfcore.memory.disk import SchedulingPoint
from wfcore.model.access import Admission, Window
from wfcore.rules.auth.rate_limit import Ledger
from wfcore.time import MINUTE, EpochMs


class MemoryCounters:
    """Satisfies `wfcore.ports.counters.Counters` over a `ledger` in memory."""

    def __init__(self, gate: SchedulingPoint) -> None:
        self._gate = gate
        self.ledger = Ledger()
        self._used: dict[str, EpochMs] = {}

    async def take(self, subject: str, windows: tuple[Window, ...], now: EpochMs) -> Admission:
        """Count one admission in every window, or in none."""

        def take() -> Admission:
            return self.ledger.take(subject, windows)

        taken = await self._gate("take", subject, take, writes=True)
        if taken.admitted:
            self._used[subject] = EpochMs(now - now % MINUTE)
        return taken

    async def peek_counts(self, subject: str, windows: tuple[Window, ...]) -> tuple[int, ...]:
        """The admissions of each window so far."""
        return self.ledger.peek_counts(subject, windows)

    async def last_used(self, subject: str) -> EpochMs | None:
        """The last admission of *subject*, to within a minute."""
        return self._used.get(subject)

    async def trim(self, before: EpochMs) -> None:
        """Delete windows that ended before *before*."""
        self.ledger.trim(before)

    async def close(self) -> None:
        """Does nothing: there is nothing to release."""
