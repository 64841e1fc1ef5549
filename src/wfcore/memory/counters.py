"""Quota counters in memory: exact within one process."""

from collections.abc import Sequence
from typing import NamedTuple

from attrs import field, frozen

from wfcore.memory.gate import Gate
from wfcore.ports.counters import Taken, Window
from wfcore.time import MINUTE, EpochMs


class Count(NamedTuple):
    """What one window has admitted, and when it is over."""

    admitted: int
    end: EpochMs


@frozen
class Ledger:
    """Counts by subject and window. Plain calls, so each one is atomic in a process."""

    counts: dict[tuple[str, str, int], Count] = field(factory=dict)

    def look(self, subject: str, windows: Sequence[Window]) -> tuple[int, ...]:
        """What each window has admitted."""
        found = [self.counts.get((subject, w.kind, w.start)) for w in windows]
        return tuple(count.admitted if count else 0 for count in found)

    def take(self, subject: str, windows: Sequence[Window]) -> Taken:
        """Count one in every window, or in none where one is full."""
        counts = self.look(subject, windows)
        if full := full_of(windows, counts):
            return Taken(full, counts)
        for window, count in zip(windows, counts, strict=True):
            key = (subject, window.kind, window.start)
            self.counts[key] = Count(count + 1, window.end)
        return Taken((), tuple(count + 1 for count in counts))

    def trim(self, before: EpochMs) -> None:
        """Forget windows that ended before *before*."""
        for key in [key for key, count in self.counts.items() if count.end < before]:
            del self.counts[key]


def full_of(windows: Sequence[Window], counts: Sequence[int]) -> tuple[str, ...]:
    """The kinds of the windows that admit no more."""
    return tuple(
        window.kind
        for window, count in zip(windows, counts, strict=True)
        if window.limit is not None and count >= window.limit
    )


class MemoryCounters:
    """Satisfies `wfcore.ports.counters.Counters` over a `ledger` in memory."""

    def __init__(self, gate: Gate) -> None:
        self._gate = gate
        self.ledger = Ledger()
        self._used: dict[str, EpochMs] = {}

    async def take(self, subject: str, windows: tuple[Window, ...], now: EpochMs) -> Taken:
        """Count one admission in every window, or in none."""

        def take() -> Taken:
            return self.ledger.take(subject, windows)

        taken = await self._gate("take", subject, take, writes=True)
        if taken.admitted:
            self._used[subject] = EpochMs(now - now % MINUTE)
        return taken

    async def last_used(self, subject: str) -> EpochMs | None:
        """When *subject* was last admitted, to within a minute."""
        return self._used.get(subject)

    async def trim(self, before: EpochMs) -> None:
        """Forget windows that ended before *before*."""
        self.ledger.trim(before)

    async def close(self) -> None:
        """Nothing to release."""
