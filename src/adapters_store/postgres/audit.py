"""
The audit log: one chain for all machines, linked in the transaction that stores an entry.

The chain's head is the one row that audited commits of all machines wait for: a transaction that
adds an entry locks it last before COMMIT. Executions that are started, worked on and ended are not
audited, so that busy transactions never wait for it. Decision 90.
"""

import json
from collections.abc import Sequence
from itertools import takewhile
from typing import Any

from adapters_store.postgres.connection import Connection, rows_of
from adapters_store.sql import audit
from adapters_store.sql.queries import query
from wfcore.model.event import AuditChain, AuditEntry, ChainedEntry, ChainPoint
from wfcore.ports.store import Trimmed
from wfcore.ports.system import Sealer
from wfcore.rules.audit.chain import BEGINNING, extended, read_entry
from wfcore.time import EpochMs

CHAIN = "SELECT id, start_number, start_hash, end_number, end_hash FROM audit_chain"
LOCKED = f"{CHAIN} FOR UPDATE"
END = "UPDATE audit_chain SET end_number = ?, end_hash = ?"
START = "UPDATE audit_chain SET start_number = ?, start_hash = ?"
ADD = """INSERT INTO audit (number, previous, hash, body, record, id, at, execution_id)
    SELECT * FROM unnest(?::bigint[], ?::text[], ?::text[], ?::text[], ?::text[],
        ?::text[], ?::bigint[], ?::text[])"""
OLDEST = "SELECT number, hash, at FROM audit ORDER BY number LIMIT ?"
DELETE = "DELETE FROM audit WHERE number <= ?"
CHAINED = "SELECT number, previous, hash, body, record, id FROM audit"
LISTED = "SELECT 0, body, id FROM audit WHERE at >= ? AND id > ? ORDER BY id LIMIT ?"


def _chain(row: Sequence[Any]) -> AuditChain:
    id, start, start_hash, end, end_hash = row
    return AuditChain(id, ChainPoint(start, start_hash), ChainPoint(end, end_hash))


async def link(connection: Connection, entries: Sequence[tuple[str, str | None]]) -> None:
    """Add entries (text and record) to the end of the chain, which stays locked. AL-1."""
    chain, linked = extended(_chain((await rows_of(connection, LOCKED))[0]), entries)
    await rows_of(connection, ADD, *zip(*map(_row, linked), strict=True))
    await rows_of(connection, END, chain.end.number, chain.end.hash)


def _row(entry: ChainedEntry) -> tuple[Any, ...]:
    """The columns that are searched are taken from the text that was hashed."""
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
    Delete up to *limit* old entries, and add one that records the deletion. Returns the number of
    deleted entries. AL-5, AL-9.
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
            await link(connection, [audit.cells_of(*made, sealer)])
    return len(old)


def _chained(row: Sequence[Any], sealer: Sealer | None) -> ChainedEntry:
    """The hash covers the record in clear."""
    number, previous, hash, text, record, id = row
    if record is not None:
        record = audit.record_in(record, id, sealer)
    return ChainedEntry(number, previous, hash, text, record)


class PostgresAudit(audit.Audit):
    """The queries of the audit log, in the words of this database."""

    async def list(self, since: EpochMs, after_id: str | None, limit: int) -> Sequence[AuditEntry]:
        found = await self.unit.rows(query(LISTED, since, after_id or "", limit))
        return self.unit.readable("audit", lambda row, _: read_entry(row[1]), found)

    async def chain(self) -> AuditChain:
        found = await self.unit.rows(query(CHAIN))
        return _chain(found[0]) if found else AuditChain("", BEGINNING, BEGINNING)

    async def chained(self, after: int, limit: int) -> Sequence[ChainedEntry]:
        sql = f"{CHAINED} WHERE number > ? ORDER BY number LIMIT ?"
        found = await self.unit.rows(query(sql, after, limit))
        return [_chained(row, self.unit.sealer) for row in found]

    async def of_execution(self, execution_id: str) -> Sequence[ChainedEntry]:
        sql = f"{CHAINED} WHERE execution_id = ? ORDER BY number"
        found = await self.unit.rows(query(sql, execution_id))
        return [_chained(row, self.unit.sealer) for row in found]
