"""Quota counters on the simulated disk's side of the gate: exact, and kept over power cuts."""

from collections.abc import Sequence

from wfcore.instants import MINUTE, EpochMs
from wfcore.ports.counters import Taken, Window
from wfcore.testing.simulator.asks import Gate


class SimCounters:
    """Satisfies `wfcore.ports.counters.Counters`. `counts`: by subject, kind and start."""

    def __init__(self, gate: Gate) -> None:
        self.counts: dict[tuple[str, str, int], tuple[int, EpochMs]] = {}
        self._used: dict[str, EpochMs] = {}
        self._gate = gate

    async def take(self, subject: str, windows: tuple[Window, ...], now: EpochMs) -> Taken:
        """Count one admission in every window, or in none."""
        return await self._gate(
            "take", subject, lambda: self._take(subject, windows, now), writes=True
        )

    def _take(self, subject: str, windows: Sequence[Window], now: EpochMs) -> Taken:
        counts = [self._count(subject, window) for window in windows]
        full = tuple(
            window.kind
            for window, count in zip(windows, counts, strict=True)
            if window.limit is not None and count >= window.limit
        )
        if full:
            return Taken(full, tuple(counts))
        for window, count in zip(windows, counts, strict=True):
            self.counts[subject, window.kind, window.start] = (count + 1, window.end)
        self._used[subject] = EpochMs(now - now % MINUTE)
        return Taken((), tuple(count + 1 for count in counts))

    def _count(self, subject: str, window: Window) -> int:
        return self.counts.get((subject, window.kind, window.start), (0, window.end))[0]

    async def last_used(self, subject: str) -> EpochMs | None:
        """When *subject* was last admitted, to within a minute."""
        return self._used.get(subject)

    async def trim(self, before: EpochMs) -> None:
        """Forget windows that ended before *before*."""
        self.counts = {key: count for key, count in self.counts.items() if count[1] >= before}

    async def close(self) -> None:
        """Nothing to release."""
