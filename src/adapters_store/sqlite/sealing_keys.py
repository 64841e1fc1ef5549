"""The keys that seal the cells of a file. Decision 86."""

from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from adapters_store.sql.sealing_keys import (
    FORGET,
    Resealing,
    counting,
    lacking,
    last_key,
    page,
    summed,
)
from adapters_store.sqlite.connection import Connection, Cursor, connect, unavailable_on_error
from wfcore.errors import StoreRefused
from wfcore.ports.system import Sealer


def key_ids(connection: Connection) -> list[str]:
    """The ids of the keys that may have sealed a cell, newest first."""
    if not connection.execute("SELECT 1 FROM sqlite_schema WHERE name = 'seal_keys'").fetchone():
        return []
    found = connection.execute("SELECT id FROM seal_keys ORDER BY number DESC").fetchall()
    return [row[0] for row in found]


def keys_of(path: Path) -> list[str]:
    """
    The ids of the keys that may have sealed a cell of the database *path*, newest first. Raises
    `StoreUnavailable`.
    """
    with unavailable_on_error(), closing(connect(path, "ro")) as connection:
        return key_ids(connection)


def require_keys(path: Path, sealer: Sealer | None) -> None:
    """
    Let *sealer* seal from now on: it makes a key if it has no key, and the key is recorded. Raises
    `StoreRefused` if *sealer* lacks a key that may have sealed a cell, `StoreUnavailable`.
    """
    with unavailable_on_error(), closing(connect(path)) as connection:
        known = key_ids(connection)
        have = () if sealer is None else sealer.keys
        missing = [id for id in known if id not in have]
        if missing:
            raise StoreRefused(lacking(path, missing, sealer))
        if sealer is not None:
            sealer.make()
            note_key(connection.cursor(), sealer)


def note_key(cursor: Cursor, sealer: Sealer) -> None:
    """Record the key with which *sealer* seals: every later start requires this key."""
    id = sealer.keys[0]
    if not cursor.execute("SELECT 1 FROM seal_keys WHERE id = ?", (id,)).fetchone():
        cursor.execute("INSERT INTO seal_keys (id) VALUES (?)", (id,))


def counts(cursor: Cursor) -> Mapping[str | None, int]:
    """The number of cells by the id of their key (None: in clear)."""
    return summed(row for sql in counting() for row in cursor.execute(sql))


def forget_unused(cursor: Cursor, ids: Sequence[str]) -> Sequence[str]:
    """
    Forget the keys of *ids* that seal no cell, so that a start no longer requires these keys;
    returns the ids of the forgotten keys.
    """
    used = counts(cursor)
    gone = [id for id in ids if id not in used]
    cursor.executemany(FORGET, [(id,) for id in gone])
    return gone


def batch(
    cursor: Cursor, work: Resealing, table: str, after: Sequence[Any] | None
) -> Sequence[Any] | None:
    """
    Seal one batch of *work* after the key *after*, as a job for the writer. Returns the last key of
    the batch; None if there was no row.
    """
    sql, values = page(table, after)
    rows = cursor.execute(sql, values).fetchall()
    for change, cells in work.changes(table, rows):
        cursor.execute(change, cells)
    return last_key(table, rows)
