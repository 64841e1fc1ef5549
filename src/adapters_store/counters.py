"""
Quota counters in a file of their own, exact over processes and restarts.

Not in the store's file: they are bumped on every request, and losing the last moments of them
in a power cut harms nobody, while the store's commits must survive it.

While the file cannot be written (disk full, read-only, locked), this process goes on counting
in memory on top of what the file says, and carries that into the file as soon as it can.
"""

import asyncio
from collections.abc import Sequence
from pathlib import Path

from adapters_store.sql import counting
from adapters_store.sql.connection import DriverError, close_quietly, detail_of
from wfcore.errors import StoreUnavailable
from wfcore.instants import SECOND, EpochMs
from wfcore.memory.counters import Count, full_of
from wfcore.ports.counters import Taken, Window

TRIMMED_AT_ONCE = 1_000


Asked = tuple[str, tuple[Window, ...], EpochMs, "asyncio.Future[Taken]"]
"""An admission that waits to be counted."""


class SqliteCounters:
    """
    Satisfies `wfcore.ports.counters.Counters` on one file. Make it with `SqliteCounters.open`.

    `damaged`: where a damaged file was moved at the start, None when there was none.
    """

    def __init__(self, path: Path) -> None:
        """Open *path*. Raises `StoreUnavailable`."""
        try:
            self._connection, aside = counting.open_counts(path)
        except (DriverError, OSError) as error:
            raise StoreUnavailable(detail=detail_of(error)) from error
        self.damaged = None if aside is None else str(aside)
        self._aside: dict[tuple[str, str, int], Count] = {}
        self._used: dict[str, EpochMs] = {}
        self._failed_at: EpochMs | None = None
        self._asked: list[Asked] = []

    @classmethod
    async def open(cls, path: Path) -> "SqliteCounters":
        """Open *path*, made as needed. Raises `StoreUnavailable`."""
        return await asyncio.to_thread(cls, path)

    async def take(self, subject: str, windows: tuple[Window, ...], now: EpochMs) -> Taken:
        """
        Count one admission in every window, or in none.

        What one turn of the event loop asks is one short transaction, right here.
        """
        loop = asyncio.get_running_loop()
        if not self._asked:
            loop.call_soon(self._answer)
        answer: asyncio.Future[Taken] = loop.create_future()
        self._asked.append((subject, windows, now, answer))
        return await answer

    async def last_used(self, subject: str) -> EpochMs | None:
        """When *subject* was last admitted."""
        aside = self._used.get(subject)
        try:
            row = self._connection.execute(counting.LAST_USED, (subject,)).fetchone()
        except DriverError:
            return aside
        return aside if row[0] is None else EpochMs(max(row[0], aside or 0))

    async def trim(self, before: EpochMs) -> None:
        """Forget windows that ended before *before*. Raises `StoreUnavailable`."""
        for key in [key for key, count in self._aside.items() if count.end < before]:
            del self._aside[key]
        gone = TRIMMED_AT_ONCE
        while gone == TRIMMED_AT_ONCE:
            try:
                gone = self._connection.execute(counting.TRIM, (before, TRIMMED_AT_ONCE)).rowcount
            except DriverError as error:
                raise StoreUnavailable(detail=detail_of(error)) from error
            await asyncio.sleep(0)

    async def close(self) -> None:
        """Count what was asked, then close the file."""
        self._answer()
        close_quietly(self._connection)

    def _answer(self) -> None:
        asked, self._asked = self._asked, []
        try:
            answers = self._answers(asked)
        except Exception as defect:  # goes to those who wait, who would wait for ever
            for *_, answer in asked:
                if not answer.done():
                    answer.set_exception(defect)
            return
        for (*_, answer), taken in zip(asked, answers, strict=True):
            if not answer.done():
                answer.set_result(taken)

    def _answers(self, asked: Sequence[Asked]) -> list[Taken]:
        counts = self._count(asked) if asked else []
        if counts is None:
            return [self._take_aside(*one[:3]) for one in asked]
        return [self._taken(*one[:2], count) for one, count in zip(asked, counts, strict=True)]

    def _count(self, asked: Sequence[Asked]) -> list[tuple[int, ...] | None] | None:
        """What the file says to each (None: full); None where it cannot be written."""
        now = asked[-1][2]
        if self._rests(now):
            return None
        try:
            self._bring_back(now)
            return counting.take_all(self._connection, [one[:3] for one in asked])
        except DriverError:
            self._failed_at = now
            return None

    def _taken(
        self, subject: str, windows: Sequence[Window], counts: tuple[int, ...] | None
    ) -> Taken:
        if counts is not None:
            return Taken((), counts)
        counts = self._look(subject, windows)
        return Taken(full_of(windows, counts), counts)

    def _rests(self, now: EpochMs) -> bool:
        """Whether the file failed a moment ago: trying each time would stop the event loop."""
        return self._failed_at is not None and 0 <= now - self._failed_at < SECOND

    def _look(self, subject: str, windows: Sequence[Window]) -> tuple[int, ...]:
        """What the file says, where it can be read, and what was counted beside it."""
        try:
            filed = counting.look(self._connection, subject, windows)
        except DriverError:
            filed = (0,) * len(windows)
        beside = (self._aside.get((subject, w.kind, w.start)) for w in windows)
        return tuple(n + (c.admitted if c else 0) for n, c in zip(filed, beside, strict=True))

    def _take_aside(self, subject: str, windows: Sequence[Window], now: EpochMs) -> Taken:
        counts = self._look(subject, windows)
        if full := full_of(windows, counts):
            return Taken(full, counts)
        for window in windows:
            key = (subject, window.kind, window.start)
            known = self._aside.get(key, Count(0, window.end))
            self._aside[key] = Count(known.admitted + 1, window.end)
        self._used[subject] = now
        return Taken((), tuple(count + 1 for count in counts))

    def _bring_back(self, now: EpochMs) -> None:
        """Carry what was counted in memory into the file, all or nothing."""
        self._failed_at = None
        if not self._aside:
            return
        rows = [
            (*key, count.end, count.admitted, self._used.get(key[0], now))
            for key, count in self._aside.items()
        ]
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            self._connection.executemany(counting.ADD, rows)
            self._connection.execute("COMMIT")
        except DriverError:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            raise
        self._aside.clear()
        self._used.clear()
