"""The SQLite file as one side of a move. See `adapters_store.sql.moving`."""
# ruff: noqa: S608 - only constant names of this package are put into the text

from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, closing, contextmanager
from pathlib import Path

from attrs import define, field

from adapters_store.defaults import wall_clock
from adapters_store.sql import moving
from adapters_store.sql.moving import Elsewhere, KeyRange, Mark, MoveState, Row
from adapters_store.sqlite.audit import ADD_AUDIT, link
from adapters_store.sqlite.connection import (
    Connection,
    connect,
    connect_writer,
    unavailable_on_error,
)
from adapters_store.sqlite.migrate import inspect, prepare
from wfcore.errors import StoreRefused
from wfcore.model.event import AuditEntry
from wfcore.rules.audit.chain import entry_text

GONE = '1 FROM "this database was moved"'
"""
The expression of a fence. The table does not exist: RAISE would pass for a lost race, after which
clients try again.
"""
FILLING = "this_database_is_being_filled()"
"""The function that only the connection of a move has."""
_FENCE = [
    (f"moved_{table}_{change}", table, change)
    for table in moving.MOVED
    for change in ("INSERT", "UPDATE", "DELETE")
]
"""The triggers of the fence: name, table and change."""
HAS_NODES = "SELECT 1 FROM sqlite_schema WHERE name = 'nodes'"
HAS_MARK = "SELECT 1 FROM sqlite_schema WHERE name = 'moving'"


def mark_of(connection: Connection) -> Mark | None:
    if not connection.execute(HAS_MARK).fetchone():
        return None
    state, id, other = connection.execute(moving.READ_MARK).fetchone()
    return Mark(MoveState(state), id, other)


def require_here(path: Path) -> None:
    """
    Raises `StoreRefused` if the service of *path* was moved elsewhere, or has not fully arrived.
    """
    with unavailable_on_error(), closing(connect(path, "ro")) as connection:
        mark = mark_of(connection)
    if mark is not None:
        raise Elsewhere(mark.refusal(str(path)))


@define(eq=False)
class SqliteSide:
    """Implements `adapters_store.sql.moving.Side`. Created by `SqliteSide.opened`."""

    location: str
    _connection: Connection = field(repr=False)

    @classmethod
    @contextmanager
    def opened(cls, path: Path, data: Path, *, prepared: bool = True) -> "Iterator[SqliteSide]":
        """
        A side for the file *path* of the data folder *data*; the file gets the newest schema if
        *prepared*. Raises `StoreRefused` as for a server, and `StoreUnavailable`.
        """
        if prepared:
            prepare(path, data)
        else:
            inspect(path)
        with unavailable_on_error(), closing(connect_writer(path)) as connection:
            connection.create_function(FILLING.removesuffix("()"), 0, lambda: None)
            yield cls(str(path.absolute()), connection)

    async def mark(self) -> Mark | None:
        return mark_of(self._connection)

    async def live(self) -> Sequence[str]:
        if not self._connection.execute(HAS_NODES).fetchone():
            return ()
        rows = self._connection.execute(moving.NODES).fetchall()
        return moving.living((body for (body,) in rows), wall_clock())

    async def note(self, entry: AuditEntry) -> None:
        with self._unit():
            for values in link(self._connection.cursor(), [(entry_text(entry), None)]):
                self._connection.execute(ADD_AUDIT.one, values)

    async def service_id(self) -> str:
        return str(self._connection.execute("SELECT id FROM audit_chain").fetchone()[0])

    async def columns(self, table: str) -> Sequence[str]:
        return [row[1] for row in self._connection.execute(f"PRAGMA table_info({table})")]

    async def readable(self, table: str) -> Sequence[str]:
        return [row[1] for row in self._connection.execute(f"PRAGMA table_xinfo({table})")]

    @asynccontextmanager
    async def locked(self) -> AsyncIterator[None]:
        with self._unit():
            yield

    @contextmanager
    def _unit(self) -> Iterator[None]:
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._connection.execute("COMMIT")
        finally:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")

    async def rows(self, table: str, columns: Sequence[str]) -> AsyncIterator[Row]:
        text = moving.selected(table, columns, await self.readable(table))
        for row in self._connection.execute(text + moving.ordered(table)):
            yield row

    async def between(self, span: KeyRange) -> list[Row]:
        where, values = span.where
        text = moving.selected(span.table, span.columns, span.columns)
        return self._connection.execute(
            text + where + moving.ordered(span.table), values
        ).fetchall()

    async def replace(self, span: KeyRange, rows: Sequence[Row]) -> None:
        where, values = span.where
        marks = ", ".join("?" * len(span.columns))
        insert = f"INSERT INTO {span.table} ({', '.join(span.columns)}) VALUES ({marks})"
        with self._unit():
            if mark_of(self._connection) is None:
                raise StoreRefused(moving.ended(self.location))
            self._connection.execute(f"DELETE FROM {span.table}{where}", values)
            self._connection.executemany(insert, rows)

    @asynccontextmanager
    async def begun(self, mark: Mark) -> AsyncIterator[None]:
        with self._unit():
            self._take(mark, FILLING)
            yield

    async def fence(self, mark: Mark) -> None:
        self._take(mark, GONE)

    def _take(self, mark: Mark, expression: str) -> None:
        self._connection.execute(moving.MARKED)
        self._connection.execute(moving.MARK, (mark.state, mark.id, mark.other))
        for name, table, change in _FENCE:
            self._connection.execute(
                f"CREATE TRIGGER {name} BEFORE {change} ON {table} BEGIN SELECT {expression}; END"
            )

    async def end(self) -> None:
        with self._unit():
            for name, _, _ in _FENCE:
                self._connection.execute(f"DROP TRIGGER IF EXISTS {name}")
            self._connection.execute(moving.UNMARKED)
