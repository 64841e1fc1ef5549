"""
The audit log: entries in one chain, linked in the transaction that stores them. Decision 90.

The table contains the texts as they were hashed, and their hashes.
"""

import sys
from collections.abc import Sequence
from typing import Any

from attrs import define

from adapters_store.sql.cells import Cells, InClear, Row, sealed
from adapters_store.sql.queries import query
from adapters_store.sql.unit_of_work import SqlUnitOfWork
from wfcore.model.event import AuditChain, AuditEntry, ChainedEntry, ChainPoint
from wfcore.ports.system import Sealer
from wfcore.rules.audit.chain import BEGINNING, entry_text, read_entry

NEWEST = "SELECT number, body, id FROM audit WHERE number < ? ORDER BY number DESC LIMIT ?"
CHAINED = "SELECT number, previous, hash, body, record, id FROM audit"
CHAIN = "SELECT id, start_number, start_hash, end_number, end_hash FROM audit_chain"
END = "UPDATE audit_chain SET end_number = ?, end_hash = ?"
START = "UPDATE audit_chain SET start_number = ?, start_hash = ?"
OLDEST = "SELECT number, hash, at FROM audit ORDER BY number LIMIT ?"
DELETE = "DELETE FROM audit WHERE number <= ?"


def chain_of(row: Row) -> AuditChain:
    """The chain of the audit log, from the only row of its table. Decision 90."""
    id, start, start_hash, end, end_hash = row
    return AuditChain(id, _point(start, start_hash), _point(end, end_hash))


def _point(number: object, hash: str) -> ChainPoint:
    """A point as the store records it; a value that is not a number matches no entry."""
    return ChainPoint(number if isinstance(number, int) else -1, hash)


def cells_of(
    entry: AuditEntry, record: str | None, sealer: Sealer | None
) -> tuple[str, str | None]:
    """The text and the record of an entry, as they are stored."""
    if record is not None:
        record = sealed(sealer, record, "audit", "record", entry.id)
    return entry_text(entry), record


def record_in(cell: str, id: str, sealer: Sealer | None) -> str | None:
    """
    The record in *cell*. A record in clear counts as no record, because anybody could have written
    it. A record that cannot be opened is returned as it is: it is not the original. SC-10.
    """
    try:
        return Cells(sealer, "audit", (id,)).opened(cell, "record")
    except InClear:
        return None
    except ValueError:
        return cell


def read(row: Row) -> AuditEntry:
    """The entry in *row*, whose first column is the text of the entry."""
    return read_entry(row[0])


def _chained(row: Row, sealer: Sealer | None) -> ChainedEntry:
    """The entry in *row*, with its record opened: the hash covers the record in clear."""
    number, *cells, id = row
    previous, hash, text, record = (_text(cell) for cell in cells)
    if record is not None:
        record = record_in(record, id, sealer)
    return ChainedEntry(number, previous, hash, text, record)


def _text(cell: Any) -> Any:
    """The text in *cell*. A value of another type is not ours; its `repr` has another hash."""
    return cell if cell is None or isinstance(cell, str) else repr(cell)


@define(eq=False)
class Audit:
    unit: SqlUnitOfWork

    async def newest(self, before: int | None, limit: int) -> Sequence[tuple[int, AuditEntry]]:
        above = sys.maxsize if before is None else before
        found = await self.unit.rows(query(NEWEST, above, limit))
        return self.unit.readable("audit", lambda row, _: (row[0], read_entry(row[1])), found)

    async def chain(self) -> AuditChain:
        found = await self.unit.rows(query(CHAIN))
        return chain_of(found[0]) if found else AuditChain("", BEGINNING, BEGINNING)

    async def chained(self, after: int, limit: int) -> Sequence[ChainedEntry]:
        sql = CHAINED + " WHERE number > ? ORDER BY number LIMIT ?"
        found = await self.unit.rows(query(sql, after, limit))
        return [_chained(row, self.unit.sealer) for row in found]

    async def of_execution(self, execution_id: str) -> Sequence[ChainedEntry]:
        sql = CHAINED + " WHERE execution_id = ? ORDER BY number"
        found = await self.unit.rows(query(sql, execution_id))
        return [_chained(row, self.unit.sealer) for row in found]
