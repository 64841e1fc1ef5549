"""The keys that cells are sealed with: which ones a start needs, and resealing. Decision 86."""
# ruff: noqa: S608 - only constant names of this package are put into the text

from collections.abc import Mapping, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

from attrs import define

from adapters_store.sqlite.connection import Connection, Cursor, connect, unavailable_on_error
from adapters_store.sqlite.kinds import EMPTY, MARK, SEALED, Cells, sealed
from adapters_store.sqlite.packing import KEY_OF_CELL, resealed
from wfcore.errors import StoreRefused
from wfcore.ports.system import Sealer

CELLS = {"executions": ("packed",)}
"""Columns of cells that are sealed as `packing` does it."""
BATCH = 200
"""Rows that are sealed anew in one transaction: others wait some milliseconds for it."""


def key_ids(connection: Connection) -> list[str]:
    """Ids of the keys that something may be sealed with, newest first."""
    if not connection.execute("SELECT 1 FROM sqlite_schema WHERE name = 'seal_keys'").fetchone():
        return []
    found = connection.execute("SELECT id FROM seal_keys ORDER BY number DESC").fetchall()
    return [row[0] for row in found]


def keys_of(path: Path) -> list[str]:
    """The same for the database *path*. Raises `StoreUnavailable`."""
    with unavailable_on_error(), closing(connect(path, "ro")) as connection:
        return key_ids(connection)


def require_keys(path: Path, sealer: Sealer | None) -> None:
    """
    Let *sealer* seal from now on: it makes a key if it has none, and the key is recorded. Raises
    `StoreRefused` if it lacks a key that something may be sealed with, `StoreUnavailable`.
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
    """From now on a start requires the key that *sealer* seals with."""
    id = sealer.keys[0]
    if not cursor.execute("SELECT 1 FROM seal_keys WHERE id = ?", (id,)).fetchone():
        cursor.execute("INSERT INTO seal_keys (id) VALUES (?)", (id,))


def lacking(path: Path | str, missing: Sequence[str], sealer: Sealer | None) -> str:
    ids = ", ".join(missing)
    if sealer is None:
        return f"{path} is sealed with the key {ids}, and no key is given"
    held = f"holds {', '.join(sealer.keys)}" if sealer.keys else "is not there"
    return (
        f"{path} is sealed with the key {ids}, and {sealer.where} {held}: put the key back that "
        "belongs to it, from where you keep it; without it nothing that is sealed can be read"
    )


@define(eq=False)
class Resealing:
    """
    Jobs for the writer that seal with the first key what is sealed with another key. `clear`: what
    is in clear, too; otherwise it stays as it is, because nobody knows who wrote it. `count`:
    cells that were resealed.
    """

    sealer: Sealer
    clear: bool = False
    count: int = 0

    def batch(
        self, cursor: Cursor, table: str, after: Sequence[Any] | None
    ) -> Sequence[Any] | None:
        """
        Continue behind the key *after*; returns the last key examined, None if there was none.
        """
        about = SEALED[table]
        keys = ", ".join(about.key)
        columns = ", ".join((*about.columns, *CELLS.get(table, ())))
        where = f"WHERE ({keys}) > ({', '.join('?' * len(about.key))})" if after else ""
        sql = f"SELECT {keys}, {columns} FROM {table} {where} ORDER BY {keys} LIMIT {BATCH}"
        rows = cursor.execute(sql, tuple(after or ())).fetchall()
        for row in rows:
            self._row(cursor, table, row[: len(about.key)], row[len(about.key) :])
        return rows[-1][: len(about.key)] if rows else None

    def _row(self, cursor: Cursor, table: str, key: Sequence[Any], row: Sequence[Any]) -> None:
        about, mine = SEALED[table], f"{MARK}{self.sealer.keys[0]}."
        found = " AND ".join(f"{name} = ?" for name in about.key)
        bound = [dict(zip(about.key, key, strict=True))[name] for name in about.bound or about.key]
        for column, cell in zip(about.columns, row, strict=False):
            if not isinstance(cell, str) or cell.startswith(mine) or cell in EMPTY:
                continue
            opener = None if self.clear and not cell.startswith(MARK) else self.sealer
            try:
                text = Cells(opener, table, tuple(bound)).opened(cell, column)
            except ValueError:  # not ours: it is named by whoever reads it, and stays as it is
                continue
            fresh = sealed(self.sealer, text, table, column, *bound)
            cursor.execute(f"UPDATE {table} SET {column} = ? WHERE {found}", (fresh, *key))
            self.count += 1
        for column, cell in zip(CELLS.get(table, ()), row[len(about.columns) :], strict=True):
            with suppress(ValueError):
                packed = (
                    None if cell is None else resealed(cell, self.sealer, key[0], clear=self.clear)
                )
                if packed is not None:
                    cursor.execute(f"UPDATE {table} SET {column} = ? WHERE {found}", (packed, *key))
                    self.count += 1


def counts(cursor: Cursor) -> Mapping[str | None, int]:
    """How many cells there are, by the id of the key (None: in clear)."""
    found: dict[str | None, int] = {}
    for table, about in SEALED.items():
        asked = [
            f"""SELECT CASE WHEN {column} GLOB '{MARK}*'
                THEN substr({column}, 2, instr({column}, '.') - 2) END AS id, count(*)
                FROM {table} WHERE {column} NOT IN ({", ".join(map(repr, EMPTY))}) GROUP BY id"""
            for column in about.columns
        ]
        asked += [
            f"""SELECT {KEY_OF_CELL.format(column)} AS id, count(*)
                FROM {table} WHERE {column} IS NOT NULL GROUP BY id"""
            for column in CELLS.get(table, ())
        ]
        for sql in asked:
            for id, count in cursor.execute(sql):
                found[id] = found.get(id, 0) + count
    return found


def forget_unused(cursor: Cursor, ids: Sequence[str]) -> Sequence[str]:
    """Those of *ids* that nothing is sealed with; a start no longer requires them."""
    used = counts(cursor)
    gone = [id for id in ids if id not in used]
    cursor.executemany("DELETE FROM seal_keys WHERE id = ?", [(id,) for id in gone])
    return gone
