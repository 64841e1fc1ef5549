"""
The time of the database, without a journey to it. Decision 100.

The difference between its clock and a monotonic one of this machine is known to lie between two
bounds: an answer was made after its question was sent and before it was received. Each measurement
narrows them, and bounds that contradict the new ones are given up: the database's clock was set, or
has drifted. All stores of a process on one server share a clock, so that all of them have one time.
"""

import time
from collections.abc import Awaitable, Callable

from attrs import define, field

from wfcore.time import EpochMs

NOW = "SELECT wfcore_now()"
FIRST = 8
"""The number of measurements at the start."""


def monotonic_us() -> int:
    return time.monotonic_ns() // 1_000


@define(eq=False)
class DatabaseClock:
    """The clock of a database. `steady` counts microseconds and never goes back."""

    steady: Callable[[], int] = monotonic_us
    _least: int | None = None
    _most: int = 0
    _last: EpochMs = field(default=EpochMs(0))

    def now(self) -> EpochMs:
        """
        The time, which never goes back; where the database's clock was set back, it stands still
        for a while.
        """
        if self._least is None:
            return self._last
        time_ms = (self.steady() + (self._least + self._most) // 2) // 1_000
        self._last = EpochMs(max(self._last, time_ms))
        return self._last

    async def measure(self, read: Callable[[], Awaitable[int]]) -> None:
        """
        Narrow the bounds by one measurement. *read* gives the time of the database in whole
        milliseconds.
        """
        sent = self.steady()
        answer = await read() * 1_000
        self.learn(answer - self.steady(), answer + 999 - sent)

    def learn(self, least: int, most: int) -> None:
        """The difference lies between *least* and *most*, in microseconds."""
        if self._least is not None and max(least, self._least) <= min(most, self._most):
            least, most = max(least, self._least), min(most, self._most)
        self._least, self._most = least, most

    @property
    def known(self) -> bool:
        """Whether the clock was ever measured."""
        return self._least is not None


CLOCKS: dict[str, DatabaseClock] = {}
"""The clocks that this process has measured, by the server."""
