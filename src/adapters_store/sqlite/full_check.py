"""
The full check of a file: every page, every row that references another, every record and artifact.

The check writes nothing, and nobody waits for the check. Records are read in batches, so that a
running server can checkpoint in between; only the pages are checked in one go.
"""

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from adapters_store.sql.cells import Cells, Row
from adapters_store.sql.full_check import (
    BELONGS,
    MOST,
    TABLES,
    CheckedTable,
    CheckEvent,
    CheckStage,
    Finding,
    batch,
    broken,
    foreign,
    homeless,
)
from adapters_store.sql.kinds import ARTIFACTS
from adapters_store.sqlite.connection import Connection, DriverError, connect
from adapters_store.sqlite.migrate import inspect, migrations
from wfcore.errors import StoreRefused
from wfcore.ports.system import Sealer

YOUNG_S = 3_600
"""
The age in seconds below which a folder of artifacts may belong to an execution that is being
stored.
"""


STEPS = 100_000
"""The steps of SQLite between two checks for Ctrl-C."""


def check(path: Path, artifacts: Path | None, sealer: Sealer | None = None) -> Iterator[CheckEvent]:
    """
    Check the database *path* and the folder of *artifacts* (None: they are not in a folder); yields
    each finding at once. *sealer* opens sealed cells.

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
    """The records of the database *path* that cannot be read, at most `MOST`."""
    with closing(_opened(path)) as connection:
        events = _guarded(_records(connection, sealer))
        return list(islice((one for one in events if isinstance(one, Finding)), MOST))


def check_counters(path: Path) -> Iterator[CheckEvent]:
    """Check the file of quota counts, if there is one."""
    if path.exists():
        yield CheckStage("quota counts")
        with closing(_opened(path)) as connection:
            yield from _guarded(_integrity(connection, path.name), path.name)


def _opened(path: Path) -> Connection:
    """
    A connection that is interrupted now and then; without interruptions Ctrl-C would wait for the
    statement.
    """
    connection = connect(path, "ro")
    connection.set_progress_handler(lambda: 0, STEPS)
    return connection


def _guarded(parts: Iterator[CheckEvent], where: str = "database") -> Iterator[CheckEvent]:
    """
    The events of *parts*. Damage that prevents reading becomes a finding; the next part may be
    readable.
    """
    try:
        yield from parts
    except DriverError as error:
        if str(error) == "interrupted":
            raise KeyboardInterrupt from None
        yield Finding(where, str(error))


def _pages(connection: Connection) -> Iterator[CheckEvent]:
    size = _number(connection, "PRAGMA page_count") * _number(connection, "PRAGMA page_size")
    yield CheckStage(f"pages and indexes, {size / (1 << 20):,.0f} MiB")
    yield from _integrity(connection, "database")


def _integrity(connection: Connection, where: str) -> Iterator[CheckEvent]:
    for (message,) in connection.execute(f"PRAGMA integrity_check({MOST})"):
        if message != "ok":
            yield Finding(where, message)


def _foreign_rows(connection: Connection) -> Iterator[CheckEvent]:
    for belonging in BELONGS:
        stage, sql = foreign(*belonging)
        yield stage
        for (id,) in connection.execute(sql).fetchall():
            yield homeless(*belonging, id)


def _records(connection: Connection, sealer: Sealer | None) -> Iterator[CheckEvent]:
    for table in TABLES:
        yield CheckStage(f"records of {table.name}")
        for row in _rows(connection, table):
            yield from broken(table, row, sealer)


def _rows(connection: Connection, table: CheckedTable) -> Iterator[Row]:
    """All rows, in batches; between two batches the log can be checkpointed."""
    found = connection.execute(*batch(table, None)).fetchall()
    while found:
        yield from found
        found = connection.execute(*batch(table, found[-1])).fetchall()


def _artifacts(connection: Connection, root: Path) -> Iterator[CheckEvent]:
    yield CheckStage("artifacts without a file")
    table = next(one for one in TABLES if one.name == ARTIFACTS.table)
    missing: list[tuple[str, str]] = []
    for id, *row in _rows(connection, table):
        artifact = _decoded(row)
        if artifact is not None and not (root / artifact.storage_key).is_file():
            missing.append((id, artifact.storage_key))
    for id, key in missing:  # read again: retention deletes files before their rows
        if connection.execute("SELECT 1 FROM artifacts WHERE id = ?", (id,)).fetchone():
            yield Finding("artifacts", f"the file {key} of {id} is missing")
    yield CheckStage("files without an execution")
    for folder in _folders(root):
        if not connection.execute("SELECT 1 FROM executions WHERE id = ?", (folder,)).fetchone():
            what = "belongs to no execution; it may be deleted"
            yield Finding("artifacts", f"{root / folder} {what}", harmless=True)


def _decoded(row: Sequence[Any]) -> Any:
    try:
        return ARTIFACTS.decode(row, Cells(None, ARTIFACTS.table, ()))
    except Exception:  # events of already, with the other records
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
