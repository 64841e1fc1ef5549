"""
The audit log: one chain for all machines, linked in the transaction that stores an entry.

The head of the chain is the one row for which audited commits of all machines wait: a transaction
that adds an entry locks this row last before COMMIT. Starts, steps and ends of executions are not
audited, so busy transactions never wait for this row. Decision 90.
"""

import json
from collections.abc import Sequence
from itertools import takewhile
from typing import Any

from adapters_store.postgres.connection import Connection, rows_of
from adapters_store.sql.audit import CHAIN, DELETE, END, OLDEST, START, Audit, cells_of, chain_of
from adapters_store.sql.queries import query
from wfcore.model.event import AuditEntry, ChainedEntry, ChainPoint
from wfcore.ports.store import Trimmed
from wfcore.ports.system import Sealer
from wfcore.rules.audit.chain import extended, read_entry
from wfcore.time import EpochMs

LOCKED = f"{CHAIN} FOR UPDATE"
ADD = """INSERT INTO audit (number, previous, hash, body, record, id, at, execution_id)
    SELECT * FROM unnest(?::bigint[], ?::text[], ?::text[], ?::text[], ?::text[],
        ?::text[], ?::bigint[], ?::text[])"""
LISTED = "SELECT 0, body, id FROM audit WHERE at >= ? AND id > ? ORDER BY id LIMIT ?"


async def link(connection: Connection, entries: Sequence[tuple[str, str | None]]) -> None:
    """
    Add entries (text and record) to the end of the chain, and keep the chain locked until the
    transaction ends. AL-1.
    """
    chain, linked = extended(chain_of((await rows_of(connection, LOCKED))[0]), entries)
    await rows_of(connection, ADD, *zip(*map(_row, linked), strict=True))
    await rows_of(connection, END, chain.end.number, chain.end.hash)


def _row(entry: ChainedEntry) -> tuple[Any, ...]:
    """The values of a row. The columns for searches are taken from the text that was hashed."""
    about = json.loads(entry.text)
    place = (entry.number, entry.previous, entry.hash, entry.text, entry.record)
    return (*place, about["id"], about["at"], about.get("executionId"))


async def trim(
    connection: Connection,
    before: EpochMs,
    limit: int,
    trimmed: Trimmed | None,
    sealer: Sealer | None,
) -> int:
    """
    Delete up to *limit* old entries, and add an entry that records the deletion. Returns the number
    of deleted entries. AL-5, AL-9.
    """
    await rows_of(connection, LOCKED)
    rows = await rows_of(connection, OLDEST, limit)
    old = list(takewhile(lambda row: row[2] < before, rows))
    if old:
        number, hash, _ = old[-1]
        await rows_of(connection, DELETE, number)
        await rows_of(connection, START, number, hash)
        if trimmed is not None:
            made = trimmed(ChainPoint(number, hash))
            await link(connection, [cells_of(*made, sealer)])
    return len(old)


class PostgresAudit(Audit):
    """The queries of the audit log, in the SQL of PostgreSQL."""

    async def list(self, since: EpochMs, after_id: str | None, limit: int) -> Sequence[AuditEntry]:
        found = await self.unit.rows(query(LISTED, since, after_id or "", limit))
        return self.unit.readable("audit", lambda row, _: read_entry(row[1]), found)
