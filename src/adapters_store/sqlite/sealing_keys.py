"""The keys that cells are sealed with: which ones a start needs, and resealing. Decision 86."""
# ruff: noqa: S608 - only constant names of this package are put into the text

from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

from attrs import define

from adapters_store.sqlite.connection import Connection, Cursor, connect, unavailable_on_error
from adapters_store.sqlite.kinds import EMPTY, MARK, SEALED, Cells, Row, sealed
from adapters_store.sqlite.packing import KEY_OF_CELL, resealed
from wfcore.errors import StoreRefused
from wfcore.ports.system import Sealer

CELLS = {"executions": ("packed",)}
"""Columns of cells that are sealed as `packing` does it."""
ID_CHARACTERS = 8
"""An id is the hexadecimal form of four bytes (`wfcore.ports.system.Sealer`)."""
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
    Seals with the first key what is sealed with another key. `clear`: what is in clear, too;
    otherwise it stays as it is, because nobody knows who wrote it. `count`: cells that were
    resealed.
    """

    sealer: Sealer
    clear: bool = False
    count: int = 0

    async def run(self, batch: "Batch") -> int:
        """Batches of all tables, until a pass over everything finds nothing; returns `count`."""
        before = -1
        while before != self.count:
            before = self.count
            for table in SEALED:
                after: Sequence[Any] | None = None
                while after := await batch(table, after):
                    pass
        return self.count

    def batch(
        self, cursor: Cursor, table: str, after: Sequence[Any] | None
    ) -> Sequence[Any] | None:
        """
        One batch, as a job for the writer: continue behind the key *after*; returns the last key
        examined, None if there was none.
        """
        sql, values = page(table, after)
        rows = cursor.execute(sql, values).fetchall()
        for change, cells in self.changes(table, rows):
            cursor.execute(change, cells)
        return last_key(table, rows)

    def changes(self, table: str, rows: Sequence[Row]) -> Sequence[tuple[str, Sequence[Any]]]:
        """
        The statements for *rows* of `page`. Each replaces a cell only while it is as it was read:
        what somebody has written since is left to the next pass.
        """
        parts = len(SEALED[table].key)
        made = [
            (f"UPDATE {table} SET {column} = ? WHERE {_found(table)} AND {column} = ?", values)
            for row in rows
            for column, *values in self._row(table, row[:parts], row[parts:])
        ]
        self.count += len(made)
        return made

    def _row(self, table: str, key: Row, row: Row) -> Iterator[tuple[Any, ...]]:
        """Of each cell that changes: the column, the new cell, the key, the old cell."""
        about, mine = SEALED[table], f"{MARK}{self.sealer.keys[0]}."
        bound = [dict(zip(about.key, key, strict=True))[name] for name in about.bound or about.key]
        for column, cell in zip(about.columns, row, strict=False):
            if not isinstance(cell, str) or cell.startswith(mine) or cell in EMPTY:
                continue
            opener = None if self.clear and not cell.startswith(MARK) else self.sealer
            with suppress(ValueError):  # not ours: it is named by whoever reads it, and stays
                text = Cells(opener, table, tuple(bound)).opened(cell, column)
                yield column, sealed(self.sealer, text, table, column, *bound), *key, cell
        for column, cell in zip(CELLS.get(table, ()), row[len(about.columns) :], strict=True):
            with suppress(ValueError):
                packed = (
                    None if cell is None else resealed(cell, self.sealer, key[0], clear=self.clear)
                )
                if packed is not None:
                    yield column, packed, *key, cell


Batch = Callable[[str, Sequence[Any] | None], Awaitable[Sequence[Any] | None]]
"""`Resealing.batch` of a database: from a table and the last key to the next one."""


def page(table: str, after: Sequence[Any] | None) -> tuple[str, Sequence[Any]]:
    """Statement and values for key and cells of the next `BATCH` rows behind the key *after*."""
    about = SEALED[table]
    keys = ", ".join(about.key)
    columns = ", ".join((*about.columns, *CELLS.get(table, ())))
    where = f"WHERE ({keys}) > ({', '.join('?' * len(about.key))})" if after else ""
    sql = f"SELECT {keys}, {columns} FROM {table} {where} ORDER BY {keys} LIMIT {BATCH}"
    return sql, tuple(after or ())


def last_key(table: str, rows: Sequence[Row]) -> Sequence[Any] | None:
    """The key of the last of *rows*, None if there are none."""
    return rows[-1][: len(SEALED[table].key)] if rows else None


def _found(table: str) -> str:
    return " AND ".join(f"{name} = ?" for name in SEALED[table].key)


def counting(key_of_cell: str = KEY_OF_CELL) -> Iterator[str]:
    """
    Statements whose rows are the id of a key (NULL: in clear) and how many cells it has sealed, one
    for each column. *key_of_cell*: the id of a packed cell's key, as the database writes it.
    """
    for table, about in SEALED.items():
        for column in about.columns:
            yield f"""SELECT CASE WHEN substr({column}, 1, 1) = '{MARK}'
                THEN substr({column}, 2, {ID_CHARACTERS}) END, count(*)
                FROM {table} WHERE {column} NOT IN ({", ".join(map(repr, EMPTY))}) GROUP BY 1"""
        for column in CELLS.get(table, ()):
            yield f"""SELECT {key_of_cell.format(column)}, count(*)
                FROM {table} WHERE {column} IS NOT NULL GROUP BY 1"""


def summed(rows: Iterable[Row]) -> Mapping[str | None, int]:
    """How many cells there are, by the id of the key, from the rows of `counting`."""
    found = Counter[str | None]()
    for id, count in rows:
        found[id] += count
    return found


def counts(cursor: Cursor) -> Mapping[str | None, int]:
    """How many cells there are, by the id of the key (None: in clear)."""
    return summed(row for sql in counting() for row in cursor.execute(sql))


FORGET = "DELETE FROM seal_keys WHERE id = ?"


def forget_unused(cursor: Cursor, ids: Sequence[str]) -> Sequence[str]:
    """Those of *ids* that nothing is sealed with; a start no longer requires them."""
    used = counts(cursor)
    gone = [id for id in ids if id not in used]
    cursor.executemany(FORGET, [(id,) for id in gone])
    return gone
