"""
Quota counters in a file of their own, exact over processes and restarts.

Not in the store's file: they are bumped on every request, and losing the last moments of them
in a power cut harms nobody, while the store's commits must survive it.

While the file cannot be written (disk full, read-only, locked), this process goes on counting
in memory on top of what the file says, and carries that into the file as soon as it can.
"""

import asyncio
from collections.abc import Sequence
from operator import add
from pathlib import Path

from adapters_store.gathering import Gathering
from adapters_store.sql import counting
from adapters_store.sql.connection import DriverError, close_quietly, detail_of
from adapters_store.sql.counting import Asked, Counts, Key
from wfcore.errors import StoreUnavailable
from wfcore.instants import SECOND, EpochMs
from wfcore.memory.counters import Count, Ledger, full_of
from wfcore.ports.counters import Taken, Window

TRIMMED_AT_ONCE = 1_000


Waiting = tuple[Asked, "asyncio.Future[Taken]"]
"""Who asks, and what waits for the answer."""


class SqliteCounters:
    """
    Satisfies `wfcore.ports.counters.Counters` on one file. Make it with `SqliteCounters.open`.

    `damaged`: where a damaged file was moved at the start, None when there was none.
    """

    def __init__(self, path: Path) -> None:
        """Open *path*. Raises `StoreUnavailable`."""
        try:
            connection, aside = counting.open_counts(path)
        except (DriverError, OSError) as error:
            raise StoreUnavailable(detail=detail_of(error)) from error
        self.damaged = None if aside is None else str(aside)
        self._counts = Counts(connection)
        self._aside: dict[Key, Count] = {}
        self._used: dict[str, EpochMs] = {}
        self._failed_at: EpochMs | None = None
        self._gathering = Gathering[Waiting](self._answer, quiet_turns=1)

    @classmethod
    async def open(cls, path: Path) -> "SqliteCounters":
        """Open *path*, made as needed. Raises `StoreUnavailable`."""
        return await asyncio.to_thread(cls, path)

    async def take(self, subject: str, windows: tuple[Window, ...], now: EpochMs) -> Taken:
        """
        Count one admission in every window, or in none.

        What is asked at about the same time is one short transaction, right here.
        """
        answer: asyncio.Future[Taken] = asyncio.get_running_loop().create_future()
        self._gathering.add(((subject, windows, now), answer))
        return await answer

    async def last_used(self, subject: str) -> EpochMs | None:
        """When *subject* was last admitted."""
        aside = self._used.get(subject)
        try:
            filed = self._counts.last_used(subject)
        except DriverError:
            return aside
        return max((at for at in (filed, aside) if at is not None), default=None)

    async def trim(self, before: EpochMs) -> None:
        """Forget windows that ended before *before*. Raises `StoreUnavailable`."""
        for key in [key for key, count in self._aside.items() if count.end < before]:
            del self._aside[key]
        gone = TRIMMED_AT_ONCE
        while gone == TRIMMED_AT_ONCE:
            try:
                gone = self._counts.trim(before, TRIMMED_AT_ONCE)
            except DriverError as error:
                raise StoreUnavailable(detail=detail_of(error)) from error
            await asyncio.sleep(0)

    async def close(self) -> None:
        """Count what was asked, then close the file."""
        self._gathering.flush()
        close_quietly(self._counts.connection)

    def _answer(self, asked: Sequence[Waiting]) -> None:
        try:
            answers = self._count([one for one, _ in asked])
        except Exception as defect:  # goes to those who wait, who would wait for ever
            for _, answer in asked:
                if not answer.done():
                    answer.set_exception(defect)
            return
        for (_, answer), taken in zip(asked, answers, strict=True):
            if not answer.done():
                answer.set_result(taken)

    def _count(self, asked: Sequence[Asked]) -> Sequence[Taken]:
        """Count in the file, or in memory where it cannot be written."""
        now = asked[-1][2]
        if not self._rests(now):
            try:
                self._bring_back()
                return self._counts.take_all(asked)
            except DriverError:
                self._failed_at = now
        return [self._take_aside(*one) for one in asked]

    def _rests(self, now: EpochMs) -> bool:
        """Whether the file failed a moment ago: trying each time would stop the event loop."""
        return self._failed_at is not None and 0 <= now - self._failed_at < SECOND

    def _look(self, subject: str, windows: Sequence[Window]) -> tuple[int, ...]:
        """What the file says, where it can be read, and what was counted beside it."""
        try:
            filed = self._counts.look(subject, windows)
        except DriverError:
            filed = (0,) * len(windows)
        return tuple(map(add, filed, Ledger(self._aside).look(subject, windows)))

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

    def _bring_back(self) -> None:
        """Carry what was counted in memory into the file, all or nothing."""
        self._failed_at = None
        if self._aside:
            self._counts.add(self._aside, self._used)
            self._aside.clear()
            self._used.clear()
