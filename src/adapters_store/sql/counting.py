"""Quota counts as rows: one statement counts in every window or in none."""
# ruff: noqa: S608 - only constant text of this module is put together

from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path

from adapters_store.private import alone
from adapters_store.sql.connection import (
    Connection,
    DriverError,
    close_quietly,
    connect_counters,
    create_private,
)
from wfcore.instants import EpochMs
from wfcore.ports.counters import Window

APPLICATION_ID = 0x77666363
"""`wfcc`: marks a file of counts as ours."""

SCHEMA = """CREATE TABLE IF NOT EXISTS counts (
    subject TEXT NOT NULL,
    kind TEXT NOT NULL,
    begins INTEGER NOT NULL,
    ends INTEGER NOT NULL,
    admitted INTEGER NOT NULL,
    last_at INTEGER NOT NULL,
    PRIMARY KEY (subject, kind, begins)
) WITHOUT ROWID"""
BY_END = "CREATE INDEX IF NOT EXISTS counts_by_end ON counts (ends)"

UNLIMITED = 2**62

LAST_USED = "SELECT max(last_at) FROM counts WHERE subject = ?"
TRIM = """DELETE FROM counts WHERE (subject, kind, begins) IN
    (SELECT subject, kind, begins FROM counts WHERE ends < ? LIMIT ?)"""
ADD = """INSERT INTO counts (subject, kind, begins, ends, admitted, last_at)
    VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (subject, kind, begins)
    DO UPDATE SET admitted = admitted + excluded.admitted,
    last_at = max(last_at, excluded.last_at)"""


@cache
def _take_sql(windows: int) -> str:
    """Values: subject, now; then kind, begin, end, limit of each window."""
    firsts = [3 + 4 * number for number in range(windows)]
    rows = ", ".join(f"(?{n}, ?{n + 1}, ?{n + 2})" for n in firsts)
    free = " AND ".join(
        f"""NOT EXISTS (SELECT 1 FROM counts WHERE subject = ?1
        AND kind = ?{n} AND begins = ?{n + 1} AND admitted >= ?{n + 3})"""
        for n in firsts
    )
    return f"""INSERT INTO counts (subject, kind, begins, ends, admitted, last_at)
        SELECT ?1, w.column1, w.column2, w.column3, 1, ?2 FROM (VALUES {rows}) w
        WHERE {free} ON CONFLICT (subject, kind, begins)
        DO UPDATE SET admitted = admitted + 1, last_at = excluded.last_at
        RETURNING kind, admitted"""


@cache
def _look_sql(windows: int) -> str:
    some = " OR ".join(["(kind = ? AND begins = ?)"] * windows)
    return f"SELECT kind, admitted FROM counts WHERE subject = ? AND ({some})"


def take(
    connection: Connection, subject: str, windows: Sequence[Window], now: EpochMs
) -> tuple[int, ...] | None:
    """Count one in every window and say the counts; None: one was full, nothing was counted."""
    values: list[object] = [subject, now]
    for window in windows:
        limit = UNLIMITED if window.limit is None else window.limit
        if limit <= 0:
            return None
        values += (window.kind, window.start, window.end, limit)
    counts = dict(connection.execute(_take_sql(len(windows)), values).fetchall())
    return tuple(counts[window.kind] for window in windows) if counts else None


def take_all(
    connection: Connection, asked: Sequence[tuple[str, Sequence[Window], EpochMs]]
) -> list[tuple[int, ...] | None]:
    """`take` for each of *asked*, in order, in one transaction. Raises `DriverError`."""
    if len(asked) == 1:
        return [take(connection, *asked[0])]
    connection.execute("BEGIN IMMEDIATE")
    try:
        counts = [take(connection, *one) for one in asked]
        connection.execute("COMMIT")
    except DriverError:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
    return counts


def look(connection: Connection, subject: str, windows: Sequence[Window]) -> tuple[int, ...]:
    """What each window has admitted."""
    values: list[object] = [subject]
    for window in windows:
        values += (window.kind, window.start)
    counts = dict(connection.execute(_look_sql(len(windows)), values).fetchall())
    return tuple(counts.get(window.kind, 0) for window in windows)


def open_counts(path: Path) -> tuple[Connection, Path | None]:
    """
    Open *path*, made as needed. A file that is damaged or none of ours is renamed and a new one
    begun; the second value says where it went. Raises `DriverError`, `OSError`.
    """
    with alone(path.parent):
        if not _is_sound(path):
            aside = _move_aside(path)
            return _open(path), aside
        return _open(path), None


def _open(path: Path) -> Connection:
    create_private(path)
    connection = connect_counters(path)
    try:
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(SCHEMA)
        connection.execute(BY_END)
    except DriverError:
        connection.close()
        raise
    return connection


def _is_sound(path: Path) -> bool:
    if not path.exists() or not path.stat().st_size:
        return True
    with suppress(DriverError):
        connection = connect_counters(path)
        try:
            owner = connection.execute("PRAGMA application_id").fetchone()[0]
            check = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
            return bool(owner == APPLICATION_ID and check == "ok")
        finally:
            close_quietly(connection)
    return False


def _move_aside(path: Path) -> Path:
    aside = path.with_name(path.name + ".damaged")
    for tail in ("", "-wal", "-shm"):
        with suppress(FileNotFoundError):
            path.with_name(path.name + tail).replace(aside.with_name(aside.name + tail))
    return aside
