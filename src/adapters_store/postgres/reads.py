"""
Reads: each read is a request to the server, unless the cache knows that a record is still current.

Decoded records are kept as by SQLite's store, and count as current in one of three ways:

- accounts, keys, workflows and webhooks while the number in `changes` is the same; requests that
  arrive together share one read of that number, which begins after their arrival;
- executions, approvals and triggers if the row has the version that is known; then the server
  sends nothing else;
- definitions always: they never change.

Rows that a unit reads behind its own writes are not cached: these writes may be rolled back.
"""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from attrs import define, field

from adapters_store.postgres.connection import Pool, lent, rows_of
from adapters_store.sql.cache import Reads
from adapters_store.sql.cells import Key, Row
from adapters_store.sql.kinds import Fetch
from adapters_store.sql.queries import Query

R = TypeVar("R")

CHANGES = "SELECT number FROM changes"


@define(eq=False)
class PostgresReads(Reads):
    """All reads of one store."""

    pool: Pool = field(kw_only=True)
    _reading: "asyncio.Task[int] | None" = None

    async def rows(self, query: Query) -> list[Row]:
        """All rows of *query*. Raises `StoreUnavailable`."""
        return list(await self._fetch(query.sql, *query.values))

    async def few(self, query: Query) -> list[Row]:
        """
        All rows of *query*, as from `rows`: each read is a request to the server. Raises
        `StoreUnavailable`.
        """
        return await self.rows(query)

    async def row(self, sql: str, values: Sequence[Any]) -> Row | None:
        """The first row of a statement. Raises `StoreUnavailable`."""
        found = await self._fetch(sql, *values)
        return found[0] if found else None

    async def _fetch(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        async with lent(self.pool) as connection:
            return await rows_of(connection, sql, *values)

    async def one(self, fetch: Fetch[R], key: Key) -> R | None:
        """The record under *key*. Raises `StoreUnavailable`."""
        known = self.cache.get(fetch.table, key)
        if known is not None and fetch.immutable:
            return known.record  # type: ignore[no-any-return]
        seen = await self._changes() if fetch.watched else None
        if known is not None and seen is not None and known.seen == seen:
            return known.record  # type: ignore[no-any-return]
        version = known.version if known is not None and fetch.probe is not None else -1
        found = await self._fetch(fetch.fetch, *key, *([] if fetch.probe is None else [version]))
        if not found:
            return None
        row = found[0]
        if known is not None and (row[0] == version or known.row == row):
            known.seen = seen
            return known.record  # type: ignore[no-any-return]
        return self.decoded(fetch, key, row, seen)

    async def _changes(self) -> int:
        """
        A number that changes with every change of a watched record; the number is read after this
        call.
        """
        if self._reading is None:
            self._reading = asyncio.ensure_future(self._read_changes())
        return await asyncio.shield(self._reading)

    async def _read_changes(self) -> int:
        await asyncio.sleep(0)  # all readers of this turn of the loop share the answer
        self._reading = None
        return int((await self._fetch(CHANGES))[0][0])

    def stored(self, kept: Mapping[tuple[str, Key], Any]) -> None:
        """
        Put the records that a unit has stored into the cache; the next read compares their
        versions.
        """
        for (table, key), (_, known) in kept.items():
            self.cache.forget(table, key)
            if known is not None:
                self.cache.keep(table, key, known)

    async def close(self) -> None:
        """Wait for a read of changes that has begun."""
        if self._reading is not None:
            await asyncio.wait((self._reading,))
