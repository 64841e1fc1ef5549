"""
The audit log: entries in one chain, linked in the transaction that stores them. Decision 90.

SQLite allows one write transaction at a time, across processes, so the order of commits is the
order of the chain. SQLite computes the columns for searches from the texts, so that columns and
texts cannot differ.
"""

from collections.abc import Sequence
from itertools import takewhile

from adapters_store.sql.audit import (
    CHAIN,
    DELETE,
    END,
    OLDEST,
    START,
    Audit,
    cells_of,
    chain_of,
    read,
)
from adapters_store.sql.queries import query
from adapters_store.sql.statement import Values, insert
from adapters_store.sqlite.connection import Cursor
from wfcore.model.event import AuditEntry, ChainPoint
from wfcore.ports.store import Trimmed
from wfcore.ports.system import Sealer
from wfcore.rules.audit.chain import extended
from wfcore.time import EpochMs


def link(cursor: Cursor, rows: Sequence[Values]) -> Sequence[Values]:
    """Give each entry (its text and record) its position at the end of the chain. AL-1."""
    chain, entries = extended(chain_of(cursor.execute(CHAIN).fetchone()), rows)
    cursor.execute(END, (chain.end.number, chain.end.hash))
    return [(one.number, one.previous, one.hash, one.text, one.record) for one in entries]


ADD_AUDIT = insert("audit", ("number", "previous", "hash", "body", "record"), fill=link)


FIRST = """SELECT 0, body, id FROM audit
    WHERE id >= (SELECT min(+id) FROM audit WHERE at >= ?) AND +at >= ? ORDER BY id LIMIT ?"""
"""
The query for the first page. It begins at the first id that counts: older entries are not even
read.
"""
NEXT = "SELECT 0, body, id FROM audit WHERE +at >= ? AND id > ? ORDER BY id LIMIT ?"


def trim(
    cursor: Cursor, before: EpochMs, limit: int, trimmed: Trimmed | None, sealer: Sealer | None
) -> int:
    """
    Delete up to *limit* old entries from the beginning of the chain, and add an entry that records
    the deletion. Returns the number of deleted entries. An entry that cannot be read counts as old
    as the entry before it. AL-5, AL-9.
    """
    rows = cursor.execute(OLDEST, (limit,)).fetchall()
    old = list(takewhile(lambda row: row[2] is None or row[2] < before, rows))
    if old:
        number, hash, _ = old[-1]
        cursor.execute(DELETE, (number,))
        cursor.execute(START, (number, hash))
        if trimmed is not None:
            for values in link(cursor, [cells_of(*trimmed(ChainPoint(number, hash)), sealer)]):
                cursor.execute(ADD_AUDIT.one, values)
    return len(old)


class SqliteAudit(Audit):
    """The queries of the audit log, whose columns are computed from the texts."""

    async def list(self, since: EpochMs, after_id: str | None, limit: int) -> Sequence[AuditEntry]:
        if after_id is None:
            rows = query(FIRST, since, since, limit)
        else:
            rows = query(NEXT, since, after_id, limit)
        found = await self.unit.rows(rows)
        return self.unit.readable("audit", lambda row, _: read(row[1:]), found)
