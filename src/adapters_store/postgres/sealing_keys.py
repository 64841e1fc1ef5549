"""
The keys that seal cells: the keys that a start needs, and resealing. Decision 86.

Cells and their resealing are in `adapters_store.sql.sealing_keys`.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from adapters_store.postgres.connection import WHOLE_S, Connection, Pool, lent, numbered, rows_of
from adapters_store.sql.sealing_keys import (
    FORGET,
    Resealing,
    counting,
    lacking,
    last_key,
    page,
    summed,
)
from wfcore.errors import Stale, StoreRefused
from wfcore.ports.system import Sealer

KEYS = "SELECT id FROM seal_keys ORDER BY number DESC"
NOTE = "INSERT INTO seal_keys (id) VALUES ($1) ON CONFLICT (id) DO NOTHING"


async def require_keys(connection: Connection, location: str, sealer: Sealer | None) -> None:
    """
    Let *sealer* seal from now on, and record its key. Raises `StoreRefused` if *sealer* lacks a key
    that may have sealed a cell.
    """
    known = [row[0] for row in await connection.fetch(KEYS)]
    have = () if sealer is None else sealer.keys
    missing = [id for id in known if id not in have]
    if missing:
        raise StoreRefused(lacking(location, missing, sealer))
    if sealer is not None:
        sealer.make()
        await connection.execute(NOTE, sealer.keys[0])


async def batch(
    pool: Pool, work: Resealing, table: str, after: Sequence[Any] | None
) -> Sequence[Any] | None:
    """
    Seal one batch of *work* after the key *after*. Returns the last key of the batch; None if there
    was no row.
    """
    sql, values = page(table, after)
    async with lent(pool) as connection:
        rows = await rows_of(connection, sql, *values)
        changes = work.changes(table, rows)
    with suppress(Stale):  # it stood in somebody's way: the next pass finds these rows again
        async with lent(pool) as connection, connection.transaction():
            for change, cells in changes:
                await connection.execute(numbered(change), *cells)
    return last_key(table, rows)


KEY_OF_CELL = """CASE WHEN encode(substr({0}, 1, 1), 'hex') >= '80'
    THEN encode(substr({0}, 6, 4), 'hex') END"""
"""`adapters_store.sql.packing.KEY_OF_CELL` for PostgreSQL: packed cells are moved unchanged."""


async def counts(connection: Connection) -> Mapping[str | None, int]:
    """The number of cells by the id of their key (None: in clear)."""
    found: list[Any] = []
    for sql in counting(KEY_OF_CELL):
        found += await connection.fetch(numbered(sql), timeout=WHOLE_S)
    return summed(found)


async def forget_unused(connection: Connection, ids: Sequence[str]) -> Sequence[str]:
    """
    Forget the keys of *ids* that seal no cell, so that a start no longer requires these keys;
    returns the ids of the forgotten keys.
    """
    used = await counts(connection)
    gone = [id for id in ids if id not in used]
    await connection.executemany(numbered(FORGET), [(id,) for id in gone])
    return gone
