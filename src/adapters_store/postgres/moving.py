"""The PostgreSQL database as one side of a move. See `adapters_store.sql.moving`."""
# ruff: noqa: S608 - only constant names of this package are put into the text

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from attrs import define, field

from adapters_store.postgres.audit import link
from adapters_store.postgres.connection import (
    Connection,
    Pool,
    close_pool,
    lent,
    location_of,
    numbered,
    open_pool,
    rows_of,
)
from adapters_store.postgres.migrate import prepare
from adapters_store.sql import moving
from adapters_store.sql.moving import Elsewhere, KeyRange, Mark, MoveState, Row
from wfcore.errors import StoreRefused
from wfcore.model.event import AuditEntry
from wfcore.rules.audit.chain import entry_text

HAS_NODES = "SELECT to_regclass('nodes') IS NOT NULL"
HAS_MARK = "SELECT to_regclass('moving') IS NOT NULL"
COLUMNS = """SELECT attname::text FROM pg_attribute
    WHERE attrelid = ?::text::regclass AND attnum > 0 AND NOT attisdropped ORDER BY attnum"""
SUMMED = {
    "webhook_tallies": "(SELECT webhook_id, date, status, 0::bigint AS slot,"
    " sum(count)::bigint AS count, max(last_at) AS last_at"
    " FROM webhook_tallies GROUP BY webhook_id, date, status) AS summed"
}
"""The tables that are read as sums: a count is the sum of its slots."""
FENCE = """CREATE OR REPLACE FUNCTION wfcore_moved() RETURNS trigger LANGUAGE plpgsql
    AS $$ BEGIN
        IF current_setting('wfcore.filling', true) IS DISTINCT FROM 'on' THEN
            RAISE EXCEPTION 'this database was moved, or is being filled';
        END IF;
        RETURN NULL;
    END $$"""
FILLING = "SET LOCAL wfcore.filling = 'on'"
"""The statement that lets the writes of a transaction pass the fence."""
NUMBER = "SELECT setval(pg_get_serial_sequence('seal_keys', 'number'), max(number)) FROM seal_keys"
"""
The statement that makes the next key get a higher number than the copied keys, which have their
numbers already.
"""


async def mark_of(connection: Connection) -> Mark | None:
    if not await connection.fetchval(HAS_MARK):
        return None
    state, id, other = (await rows_of(connection, moving.READ_MARK))[0]
    return Mark(MoveState(state), id, other)


async def require_here(connection: Connection, location: str) -> None:
    """
    Raises `StoreRefused` if the service of the database was moved elsewhere, or has not fully
    arrived.
    """
    mark = await mark_of(connection)
    if mark is not None:
        raise Elsewhere(mark.refusal(location))


@define(eq=False)
class PostgresSide:
    """Implements `adapters_store.sql.moving.Side`. Created by `PostgresSide.opened`."""

    location: str
    _pool: Pool = field(repr=False)
    _locking: Connection | None = field(default=None, init=False, repr=False)

    @classmethod
    @asynccontextmanager
    async def opened(cls, url: str, *, prepared: bool = True) -> "AsyncIterator[PostgresSide]":
        """
        A side for the database at *url*, which gets the newest schema if *prepared*. Raises
        `StoreRefused` as for a server, `StoreUnavailable`, and `ValueError` for an invalid URL.
        """
        pool = await open_pool(url)
        try:
            if prepared:
                await prepare(pool, location_of(url))
            yield cls(location_of(url), pool)
        finally:
            await close_pool(pool)

    async def mark(self) -> Mark | None:
        async with lent(self._pool) as connection:
            return await mark_of(connection)

    async def live(self) -> Sequence[str]:
        async with lent(self._pool) as connection:
            if not await connection.fetchval(HAS_NODES):
                return ()
            now = await connection.fetchval("SELECT wfcore_now()")
            rows = await rows_of(connection, moving.NODES)
        return moving.living((body for (body,) in rows), now)

    async def note(self, entry: AuditEntry) -> None:
        async with lent(self._pool) as connection, connection.transaction():
            await link(connection, [(entry_text(entry), None)])

    async def service_id(self) -> str:
        async with lent(self._pool) as connection:
            return str(await connection.fetchval("SELECT id FROM audit_chain"))

    async def columns(self, table: str) -> Sequence[str]:
        async with lent(self._pool) as connection:
            return [name for (name,) in await rows_of(connection, COLUMNS, table)]

    readable = columns

    @asynccontextmanager
    async def locked(self) -> AsyncIterator[None]:
        async with lent(self._pool) as connection, connection.transaction():
            await connection.execute(f"LOCK TABLE {', '.join(moving.MOVED)} IN EXCLUSIVE MODE")
            self._locking = connection
            yield

    async def rows(self, table: str, columns: Sequence[str]) -> AsyncIterator[Row]:
        assert self._locking is not None
        text = moving.selected(table, columns, columns, SUMMED.get(table))
        async for row in self._locking.cursor(text + moving.ordered(table)):
            yield tuple(row)

    async def between(self, span: KeyRange) -> list[Row]:
        where, values = span.where
        text = moving.selected(span.table, span.columns, span.columns, SUMMED.get(span.table))
        async with lent(self._pool) as connection:
            return await rows_of(connection, text + where + moving.ordered(span.table), *values)

    async def replace(self, span: KeyRange, rows: Sequence[Row]) -> None:
        where, values = span.where
        async with lent(self._pool) as connection, connection.transaction():
            if await mark_of(connection) is None:  # read, it also stays until the end
                raise StoreRefused(moving.ended(self.location))
            await connection.execute(FILLING)
            await connection.execute(numbered(f"DELETE FROM {span.table}{where}"), *values)
            await connection.copy_records_to_table(span.table, records=rows, columns=span.columns)

    @asynccontextmanager
    async def begun(self, mark: Mark) -> AsyncIterator[None]:
        async with lent(self._pool) as connection, connection.transaction():
            await _take(connection, mark)
            yield

    async def fence(self, mark: Mark) -> None:
        assert self._locking is not None
        await _take(self._locking, mark)

    async def end(self) -> None:
        async with lent(self._pool) as connection, connection.transaction():
            await connection.execute(NUMBER)
            for table in moving.MOVED:
                await connection.execute(f"DROP TRIGGER IF EXISTS moved ON {table}")
            await connection.execute(moving.UNMARKED)


async def _take(connection: Connection, mark: Mark) -> None:
    await connection.execute(moving.MARKED)
    await connection.execute(numbered(moving.MARK), mark.state.value, mark.id, mark.other)
    await connection.execute(FENCE)
    for table in moving.MOVED:
        await connection.execute(
            f"CREATE TRIGGER moved BEFORE INSERT OR UPDATE OR DELETE ON {table}"
            " FOR EACH STATEMENT EXECUTE FUNCTION wfcore_moved()"
        )
