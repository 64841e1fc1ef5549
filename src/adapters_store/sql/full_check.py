"""
The full check: every page, every row that references another, every record, every artifact.

The check writes nothing, and nobody waits for the check. Records are read in batches, so that a
running server can checkpoint in between; only the pages are checked in one go.
"""
# ruff: noqa: S608 - only constant text of this package is put together

from collections.abc import Iterator
from typing import Any

from attrs import frozen

from adapters_store.sql import audit, kinds
from adapters_store.sql.cells import Cells, InClear, Row, value_of
from adapters_store.sql.execution_rows import SELECT, decode
from adapters_store.sql.kinds import Decode, Differs, Kind
from adapters_store.sql.packing import entries_of, parts_of
from adapters_store.sql.record_queries import delivery_of
from wfcore.model.event import EventKind
from wfcore.ports.system import Sealer

BATCH = 500
MOST = 100
"""The most findings of one statement: if damage is everywhere, not every row is reported."""

BELONGS = (
    ("execution_variables", "execution_id", "executions"),
    ("step_results", "execution_id", "executions"),
    ("events", "execution_id", "executions"),
    ("logs", "execution_id", "executions"),
    ("approvals", "execution_id", "executions"),
    ("artifacts", "execution_id", "executions"),
    ("callbacks", "id", "executions"),
    ("notices", "execution_id", "executions"),
    ("approval_approvers", "approval_id", "approvals"),
    ("approval_details", "id", "approvals"),
    ("api_keys", "account_id", "accounts"),
    ("workflows", "owner_id", "accounts"),
    ("shares", "workflow_id", "workflows"),
    ("workflow_states", "workflow_id", "workflows"),
)
"""Tables, the column of each that holds the id of a row of another table, and that other table."""


@frozen
class Finding:
    """A fault that the check found. *harmless*: the faulty row only takes up room."""

    where: str
    what: str
    harmless: bool = False


@frozen
class CheckStage:
    """The event that a part of the check begins."""

    name: str


CheckEvent = Finding | CheckStage


@frozen
class CheckedTable:
    """The query for all records of a table: `{}` in *sql* is the condition."""

    name: str
    key: tuple[str, ...]
    sql: str
    decode: Decode[Any]


def _of_kind(kind: Kind[Any]) -> CheckedTable:
    key = ", ".join(kind.key)
    parts = ", ".join((key, "version", kind.whole, *kind.compared))
    sql = f"SELECT {parts} FROM {kind.table} WHERE {{}} ORDER BY {key} LIMIT ?"
    return CheckedTable(kind.table, kind.key, sql, kind.decode_compared)


def _event(row: Row, cells: Cells) -> Any:
    return EventKind(row[0]), value_of(cells.opened(row[1], "data"))


def _audited(row: Row, cells: Cells) -> Any:
    """The entry in a row of the audit log; opens the record, too."""
    body, record, id = row
    if record is not None:
        Cells(cells.sealer, "audit", (id,)).opened(record, "record")
    return audit.read((body,))


def _delivery(row: Row, cells: Cells) -> Any:
    id, version, body = row
    return delivery_of((version, body), Cells(cells.sealer, "webhook_deliveries", (id,)))


def _execution(row: Row, cells: Cells) -> Any:
    """The execution in a row, with its packed events."""
    found, packed, id = decode(row, cells), *row[-2:]
    if packed is None:
        return found
    return found, [EventKind(kind) for _, kind, _ in entries_of(parts_of(packed, cells.sealer, id))]


TABLES = (
    *(_of_kind(kind) for kind in vars(kinds).values() if isinstance(kind, Kind)),
    CheckedTable(
        "executions",
        ("id",),
        SELECT.replace("SELECT ", "SELECT r.id, ", 1) + "{} ORDER BY id LIMIT ?",
        _execution,
    ),
    *(
        CheckedTable(
            name,
            ("execution_id", "number"),
            f"SELECT execution_id, number, kind, data FROM {name} WHERE {{}}"
            " ORDER BY execution_id, number LIMIT ?",
            _event,
        )
        for name in ("events", "logs")
    ),
    CheckedTable(
        "audit",
        ("number",),
        "SELECT number, body, record, id FROM audit WHERE {} ORDER BY number LIMIT ?",
        _audited,
    ),
    CheckedTable(
        "webhook_deliveries",
        ("webhook_id", "authenticated", "id"),
        "SELECT webhook_id, authenticated, id, id, 0, body FROM webhook_deliveries WHERE {}"
        " ORDER BY webhook_id, authenticated, id LIMIT ?",
        _delivery,
    ),
)


def foreign(table: str, column: str, owner: str) -> tuple[CheckStage, str]:
    """
    The stage, and the statement for the ids in *column* of *table* that no row of *owner* has.
    """
    sql = f"""SELECT DISTINCT {column} FROM {table} t WHERE {column} IS NOT NULL
        AND NOT EXISTS (SELECT 1 FROM {owner} o WHERE o.id = t.{column}) LIMIT {MOST}"""
    return CheckStage(f"{table} of {owner}"), sql


def homeless(table: str, column: str, owner: str, id: object) -> Finding:
    """The finding that *column* of *table* has an *id* that no row of *owner* has."""
    return Finding(table, f"{column} {id} is not in {owner}")


def broken(table: CheckedTable, row: Row, sealer: Sealer | None) -> Iterator[Finding]:
    """
    The finding if the record in *row* cannot be read. *row*: the key, then the row for `decode`.
    """
    parts = len(table.key)
    try:
        table.decode(row[parts:], Cells(sealer, table.name, tuple(row[:parts])))
    except Exception as error:  # whatever a broken record raises, it is the finding
        key = "/".join(map(str, row[:parts]))
        why = str(error) if isinstance(error, InClear | Differs) else type(error).__name__
        yield Finding(table.name, f"{key} cannot be read: {why}")


def batch(table: CheckedTable, last: Row | None) -> tuple[str, Row]:
    """The statement and values for the next rows of *table*, after the row *last*."""
    if last is None:
        return table.sql.format("true"), (BATCH,)
    key = ", ".join(table.key)
    after = f"({key}) > ({', '.join('?' * len(table.key))})"
    return table.sql.format(after), (*last[: len(table.key)], BATCH)
