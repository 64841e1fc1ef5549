"""
Reads: point reads in the event loop, lists in threads, and a cache that follows commits.

**Where a read runs.** A read by key takes a few microseconds, less than a handover to a thread
would take, and a WAL reader never waits for the writer; so a read by key runs in the event loop.
Lists and scans, which may take long, go through aiosqlite.

**One transaction per turn.** All point reads of one turn of the event loop share one read
transaction. The transaction begins with a read that shows whether there was a commit since the
previous transaction. Every request of a turn arrived before its snapshot was taken, so clients
always read their own writes.

**The cache.** Decoded records are kept by key together with their version. Records are frozen, so
that all readers can share them. A record counts as current in one of three ways:

- nobody has committed since it was last found current (`KnownRecord.seen`, see `state`);
- every commit since then was our own, and `committed` took the records that it put or claimed into
  the cache, before the waiting units learned that they are durable (decision 2);
- its version, or for narrow records its whole row, is read again and is the same.

A commit of another process, or a commit of ours that changed more than these records, breaks the
second way: then versions are compared, also those of records that our own commit put. Accounts,
keys, workflows and webhooks are watched by triggers in the database, so that a change by hand is
noticed as well; other tables must not be edited while a server runs.

**What must not be done.** Rows that a unit reads behind its own uncommitted writes are decoded by
`read` and never cached: they are rolled back. After a driver error the connection is replaced, and
states are numbered anew, since the snapshot is lost with the connection. The cache is bounded in
bytes: the texts of each record plus a fixed overhead per entry (`WFCORE_CACHE`).
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any, TypeVar, cast

from adapters_store.sql.cache import Reads, RecordCache
from adapters_store.sql.cells import Key, Row
from adapters_store.sql.kinds import Fetch
from adapters_store.sql.queries import Query
from adapters_store.sqlite.connection import (
    AsyncConnection,
    Connection,
    DriverError,
    close_quietly,
    connect_async_reader,
    connect_reader,
    detail_of,
    is_locked,
    is_no_text,
    text_or_bytes,
    unavailable_on_error,
)
from adapters_store.sqlite.statements import Writes
from adapters_store.sqlite.writer import DatabaseFile
from wfcore.errors import StoreClosed, StoreUnavailable
from wfcore.ports.system import Sealer

R = TypeVar("R")

PULSE = "SELECT beats, changes FROM pulse"
READERS = 2


class SqliteReads(Reads):
    """All reading connections of one store."""

    def __init__(self, file: DatabaseFile, cache_bytes: int, sealer: Sealer | None = None) -> None:
        super().__init__(RecordCache(cache_bytes), sealer)
        self._file = file
        self._inline: Connection | None = None
        self._opening: asyncio.Task[None] | None = None
        self._idle: asyncio.LifoQueue[asyncio.Task[AsyncConnection] | None] = asyncio.LifoQueue()
        for _ in range(READERS):
            self._idle.put_nowait(None)
        self._closed = False
        self._state = (0, 0)
        self._beat = -1
        self._in_turn = False
        self._text: Callable[[bytes], str | bytes] = str

    async def one(self, fetch: Fetch[R], key: Key) -> R | None:
        """The record under *key*. Raises `StoreUnavailable`."""
        return await self._here(lambda: self._one(fetch, key))

    async def row(self, sql: str, values: Sequence[Any]) -> Row | None:
        """The only row that *sql* finds, or None. Raises `StoreUnavailable`."""
        return await self._here(lambda: self._row(sql, values))

    async def few(self, query: Query) -> list[Row]:
        """All rows of a query that finds only a few rows. Raises `StoreUnavailable`."""
        return await self._here(lambda: self._few(query))

    async def _here(self, read: Callable[[], R]) -> R:
        """
        Call *read* in the event loop. A read that fails because of a lock (a log that another
        process recovers) or invalid text is repeated over a connection that a thread opens.
        """
        if self._inline is None:
            await self.reach()
        try:
            return read()
        except StoreUnavailable as refusal:
            if not (is_locked(refusal.__cause__) or self._found_no_text(refusal.__cause__)):
                raise
        await self.reach()
        return read()

    async def reach(self) -> None:
        """
        Open a connection for the event loop, in a thread, because the thread may wait for locks and
        the event loop must not. Raises `StoreUnavailable`.
        """
        self._check_open()
        if self._inline is None:
            self._opening = self._opening or asyncio.ensure_future(self._open_inline())
            await asyncio.shield(self._opening)

    def _one(self, fetch: Fetch[R], key: Key) -> R | None:
        known = self.cache.get(fetch.table, key)
        if known is not None and fetch.immutable:
            return cast("R", known.record)
        state = self.state()[fetch.watched]
        if known is not None and known.seen == state:
            return cast("R", known.record)
        if known is not None and fetch.probe is not None:
            version = self._row(fetch.probe, key)
            if version is None:
                return None
            if version[0] == known.version:
                known.seen = state
                return cast("R", known.record)
        row = self._row(fetch.fetch, key)
        if row is None:
            return None
        if known is not None and known.row == row:
            known.seen = state
            return cast("R", known.record)
        return self.decoded(fetch, key, row, state)

    def state(self) -> tuple[int, int]:
        """
        Two numbers: the first changes with every commit that the cache does not follow, the second
        with every change of a watched record. Both are read once per turn of the event loop.

        Raises `StoreUnavailable`.
        """
        if not self._in_turn:
            self._row("BEGIN", ())
            beat, changes = cast("tuple[int, int]", self._row(PULSE, ()))
            if beat != self._beat:
                self._beat = beat
                self._state = self._state[0] + 1, changes
            self._in_turn = True
            asyncio.get_running_loop().call_soon(self._next_turn)
        return self._state

    def committed(self, beat: int, units: Sequence[Writes], complete: bool) -> None:
        """
        Put the records that *units* stored with a commit of this process into the cache. They count
        as current if the commit changed nothing else (*complete*) and is the last known commit or
        the next commit after it; otherwise their versions are compared.
        """
        self._next_turn()
        seen: int | None = None
        if complete and self._beat in (beat - 1, beat):
            self._beat, seen = beat, self._state[0]
        for unit in units:
            for (table, key), (_, known) in unit.pending.items():
                self.cache.forget(table, key)
                if known is not None:
                    known.seen = seen
                    self.cache.keep(table, key, known)

    def _next_turn(self) -> None:
        self._in_turn = False
        if self._inline is not None and self._inline.in_transaction:
            with suppress(StoreUnavailable):
                self._row("ROLLBACK", ())

    def _row(self, sql: str, values: Sequence[Any]) -> Row | None:
        try:
            return cast("Row | None", self._reader().execute(sql, values).fetchone())
        except DriverError as error:
            raise self._lost(error) from error

    def _few(self, query: Query) -> list[Row]:
        try:
            return list(self._reader().execute(query.sql, query.values).fetchall())
        except DriverError as error:
            raise self._lost(error) from error

    def _reader(self) -> Connection:
        if self._inline is None:  # lost by another request, in this very turn
            raise StoreUnavailable(detail="the connection was lost")
        return self._inline

    def _lost(self, error: DriverError) -> StoreUnavailable:
        """
        The error to raise after *error*. The next read gets a new connection, and states are
        numbered anew.
        """
        if self._inline is not None:
            close_quietly(self._inline)
            self._inline, self._in_turn, self._beat = None, False, -1
        self.cache = RecordCache(self.cache.limit)
        return StoreUnavailable(detail=detail_of(error))

    async def _open_inline(self) -> None:
        try:
            with unavailable_on_error():
                connection = await asyncio.to_thread(connect_reader, self._file.path)
            connection.text_factory = self._text
            try:
                self._file.require_in_place()
            except StoreUnavailable:
                close_quietly(connection)
                raise
            self._inline = connection
        finally:
            self._opening = None

    async def rows(self, query: Query) -> list[Row]:
        """All rows of *query*. Raises `StoreUnavailable`."""
        try:
            return await self._rows(query)
        except StoreUnavailable as refusal:
            if not self._found_no_text(refusal.__cause__):
                raise
        return await self._rows(query)

    async def _rows(self, query: Query) -> list[Row]:
        async with self._lent() as connection:
            connection.text_factory = self._text
            return list(await connection.execute_fetchall(query.sql, query.values))

    def _found_no_text(self, error: BaseException | None) -> bool:
        """
        Whether to try again because text was invalid; from now on such text is returned as bytes.
        The second try needs another connection, because the failed statement keeps its snapshot.
        """
        if error is None or not is_no_text(error):
            return False
        self._text = text_or_bytes
        return True

    @asynccontextmanager
    async def _lent(self) -> AsyncIterator[AsyncConnection]:
        """
        A connection for one caller. A task opens the connection, so that no cancellation can lose
        it.
        """
        self._check_open()
        opening = await self._idle.get()
        try:
            with unavailable_on_error():
                opening = opening or asyncio.ensure_future(self._open_lent())
                yield await asyncio.shield(opening)
        except StoreUnavailable:
            await _close(opening)
            opening = None
            raise
        finally:
            self._idle.put_nowait(opening)

    async def _open_lent(self) -> AsyncConnection:
        self._file.require_in_place()  # the thread of a failed opening would outlive it a little
        connection = await connect_async_reader(self._file.path)
        try:
            self._file.require_in_place()
        except StoreUnavailable:
            await connection.close()
            raise
        return connection

    def _check_open(self) -> None:
        if self._closed:
            raise StoreClosed()

    async def close(self) -> None:
        """Close every connection; a lent connection is closed as soon as it is returned."""
        if self._closed:
            return
        self._closed = True
        if self._opening is not None:
            with suppress(StoreUnavailable):
                await self._opening
        for _ in range(READERS):
            await _close(await self._idle.get())
        if self._inline is not None:
            close_quietly(self._inline)
            self._inline = None


async def _close(opening: "asyncio.Task[AsyncConnection] | None") -> None:
    if opening is not None:
        with suppress(DriverError, StoreUnavailable):
            await (await opening).close()
