"""
The time of the database, without a request to the database. Decision 100.

The difference between the clock of the database and a monotonic clock of this machine lies between
two bounds: the database made its answer after the question was sent and before the answer was
received. Each measurement narrows the bounds. Old bounds that contradict a new measurement are
dropped: the clock of the database was set, or has drifted. All stores of a process on one server
share a clock, so that all of these stores have one time.
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
    """
    The clock of a database. `steady`: a function that counts microseconds and never goes back.
    """

    steady: Callable[[], int] = monotonic_us
    _least: int | None = None
    _most: int = 0
    _last: EpochMs = field(default=EpochMs(0))

    def now(self) -> EpochMs:
        """
        The time, which never goes back. If the clock of the database was set back, the time stands
        still for a while.
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
        """Narrow the bounds: the difference lies between *least* and *most*, in microseconds."""
        if self._least is not None and max(least, self._least) <= min(most, self._most):
            least, most = max(least, self._least), min(most, self._most)
        self._least, self._most = least, most

    @property
    def known(self) -> bool:
        """Whether the clock was ever measured."""
        return self._least is not None


CLOCKS: dict[str, DatabaseClock] = {}
"""The clocks that this process has measured, by server."""
