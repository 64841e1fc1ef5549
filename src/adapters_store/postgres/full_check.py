"""
The full check: every row that references another, and every record. See `sqlite.full_check`.

The check writes nothing, and each batch is a statement of its own, so that nobody waits. Pages and
indexes are checked by the server's own tools.
"""

from collections.abc import AsyncIterator

from adapters_store.postgres.connection import WHOLE_S, Pool, lent, numbered, rows_of
from adapters_store.sql.full_check import (
    BELONGS,
    TABLES,
    CheckEvent,
    CheckStage,
    batch,
    broken,
    foreign,
    homeless,
)
from wfcore.ports.system import Sealer


async def check(pool: Pool, sealer: Sealer | None) -> AsyncIterator[CheckEvent]:
    """
    Read every record; yields each finding at once. *sealer* opens sealed cells. Raises
    `StoreUnavailable`.
    """
    for belonging in BELONGS:
        stage, sql = foreign(*belonging)
        yield stage
        async with lent(pool) as connection:
            found = await connection.fetch(numbered(sql), timeout=WHOLE_S)
        for (id,) in found:
            yield homeless(*belonging, id)
    for table in TABLES:
        yield CheckStage(f"records of {table.name}")
        last = None
        while True:
            sql, values = batch(table, last)
            async with lent(pool) as connection:
                rows = await rows_of(connection, sql, *values)
            if not rows:
                break
            for row in rows:
                for finding in broken(table, row, sealer):
                    yield finding
            last = rows[-1]
