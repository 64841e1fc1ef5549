"""
Where a unit reads and collects its writes, before `Committer.commit` carries them to the server.

A record that the unit has put is read from here. A list over tables that the unit has changed is
read in a transaction that carries out the unit's writes, and is rolled back.
"""

from attrs import define, field

from adapters_store.postgres.audit import link
from adapters_store.postgres.committer import Committer
from adapters_store.postgres.connection import lent, rows_of
from adapters_store.postgres.statements import Lock, UnitWrites, perform
from adapters_store.sqlite import unit_of_work
from adapters_store.sqlite.kinds import Row
from adapters_store.sqlite.queries import Query


@define(eq=False)
class PostgresUnitOfWork(unit_of_work.UnitOfWork):
    """
    One unit's view of the database. `reads` is one of this package, which has the form of SQLite's.
    """

    committer: Committer = field(kw_only=True)
    locks: set[Lock] = field(factory=set)
    audit: list[tuple[str, str | None]] = field(factory=list)

    async def rows(self, query: Query) -> list[Row]:
        """All rows of *query*, with the unit's own writes in them."""
        if self.changed.isdisjoint(query.tables):
            return await self.reads.rows(query)
        async with lent(self.committer.pool) as connection:
            looking = connection.transaction()
            await looking.start()
            try:
                await perform(connection, self.committer.statements, self._writes)
                if self.audit:
                    await link(connection, self.audit)
                return list(await rows_of(connection, query.sql, *query.values))
            finally:
                await looking.rollback()

    @property
    def _writes(self) -> UnitWrites:
        return UnitWrites(
            self.writes.copy(), frozenset(self.locks), tuple(self.audit), self.pending
        )

    async def commit(self) -> None:
        """Submit everything and wait until it is durable. Raises `Stale`, `StoreUnavailable`."""
        if not (self.writes or self.audit):
            return
        writes = self._writes
        await self.committer.commit(writes)
        self.writes, self.pending = [], {}
        self.locks, self.audit = set(), []
        self.changed.clear()
