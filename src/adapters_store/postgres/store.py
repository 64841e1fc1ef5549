"""
The store for several machines: PostgreSQL, the only source of truth and of time.

Each process has a few connections. The guarantees that SQLite's single writer gives for free (room
in a group, one chain, one claim at a time) come from an advisory lock, a row lock or `SKIP LOCKED`
here, and no row is written by every commit. Decisions 100, 154 and 158.
"""

from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import TypeVar
from uuid import uuid4

from adapters_store.defaults import CACHE_BYTES
from adapters_store.postgres import audit, claims, sealing_keys
from adapters_store.postgres.clock import CLOCKS, FIRST, NOW, DatabaseClock
from adapters_store.postgres.committer import Committer
from adapters_store.postgres.connection import (
    Pool,
    close_pool,
    lent,
    location_of,
    open_pool,
    rows_of,
)
from adapters_store.postgres.full_check import check
from adapters_store.postgres.migrate import prepare
from adapters_store.postgres.moving import require_here
from adapters_store.postgres.queries import EXECUTION
from adapters_store.postgres.reads import PostgresReads
from adapters_store.postgres.sealing_keys import NOTE, require_keys
from adapters_store.postgres.statements import Statements
from adapters_store.postgres.unit import PostgresUnit
from adapters_store.postgres.unit_of_work import PostgresUnitOfWork
from adapters_store.sql.cache import RecordCache
from adapters_store.sql.full_check import CheckEvent
from adapters_store.sql.record_queries import OLD
from adapters_store.sql.schema import Schema
from adapters_store.sql.sealing_keys import Resealing
from wfcore.errors import StoreUnavailable, Unreadable
from wfcore.model.execution import Execution
from wfcore.ports.store import Slots, Trimmed
from wfcore.ports.system import Sealer
from wfcore.time import DurationMs, EpochMs

R = TypeVar("R")

WRITE = "UPDATE audit_chain SET end_number = end_number"
"""
The smallest write that fails if the database cannot be written: it is full, moved or read-only.
Only audited commits wait for the row.
"""


ELECT = """INSERT INTO duties AS d (duty, holder, until)
    SELECT $1::text, $2::text, wfcore_now() + $3::bigint WHERE NOT EXISTS (
        SELECT 1 FROM duties WHERE duty = $1 AND holder <> $2 AND until >= wfcore_now())
    ON CONFLICT (duty) DO UPDATE SET holder = excluded.holder, until = excluded.until
    WHERE d.holder = excluded.holder OR d.until < wfcore_now() RETURNING 1"""
"""The statement that elects a process. A process that is not elected writes and locks nothing."""
RESIGN = "DELETE FROM duties WHERE holder = ?"


class PostgresStore:
    """Implements `wfcore.ports.store.Store`. Created by `PostgresStore.open`."""

    def __init__(
        self,
        pool: Pool,
        statements: Statements,
        clock: DatabaseClock,
        location: str,
        cache_bytes: int = CACHE_BYTES,
        sealer: Sealer | None = None,
    ) -> None:
        self.pool, self.location, self.sealer = pool, location, sealer
        self._clock, self._name = clock, uuid4().hex
        self._reads = PostgresReads(RecordCache(cache_bytes), sealer, pool=pool)
        self._writer = Committer(pool, statements, self._reads.stored)

    @classmethod
    async def open(
        cls,
        url: str,
        cache_bytes: int = CACHE_BYTES,
        sealer: Sealer | None = None,
        schema: Schema = Schema.NEWEST,
    ) -> "PostgresStore":
        """
        Open the database at *url*, which is created or migrated as *schema* says. *cache_bytes*,
        *sealer*: as for SQLite.

        Raises `StoreRefused` if the database belongs to another application, has a newer schema, is
        sealed with another key, or does not let us in; `StoreUnavailable` if it cannot be used now.
        """
        pool, location = await open_pool(url), location_of(url)
        try:
            await prepare(pool, location, schema)
            async with lent(pool) as connection:
                await require_here(connection, location)
                await require_keys(connection, location, sealer)
                statements = await Statements.of(connection)
                server = str(
                    await connection.fetchval("SELECT system_identifier FROM pg_control_system()")
                )
                clock = CLOCKS.setdefault(server, DatabaseClock())
                for _ in range(FIRST):
                    await clock.measure(partial(connection.fetchval, NOW))
        except BaseException:
            await close_pool(pool)
            raise
        return cls(pool, statements, clock, location, cache_bytes, sealer)

    def now(self) -> EpochMs:
        """The time of the database."""
        return self._clock.now()

    def unit(self) -> PostgresUnit:
        """A unit of work."""
        return PostgresUnit(PostgresUnitOfWork(self._reads, self.now, committer=self._writer))

    def view(self) -> PostgresUnit:
        """A unit for reading only."""
        return self.unit()

    async def enlist(self, worker: str) -> None:
        """Do nothing: a lost connection does not show that a worker has ended. Leases decide."""

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
        rows = await claims.PostgresClaim(worker, lease_ms, slots, limit, ids, able).take(self.pool)
        found: list[Execution] = []
        aside: list[str] = []
        for row in rows:
            try:
                found.append(self._reads.decoded(EXECUTION, (row[-1],), row))
            except Unreadable:
                aside.append(row[-1])
        if aside:
            async with lent(self.pool) as connection:
                values = (claims.UNREADABLE, worker, aside)
                await rows_of(connection, claims.SET_ASIDE, *values)
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
        async with lent(self.pool) as connection:
            rows = await rows_of(connection, claims.EXTEND, worker, list(ids), lease_ms)
        return dict(rows)

    async def elect(self, duty: str, lease_ms: DurationMs) -> bool:
        """
        Take or renew *duty* if no other process holds it; returns whether this process holds it
        now. The row of the duty has the holder and the end of the lease, in database time.
        """
        async with lent(self.pool) as connection:
            return bool(await rows_of(connection, ELECT, duty, self._name, lease_ms))

    async def ping(self) -> None:
        """Write something small, durably, and measure the clock. Raises `StoreUnavailable`."""
        async with lent(self.pool) as connection:
            await connection.fetch(WRITE)
            await self._clock.measure(partial(connection.fetchval, NOW))

    async def trim(
        self,
        audit_before: EpochMs,
        replays_before: EpochMs,
        sessions_before: EpochMs,
        deliveries_before: EpochMs,
        limit: int,
        trimmed: Trimmed | None = None,
    ) -> int:
        """Delete up to *limit* old records, oldest first; returns the number of deleted records."""
        before = (replays_before, *[sessions_before] * 3, *[deliveries_before] * 2)
        async with lent(self.pool) as connection, connection.transaction():
            gone = await audit.trim(connection, audit_before, limit, trimmed, self.sealer)
            for sql, at in zip(OLD, before, strict=True):
                gone += len(await rows_of(connection, f"{sql} RETURNING 1", at, limit - gone))
        return gone

    async def gauges(self) -> Mapping[str, float]:
        """The gauges for metrics: the size of the database, and the content of the cache."""
        async with lent(self.pool) as connection:
            size = await connection.fetchval("SELECT pg_database_size(current_database())")
        return {"wfcore_store_size_bytes": float(size), **self._reads.cache.gauges()}

    async def drop_caches(self) -> None:
        """Free the memory of caches."""
        self._reads.cache.entries.clear()
        self._reads.cache.filled = 0

    async def tally(self, limit: int) -> int:
        """Returns 0: totals are counted."""
        return 0

    async def pack(self, limit: int) -> int:
        """
        Returns 0, and packs nothing: deleted rows would stay until vacuum. Executions that SQLite
        packed can be read.
        """
        return 0

    async def release(self, limit: int) -> int:
        """Returns 0: the server's own vacuum releases space."""
        return 0

    async def reseal(self, sealer: Sealer, *, clear: bool = False) -> int:
        """
        Seal cells as for SQLite. Each batch is a transaction, and locks only the rows that it
        changes.
        """
        work = Resealing(sealer, clear)
        async with lent(self.pool) as connection:
            await connection.execute(NOTE, sealer.keys[0])
        return await work.run(partial(sealing_keys.batch, self.pool, work))

    async def sealed(self) -> Mapping[str | None, int]:
        """The number of cells by the id of their key (None: in clear)."""
        async with lent(self.pool) as connection:
            return await sealing_keys.counts(connection)

    async def forget_keys(self, ids: Sequence[str]) -> Sequence[str]:
        """
        Forget the keys of *ids* that seal no cell, so that a start no longer requires these keys;
        returns the ids of the forgotten keys.
        """
        async with lent(self.pool) as connection:
            return await sealing_keys.forget_unused(connection, ids)

    def check(self) -> AsyncIterator[CheckEvent]:
        """Read everything; yields each finding at once."""
        return check(self.pool, self.sealer)

    async def close(self) -> None:
        """Finish all submitted work, then close every connection. Safe to call twice."""
        await self._writer.close()
        await self._reads.close()
        with suppress(StoreUnavailable):
            async with lent(self.pool) as connection:
                await rows_of(connection, RESIGN, self._name)
        await close_pool(self.pool)
