"""The writes that a unit over a file collects, before one job gives all writes to the writer."""

from collections.abc import Callable, Collection, Sequence

from attrs import define, field

from adapters_store.sql.cells import Row
from adapters_store.sql.queries import Query
from adapters_store.sql.statement import Write
from adapters_store.sql.unit_of_work import SqlUnitOfWork
from adapters_store.sqlite.connection import Cursor
from adapters_store.sqlite.statements import Writes, perform
from adapters_store.sqlite.writer import Writer

Ended = Callable[[Collection[str]], Sequence[str]]
"""A function that returns those of the given workers whose process has ended."""


def peek(cursor: Cursor, writes: Sequence[Write], query: Query) -> list[Row]:
    """The rows of *query* as they would be after *writes*; nothing is stored."""
    cursor.execute("SAVEPOINT peek")
    perform(cursor, writes)
    rows = cursor.execute(query.sql, query.values).fetchall()
    cursor.execute("ROLLBACK TO peek")
    cursor.execute("RELEASE peek")
    return rows


@define(eq=False)
class SqliteUnitOfWork(SqlUnitOfWork):
    """One unit's view of the file."""

    writer: Writer = field(kw_only=True)
    ended: Ended = field(kw_only=True)

    async def rows_behind_writes(self, query: Query) -> list[Row]:
        writes = self.writes.copy()
        return await self.writer.submit(lambda cursor: peek(cursor, writes, query))

    async def commit(self) -> None:
        if self.writes:
            await self.writer.submit(Writes(self.writes, self.pending))
            self.begin_anew()
