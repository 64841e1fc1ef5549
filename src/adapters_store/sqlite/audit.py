"""
The audit log: entries in one chain, linked in the transaction that stores them. Decision 90.

SQLite allows one write transaction at a time, across processes, so the order of commits is the
order of the chain. The table contains the texts as they were hashed; SQLite computes its other
columns from them, so these cannot differ.
"""

import sys
from collections.abc import Sequence
from itertools import takewhile
from typing import Any

from attrs import define

from adapters_store.sqlite.connection import Connection, Cursor
from adapters_store.sqlite.kinds import (
    ADD_AUDIT,
    CHAIN,
    Cells,
    InClear,
    Row,
    chain_of,
    link,
    sealed,
    value_of,
)
from adapters_store.sqlite.queries import query
from adapters_store.sqlite.unit_of_work import UnitOfWork
from wfcore.model.event import AuditChain, AuditEntry, ChainedEntry, ChainPoint
from wfcore.ports.store import Trimmed
from wfcore.ports.system import Sealer
from wfcore.rules.audit.chain import BEGINNING, entry_text, read_entry
from wfcore.rules.canonical import canonical
from wfcore.time import EpochMs
from wfcore.wire.records import reader_of

FIRST = """SELECT 0, body, id FROM audit
    WHERE id >= (SELECT min(+id) FROM audit WHERE at >= ?) AND +at >= ? ORDER BY id LIMIT ?"""
"""From the first id that counts on: what is older is not even looked at."""
NEXT = "SELECT 0, body, id FROM audit WHERE +at >= ? AND id > ? ORDER BY id LIMIT ?"

START = "UPDATE audit_chain SET start_number = ?, start_hash = ?"
OLDEST = "SELECT number, hash, at FROM audit ORDER BY number LIMIT ?"
DELETE = "DELETE FROM audit WHERE number <= ?"

NEWEST = "SELECT number, body, id FROM audit WHERE number < ? ORDER BY number DESC LIMIT ?"
CHAINED = "SELECT number, previous, hash, body, record, id FROM audit"


def trim(
    cursor: Cursor, before: EpochMs, limit: int, trimmed: Trimmed | None, sealer: Sealer | None
) -> int:
    """
    Delete up to *limit* old entries from the beginning of the chain, and add the one that says so;
    returns how many. An entry that cannot be read counts as old as the one before it. AL-5, AL-9.
    """
    rows = cursor.execute(OLDEST, (limit,)).fetchall()
    old = list(takewhile(lambda row: row[2] is None or row[2] < before, rows))
    if old:
        number, hash, _ = old[-1]
        cursor.execute(DELETE, (number,))
        cursor.execute(START, (number, hash))
        if trimmed is not None:
            for values in link(cursor, [cells_of(*trimmed(ChainPoint(number, hash)), sealer)]):
                cursor.execute(ADD_AUDIT, values)
    return len(old)


def cells_of(
    entry: AuditEntry, record: str | None, sealer: Sealer | None
) -> tuple[str, str | None]:
    """Text and record of an entry as they are stored."""
    if record is not None:
        record = sealed(sealer, record, "audit", "record", entry.id)
    return entry_text(entry), record


def record_in(cell: str, id: str, sealer: Sealer | None) -> str | None:
    """
    The record in a cell. One that cannot be opened is not the original; one in clear is none, since
    anybody could have written it. SC-10.
    """
    try:
        return Cells(sealer, "audit", (id,)).opened(cell, "record")
    except InClear:
        return None
    except ValueError:
        return cell


def read(row: Row) -> AuditEntry:
    """The entry in a row that begins with its text."""
    return read_entry(row[0])


def _chained(row: Row, sealer: Sealer | None) -> ChainedEntry:
    """The hash covers the record in clear."""
    number, *cells, id = row
    previous, hash, text, record = (_text(cell) for cell in cells)
    if record is not None:
        record = record_in(record, id, sealer)
    return ChainedEntry(number, previous, hash, text, record)


def _text(cell: Any) -> Any:
    """A cell as it was stored; one of another type was not written by us, and its hash differs."""
    return cell if cell is None or isinstance(cell, str) else repr(cell)


BATCH = 1_000
read_old = reader_of(AuditEntry)
OLD = "SELECT id, body FROM audit_unlinked WHERE id > ? ORDER BY id LIMIT ?"


def link_old(connection: Connection) -> None:
    """Add the entries that a release before migration 13 stored to the chain, by id."""
    cursor = connection.cursor()
    last = ""
    while rows := cursor.execute(OLD, (last, BATCH)).fetchall():
        for values in link(cursor, [(_text_of(*row), None) for row in rows]):
            cursor.execute(ADD_AUDIT, values)
        last = rows[-1][0]
    cursor.execute("DROP TABLE audit_unlinked")


def _text_of(id: str, body: str) -> str:
    """An old entry in today's form; one that cannot be read is embedded unchanged."""
    try:
        entry = read_old(value_of(body))
    except Exception:  # whatever is wrong with a record of long ago, it keeps nobody from starting
        return canonical({"id": id, "unreadable": body})
    return entry_text(entry)


@define(eq=False)
class Audit:
    unit: UnitOfWork

    async def list(self, since: EpochMs, after_id: str | None, limit: int) -> Sequence[AuditEntry]:
        if after_id is None:
            rows = query(FIRST, since, since, limit, tables="audit")
        else:
            rows = query(NEXT, since, after_id, limit, tables="audit")
        found = await self.unit.rows(rows)
        return self.unit.readable("audit", lambda row, _: read(row[1:]), found)

    async def newest(self, before: int | None, limit: int) -> Sequence[tuple[int, AuditEntry]]:
        above = sys.maxsize if before is None else before
        found = await self.unit.rows(query(NEWEST, above, limit, tables="audit"))
        return self.unit.readable("audit", lambda row, _: (row[0], read_entry(row[1])), found)

    async def chain(self) -> AuditChain:
        found = await self.unit.rows(query(CHAIN, tables="audit audit_chain"))
        return chain_of(found[0]) if found else AuditChain("", BEGINNING, BEGINNING)

    async def chained(self, after: int, limit: int) -> Sequence[ChainedEntry]:
        sql = CHAINED + " WHERE number > ? ORDER BY number LIMIT ?"
        found = await self.unit.rows(query(sql, after, limit, tables="audit"))
        return [_chained(row, self.unit.sealer) for row in found]

    async def of_execution(self, execution_id: str) -> Sequence[ChainedEntry]:
        sql = CHAINED + " WHERE execution_id = ? ORDER BY number"
        found = await self.unit.rows(query(sql, execution_id, tables="audit"))
        return [_chained(row, self.unit.sealer) for row in found]
