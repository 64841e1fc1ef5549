"""The keys that seal cells: the keys that a start needs, and resealing. Decision 86."""
# ruff: noqa: S608 - only constant names of this package are put into the text

from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from attrs import define

from adapters_store.sql.cells import EMPTY, MARK, SEALED, Cells, Row, sealed
from adapters_store.sql.packing import KEY_OF_CELL, resealed
from wfcore.ports.system import Sealer

CELLS = {"executions": ("packed",)}
"""The columns of cells that `packing` seals."""
ID_CHARACTERS = 8
"""An id is the hexadecimal form of four bytes (`wfcore.ports.system.Sealer`)."""
BATCH = 200
"""
The rows that are sealed anew in one transaction; other writers wait some milliseconds for the
transaction.
"""


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
    Sealing of cells that have another key, with the first key of `sealer`. `clear`: cells in clear
    are sealed, too; otherwise they stay in clear, because their author is unknown. `count`: the
    number of cells that were sealed again.
    """

    sealer: Sealer
    clear: bool = False
    count: int = 0

    async def run(self, batch: "Batch") -> int:
        """
        Seal batches of all tables, until a pass over all tables finds no cell to seal; returns
        `count`.
        """
        before = -1
        while before != self.count:
            before = self.count
            for table in SEALED:
                after: Sequence[Any] | None = None
                while after := await batch(table, after):
                    pass
        return self.count

    def changes(self, table: str, rows: Sequence[Row]) -> Sequence[tuple[str, Sequence[Any]]]:
        """
        The statements for *rows* of `page`. Each statement replaces a cell only if the cell has not
        changed since it was read; a later write is left to the next pass.
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
        """Each cell that changes: the column, the new cell, the key, the old cell."""
        about, mine = SEALED[table], f"{MARK}{self.sealer.keys[0]}."
        bound = [dict(zip(about.key, key, strict=True))[name] for name in about.bound or about.key]
        for column, cell in zip(about.columns, row, strict=False):
            if not isinstance(cell, str) or cell.startswith(mine) or cell in EMPTY:
                continue
            opener = None if self.clear and not cell.startswith(MARK) else self.sealer
            with suppress(ValueError):  # not ours: it stays, and its reader names it
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
"""
A function that seals the next rows of a table after a key; returns the last key examined, or None
if there was no row.
"""


def page(table: str, after: Sequence[Any] | None) -> tuple[str, Sequence[Any]]:
    """
    The statement that reads keys and cells of the next `BATCH` rows after the key *after*, and its
    values.
    """
    about = SEALED[table]
    keys = ", ".join(about.key)
    columns = ", ".join((*about.columns, *CELLS.get(table, ())))
    where = f"WHERE ({keys}) > ({', '.join('?' * len(about.key))})" if after else ""
    sql = f"SELECT {keys}, {columns} FROM {table} {where} ORDER BY {keys} LIMIT {BATCH}"
    return sql, tuple(after or ())


def last_key(table: str, rows: Sequence[Row]) -> Sequence[Any] | None:
    """The key of the last of *rows*; None without rows."""
    return rows[-1][: len(SEALED[table].key)] if rows else None


def _found(table: str) -> str:
    return " AND ".join(f"{name} = ?" for name in SEALED[table].key)


def counting(key_of_cell: str = KEY_OF_CELL) -> Iterator[str]:
    """
    One statement for each sealed column. Each row has the id of a key (NULL: in clear) and the
    number of cells that the key has sealed. *key_of_cell*: the expression of the database for the
    id of the key of a packed cell.
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
    """The number of cells by the id of their key, from the rows of `counting`."""
    found = Counter[str | None]()
    for id, count in rows:
        found[id] += count
    return found


FORGET = "DELETE FROM seal_keys WHERE id = ?"
