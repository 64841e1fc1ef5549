"""
The full check: every page, every row that references another, every record, every artifact.

Nothing is written and nobody waits for it. Records are read in batches, so that a running server
can checkpoint in between; only the pages are checked in one go.
"""
# ruff: noqa: S608 - only constant text of this package is put together

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from attrs import frozen

from adapters_store.sqlite import audit, kinds
from adapters_store.sqlite.connection import Connection, DriverError, connect
from adapters_store.sqlite.execution_rows import SELECT, decode
from adapters_store.sqlite.kinds import (
    ARTIFACTS,
    Cells,
    Decode,
    Differs,
    InClear,
    Kind,
    Row,
    value_of,
)
from adapters_store.sqlite.migrate import inspect, migrations
from adapters_store.sqlite.packing import entries_of, parts_of
from adapters_store.sqlite.records import delivery_of
from wfcore.errors import StoreRefused
from wfcore.model.event import EventKind
from wfcore.ports.system import Sealer

BATCH = 500
MOST = 100
"""The most findings of one statement: what is damaged all over is not told row by row."""
YOUNG_S = 3_600
"""A folder of artifacts that is younger may belong to what is being written right now."""
STEPS = 100_000
"""Steps of SQLite between two looks at whether Ctrl-C was pressed."""

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
)
"""Rows of a table, by a column, belong to a row of another."""


@frozen
class Finding:
    """Something that is wrong. *harmless*: it only takes up room."""

    where: str
    what: str
    harmless: bool = False


@frozen
class Stage:
    """A part of the check that begins now."""

    name: str


Told = Finding | Stage


@frozen
class Table:
    """How all records of a table are read: `{}` in *sql* is the condition."""

    name: str
    key: tuple[str, ...]
    sql: str
    decode: Decode[Any]


def _of_kind(kind: Kind[Any]) -> Table:
    key = ", ".join(kind.key)
    parts = ", ".join((key, "version", kind.whole, *kind.compared))
    sql = f"SELECT {parts} FROM {kind.table} WHERE {{}} ORDER BY {key} LIMIT ?"
    return Table(kind.table, kind.key, sql, kind.decode_compared)


def _event(row: Row, cells: Cells) -> Any:
    return EventKind(row[0]), value_of(cells.opened(row[1], "data"))


def _audited(row: Row, cells: Cells) -> Any:
    """With the record that belongs to it."""
    body, record, id = row
    if record is not None:
        Cells(cells.sealer, "audit", (id,)).opened(record, "record")
    return audit.read((body,))


def _delivery(row: Row, cells: Cells) -> Any:
    id, version, body = row
    return delivery_of((version, body), Cells(cells.sealer, "webhook_deliveries", (id,)))


def _execution(row: Row, cells: Cells) -> Any:
    """With its events, as far as they are packed."""
    found, packed, id = decode(row, cells), *row[-2:]
    if packed is None:
        return found
    return found, [EventKind(kind) for _, kind, _ in entries_of(parts_of(packed, cells.sealer, id))]


TABLES = (
    *(_of_kind(kind) for kind in vars(kinds).values() if isinstance(kind, Kind)),
    Table(
        "executions",
        ("id",),
        SELECT.replace("SELECT ", "SELECT r.id, ", 1) + "{} ORDER BY id LIMIT ?",
        _execution,
    ),
    *(
        Table(
            name,
            ("execution_id", "number"),
            f"SELECT execution_id, number, kind, data FROM {name} WHERE {{}}"
            " ORDER BY execution_id, number LIMIT ?",
            _event,
        )
        for name in ("events", "logs")
    ),
    Table(
        "audit",
        ("number",),
        "SELECT number, body, record, id FROM audit WHERE {} ORDER BY number LIMIT ?",
        _audited,
    ),
    Table(
        "webhook_deliveries",
        ("webhook_id", "authenticated", "id"),
        "SELECT webhook_id, authenticated, id, id, 0, body FROM webhook_deliveries WHERE {}"
        " ORDER BY webhook_id, authenticated, id LIMIT ?",
        _delivery,
    ),
)


def check(path: Path, artifacts: Path | None, sealer: Sealer | None = None) -> Iterator[Told]:
    """
    Check the database *path* and the folder of *artifacts*, if they are in one; yields findings as
    they are found. *sealer* opens sealed cells.

    Raises `StoreRefused` if the file cannot be read as a database of this schema at all,
    `StoreUnavailable`.
    """
    inspect(path)
    with closing(_opened(path)) as connection:
        schema, newest = _number(connection, "PRAGMA user_version"), migrations()[-1][0]
        if schema != newest:
            raise StoreRefused(f"{path} has schema {schema}, not {newest}; run wfcore migrate")
        for parts in (_pages, _foreign_rows, partial(_records, sealer=sealer)):
            yield from _guarded(parts(connection))
        if artifacts is not None:
            yield from _guarded(_artifacts(connection, artifacts))


def unreadable(path: Path, sealer: Sealer) -> Sequence[Finding]:
    """The records of the database *path* that cannot be read, `MOST` of them."""
    with closing(_opened(path)) as connection:
        told = _guarded(_records(connection, sealer))
        return list(islice((one for one in told if isinstance(one, Finding)), MOST))


def check_counters(path: Path) -> Iterator[Told]:
    """Check the file of quota counts, if there is one."""
    if path.exists():
        yield Stage("quota counts")
        with closing(_opened(path)) as connection:
            yield from _guarded(_integrity(connection, path.name), path.name)


def _opened(path: Path) -> Connection:
    """
    A connection that is interrupted now and then: otherwise Ctrl-C would wait for the statement.
    """
    connection = connect(path, "ro")
    connection.set_progress_handler(lambda: 0, STEPS)
    return connection


def _guarded(parts: Iterator[Told], where: str = "database") -> Iterator[Told]:
    """Damage that prevents reading is a finding; the next part may be readable."""
    try:
        yield from parts
    except DriverError as error:
        if str(error) == "interrupted":
            raise KeyboardInterrupt from None
        yield Finding(where, str(error))


def _pages(connection: Connection) -> Iterator[Told]:
    size = _number(connection, "PRAGMA page_count") * _number(connection, "PRAGMA page_size")
    yield Stage(f"pages and indexes, {size / (1 << 20):,.0f} MiB")
    yield from _integrity(connection, "database")


def _integrity(connection: Connection, where: str) -> Iterator[Told]:
    for (said,) in connection.execute(f"PRAGMA integrity_check({MOST})"):
        if said != "ok":
            yield Finding(where, said)


def _foreign_rows(connection: Connection) -> Iterator[Told]:
    for belonging in BELONGS:
        stage, sql = foreign(*belonging)
        yield stage
        for (id,) in connection.execute(sql).fetchall():
            yield homeless(*belonging, id)


def foreign(table: str, column: str, owner: str) -> tuple[Stage, str]:
    """The stage, and the statement for the ids that rows of *table* name and *owner* lacks."""
    sql = f"""SELECT DISTINCT {column} FROM {table} t WHERE {column} IS NOT NULL
        AND NOT EXISTS (SELECT 1 FROM {owner} o WHERE o.id = t.{column}) LIMIT {MOST}"""
    return Stage(f"{table} of {owner}"), sql


def homeless(table: str, column: str, owner: str, id: object) -> Finding:
    """One of these."""
    return Finding(table, f"{column} {id} is not in {owner}")


def _records(connection: Connection, sealer: Sealer | None) -> Iterator[Told]:
    for table in TABLES:
        yield Stage(f"records of {table.name}")
        for row in _rows(connection, table):
            yield from broken(table, row, sealer)


def broken(table: Table, row: Row, sealer: Sealer | None) -> Iterator[Finding]:
    """The finding of a record that cannot be read; *row*: its key, then what `decode` takes."""
    parts = len(table.key)
    try:
        table.decode(row[parts:], Cells(sealer, table.name, tuple(row[:parts])))
    except Exception as error:  # whatever a broken record raises, it is the finding
        key = "/".join(map(str, row[:parts]))
        why = str(error) if isinstance(error, InClear | Differs) else type(error).__name__
        yield Finding(table.name, f"{key} cannot be read: {why}")


def batch(table: Table, last: Row | None) -> tuple[str, Row]:
    """The statement and values for the next rows of *table*, behind the row *last*."""
    if last is None:
        return table.sql.format("true"), (BATCH,)
    key = ", ".join(table.key)
    after = f"({key}) > ({', '.join('?' * len(table.key))})"
    return table.sql.format(after), (*last[: len(table.key)], BATCH)


def _rows(connection: Connection, table: Table) -> Iterator[Row]:
    """All rows, in batches: between them the log can be checkpointed."""
    found = connection.execute(*batch(table, None)).fetchall()
    while found:
        yield from found
        found = connection.execute(*batch(table, found[-1])).fetchall()


def _artifacts(connection: Connection, root: Path) -> Iterator[Told]:
    yield Stage("artifacts without a file")
    table = next(one for one in TABLES if one.name == ARTIFACTS.table)
    missing: list[tuple[str, str]] = []
    for id, *row in _rows(connection, table):
        artifact = _decoded(row)
        if artifact is not None and not (root / artifact.storage_key).is_file():
            missing.append((id, artifact.storage_key))
    for id, key in missing:  # looked up again: retention deletes files before their rows
        if connection.execute("SELECT 1 FROM artifacts WHERE id = ?", (id,)).fetchone():
            yield Finding("artifacts", f"the file {key} of {id} is missing")
    yield Stage("files without an execution")
    for folder in _folders(root):
        if not connection.execute("SELECT 1 FROM executions WHERE id = ?", (folder,)).fetchone():
            what = "belongs to no execution; it may be deleted"
            yield Finding("artifacts", f"{root / folder} {what}", harmless=True)


def _decoded(row: Sequence[Any]) -> Any:
    try:
        return ARTIFACTS.decode(row, Cells(None, ARTIFACTS.table, ()))
    except Exception:  # told of already, with the other records
        return None


def _folders(root: Path) -> Iterator[str]:
    if not root.is_dir():
        return
    oldest = time.time() - YOUNG_S
    with os.scandir(root) as entries:
        for entry in entries:
            if entry.stat(follow_symlinks=False).st_mtime < oldest:
                yield entry.name


def _number(connection: Connection, sql: str) -> int:
    return int(connection.execute(sql).fetchone()[0])
