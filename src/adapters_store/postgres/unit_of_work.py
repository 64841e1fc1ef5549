"""
The writes that a unit over PostgreSQL collects, until `Committer.commit` stores these writes.

A list over tables that the unit has changed is read in a transaction that first carries out the
unit's writes, and is then rolled back.
"""

from attrs import define, field

from adapters_store.postgres.audit import link
from adapters_store.postgres.committer import Committer
from adapters_store.postgres.connection import lent, rows_of
from adapters_store.postgres.statements import Lock, UnitWrites, perform
from adapters_store.sql.cells import Row
from adapters_store.sql.queries import Query
from adapters_store.sql.unit_of_work import SqlUnitOfWork


@define(eq=False)
class PostgresUnitOfWork(SqlUnitOfWork):
    """One unit's view of the database."""

    committer: Committer = field(kw_only=True)
    locks: set[Lock] = field(factory=set)
    audit: list[tuple[str, str | None]] = field(factory=list)

    async def rows_behind_writes(self, query: Query) -> list[Row]:
        async with lent(self.committer.pool) as connection:
            transaction = connection.transaction()
            await transaction.start()
            try:
                await perform(connection, self.committer.statements, self._writes)
                if self.audit:
                    await link(connection, self.audit)
                return list(await rows_of(connection, query.sql, *query.values))
            finally:
                await transaction.rollback()

    @property
    def _writes(self) -> UnitWrites:
        return UnitWrites(
            self.writes.copy(), frozenset(self.locks), tuple(self.audit), self.pending
        )

    async def commit(self) -> None:
        if self.writes or self.audit:
            await self.committer.commit(self._writes)
            self.locks, self.audit = set(), []
            self.begin_anew()
