"""
The embedded store: SQLite with group commit, for any number of processes on one machine.

Writes go to one thread that commits many units with one flush; point reads run in the event loop,
lists in threads of their own. A reader never waits for the writer. A unit of work writes nothing
itself: its methods collect statements, which the unit gives to the writer when it commits.
"""

import asyncio
from collections.abc import Collection, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TypeVar

from adapters_store.defaults import CACHE_BYTES, wall_clock
from adapters_store.private_folder import alone
from adapters_store.sql.execution_rows import FETCH
from adapters_store.sql.schema import Schema
from adapters_store.sql.sealing_keys import Resealing
from adapters_store.sqlite import claims, vacuum
from adapters_store.sqlite.connection import copy_database
from adapters_store.sqlite.database_file import size_of
from adapters_store.sqlite.migrate import prepare
from adapters_store.sqlite.moving import require_here
from adapters_store.sqlite.packing import Pack, ended_next
from adapters_store.sqlite.reads import SqliteReads
from adapters_store.sqlite.sealing_keys import batch, counts, forget_unused, note_key, require_keys
from adapters_store.sqlite.tallies import tally
from adapters_store.sqlite.unit import SqliteUnit
from adapters_store.sqlite.unit_of_work import SqliteUnitOfWork
from adapters_store.sqlite.workers import Workers
from adapters_store.sqlite.writer import DatabaseFile, Writer
from wfcore.errors import StoreUnavailable, Unreadable
from wfcore.model.execution import Execution
from wfcore.ports.store import Slots, Trimmed
from wfcore.ports.system import Sealer
from wfcore.time import DurationMs, EpochMs, Now, later

R = TypeVar("R")


class SqliteStore:
    """Implements `wfcore.ports.store.Store` on one file. Created by `SqliteStore.open`."""

    def __init__(
        self,
        path: Path,
        cache_bytes: int = CACHE_BYTES,
        sealer: Sealer | None = None,
        now: Now = wall_clock,
    ) -> None:
        self.path, self.sealer, self._now = path, sealer, now
        self._file = DatabaseFile(path)
        self._reads = SqliteReads(self._file, cache_bytes, sealer)
        self._writer = Writer(self._file, self._reads.committed)
        self._workers = Workers(path.parent / "workers")
        self._loop = asyncio.get_running_loop()

    @classmethod
    async def open(
        cls,
        path: Path,
        data: Path | None = None,
        cache_bytes: int = CACHE_BYTES,
        sealer: Sealer | None = None,
        now: Now = wall_clock,
        schema: Schema = Schema.NEWEST,
    ) -> "SqliteStore":
        """
        Open *path*, which is created or migrated as *schema* says. *data*: the folder of the other
        files of the service; None: the folder of *path*. *cache_bytes*: the bytes of memory for
        decoded records. *sealer* encrypts contents; None: contents are stored in clear. *now* gives
        the time of the store.

        Raises `StoreRefused` if the file is foreign, damaged or of a newer schema, has lost
        commits, is missing beside other data, or is sealed with another key (no file is changed);
        `StoreUnavailable` if the file cannot be used now.
        """
        await asyncio.to_thread(_prepare_alone, path, data, sealer, schema)
        store = cls(path, cache_bytes, sealer, now)
        try:
            await store._reads.reach()
        except StoreUnavailable:
            await store.close()
            raise
        return store

    def now(self) -> EpochMs:
        """The time of the process: all processes that share the file are on one machine."""
        return self._now()

    def unit(self) -> SqliteUnit:
        """
        A unit of work. Raises `RuntimeError` in an event loop other than the loop that opened the
        store.
        """
        if asyncio.get_running_loop() is not self._loop:
            raise RuntimeError("a store belongs to one event loop; other threads use wfcore.sync")
        return SqliteUnit(
            SqliteUnitOfWork(self._reads, self._now, writer=self._writer, ended=self._workers.ended)
        )

    def view(self) -> SqliteUnit:
        """A unit for reading only."""
        return self.unit()

    async def enlist(self, worker: str) -> None:
        """Hold the worker's lock until this store is closed or the process ends."""
        await asyncio.to_thread(self._workers.enlist, worker)

    async def claim(
        self,
        worker: str,
        lease_ms: DurationMs,
        slots: Slots,
        limit: int,
        *,
        ids: Collection[str] | None = None,
        able: Collection[str] | None = None,
    ) -> Sequence[Execution]:
        """Claim due executions for *worker*, fairly between accounts."""
        now, cache = self._now(), self._reads.cache
        claim = claims.SqliteClaim(
            worker, now, later(now, lease_ms), slots, limit, ids, able, cache
        )
        found, aside = list[Execution](), list[str]()
        for one in await self._writer.submit(claim):
            try:
                found.append(one.run or self._reads.decoded(FETCH, (one.id,), one.row))
            except Unreadable:
                aside.append(one.id)
        if aside:
            await self._writer.submit(partial(claims.set_aside, worker=worker, ids=aside))
        return found

    def unreadable(self) -> Mapping[tuple[str, str], str]:
        """
        The records that could not be read so far, by table and id, with the type of the error.
        """
        return self._reads.unreadable

    async def extend(
        self, worker: str, ids: Collection[str], lease_ms: DurationMs
    ) -> Mapping[str, EpochMs | None]:
        """
        Extend the leases that *worker* holds on *ids*; returns the ids of these leases, each with
        its `due_at`.
        """
        extend = partial(claims.extend, worker=worker, ids=ids, until=later(self._now(), lease_ms))
        return await self._writer.submit(extend)

    async def elect(self, duty: str, lease_ms: DurationMs) -> bool:
        """
        Returns True: all processes are on one machine, and the first process that finds a row takes
        it.
        """
        return True

    async def ping(self) -> None:
        """Write the smallest row durably. Raises `StoreUnavailable`."""
        await self._writer.submit(claims.touch)

    async def trim(
        self,
        audit_before: EpochMs,
        replays_before: EpochMs,
        sessions_before: EpochMs,
        deliveries_before: EpochMs,
        limit: int,
        trimmed: Trimmed | None = None,
    ) -> int:
        """Delete up to *limit* old records, oldest first. Returns the number of deleted records."""
        of_sessions, of_deliveries = [sessions_before] * 3, [deliveries_before] * 2
        before = (audit_before, replays_before, *of_sessions, *of_deliveries)
        job = partial(claims.trim, before=before, limit=limit, trimmed=trimmed, sealer=self.sealer)
        return await self._writer.submit(job)

    async def tally(self, limit: int) -> int:
        """
        Move the mark of the tallies forward by up to *limit* executions, and add as many notes.
        """
        return await self._writer.submit(partial(tally, now=self._now(), limit=limit))

    async def pack(self, limit: int) -> int:
        """
        Pack those of the next *limit* ended executions that fit in a cell; returns the number of
        executions examined.
        """
        found = await self._reads.rows(ended_next(self._now(), limit))
        if found:
            await self._writer.submit(Pack.of(found, self.sealer))
        return len(found)

    async def release(self, limit: int) -> int:
        """
        Return about *limit* unused bytes to the file system. Returns the number of bytes. Once no
        such bytes are left, the log is checkpointed, because only then the file shrinks.
        """
        gone, size = await self._writer.submit(partial(vacuum.release, limit=limit))
        if not gone:
            await asyncio.to_thread(vacuum.shrink, self.path, size)
        return gone

    async def gauges(self) -> Mapping[str, float]:
        """
        The gauges for metrics: the size of the file with its log, and the content of the cache.
        """
        size = await asyncio.to_thread(size_of, self.path)
        return {"wfcore_store_size_bytes": float(size), **self._reads.cache.gauges()}

    async def drop_caches(self) -> None:
        """Free the memory of caches. Raises `StoreUnavailable`."""
        self._reads.cache.entries.clear()
        self._reads.cache.filled = 0
        await self._reads.row(vacuum.SHRINK, ())
        await self._writer.submit(lambda cursor: cursor.execute(vacuum.SHRINK))

    async def reseal(self, sealer: Sealer, *, clear: bool = False) -> int:
        """
        Seal all cells that have another key with the first key of *sealer*, in batches, until a
        pass over all tables finds no such cell; returns the number of sealed cells. *clear*: cells
        in clear are sealed, too.
        """
        work = Resealing(sealer, clear)
        await self._writer.submit(partial(note_key, sealer=sealer))
        return await work.run(
            lambda table, after: self._writer.submit(lambda it: batch(it, work, table, after))
        )

    async def sealed(self) -> Mapping[str | None, int]:
        """The number of cells by the id of their key (None: in clear)."""
        return await self._writer.submit(counts)

    async def forget_keys(self, ids: Sequence[str]) -> Sequence[str]:
        """
        Forget the keys of *ids* that seal no cell, so that a start no longer requires these keys;
        returns the ids of the forgotten keys.
        """
        return await self._writer.submit(partial(forget_unused, ids=ids))

    async def backup(self, path: str) -> None:
        """Write a consistent copy to *path* while all work continues."""
        self._file.require_in_place()
        await asyncio.to_thread(copy_database, self.path, Path(path))

    async def close(self) -> None:
        """
        Do every submitted job, then release all connections and locks. Safe to call twice.

        The writer is closed last, because only a writer can checkpoint and remove the log.
        """
        await self._reads.close()
        await self._writer.close()
        self._workers.release()


def _prepare_alone(path: Path, data: Path | None, sealer: Sealer | None, schema: Schema) -> None:
    """Prepare the file; only one process at a time does this."""
    try:
        with alone(path.parent):
            prepare(path, data, schema)
            require_here(path)
            require_keys(path, sealer)
    except OSError as error:
        raise StoreUnavailable(detail=str(error)) from error
