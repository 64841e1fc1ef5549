"""
The reads and the collected writes of a unit. The writes are stored together when the unit commits.

A record that the unit has put is read from the collected writes. A list over tables that the unit
has changed is read behind the unit's own writes, which are then rolled back.
"""
# ruff: noqa: S608 - only constant text of this package is put together

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar, cast

from attrs import define, field

from adapters_store.sql.cache import KnownRecord, Reads
from adapters_store.sql.cells import ASIDE, Key, Row, text_of
from adapters_store.sql.kinds import Decode, Fetch, Kind
from adapters_store.sql.queries import Query, query
from adapters_store.sql.statement import Write
from wfcore.errors import Unreadable
from wfcore.model.page import Page, PageCursor, PageRequest
from wfcore.ports.system import Sealer
from wfcore.time import Now

R = TypeVar("R")
_NARROW = 4
"""The most columns of a narrow row: version, body, and a key of up to two columns."""
_PLACED = 3
"""
The number of columns before the columns of the record in a row of a `Listing`: the total and the
two values of the order.
"""


def _key_of(row: Row) -> Key:
    """
    The key of the record in *row*: the columns after version and body; for an execution the last
    column.
    """
    return tuple(row[2:] if len(row) <= _NARROW else row[-1:])


@define(eq=False)
class SqlUnitOfWork(ABC):
    """
    One unit's view of the database. `pending`: the records that the unit put (None: deleted), each
    with the form to cache, if it is worth caching. `read`: the executions that the unit read, by
    id; `stored_at`: the versions at which the executions that the unit put are stored, by id.
    """

    reads: Reads
    now: Now
    writes: list[Write] = field(factory=list)
    pending: dict[tuple[str, Key], tuple[Any, KnownRecord | None]] = field(factory=dict)
    read: dict[str, KnownRecord] = field(factory=dict)
    stored_at: dict[str, int] = field(factory=dict)
    changed: set[str] = field(factory=set)

    @property
    def sealer(self) -> Sealer | None:
        """The sealer of the unit's writes."""
        return self.reads.sealer

    async def one(self, fetch: Fetch[R], key: Key) -> R | None:
        """The record under *key*, the unit's own draft first."""
        if self.pending and (draft := (fetch.table, key)) in self.pending:
            return cast("R | None", self.pending[draft][0])
        return await self.reads.one(fetch, key)

    async def rows(self, query: Query) -> list[Row]:
        """All rows of *query*, including the unit's own writes."""
        if self._has_changed(query):
            return await self.rows_behind_writes(query)
        return await self.reads.rows(query)

    @abstractmethod
    async def rows_behind_writes(self, query: Query) -> list[Row]:
        """All rows of *query* as they would be if the unit were stored now."""

    def _has_changed(self, query: Query) -> bool:
        return bool(self.changed) and not self.changed.isdisjoint(query.tables)

    async def few(self, kind: Kind[R], query: Query) -> list[R]:
        """The records of a query that finds only a few records."""
        return self.readable(kind.table, kind.decode, await self.few_rows(query))

    async def few_rows(self, query: Query) -> list[Row]:
        """All rows of a query that finds only a few rows, without a thread if possible."""
        if self._has_changed(query):
            return await self.rows_behind_writes(query)
        return await self.reads.few(query)

    async def first(self, kind: Kind[R], query: Query, **by: str) -> R | None:
        """The only record of a query over a unique value; *by*: the columns with that value."""
        if not self._has_changed(query):
            row = await self.reads.row(query.sql, query.values)
            decode = kind.found_by(by)
            return None if row is None else self.reads.read(kind.table, decode, row, _key_of(row))
        return next(iter(await self.records(kind, query, **by)), None)

    async def records(self, kind: Kind[R], query: Query, **by: str) -> list[R]:
        """
        The records of a query for version, body and key. Records that cannot be read, or that
        differ from the columns *by* which they were found, are left out.
        """
        return self.readable(kind.table, kind.found_by(by), await self.rows(query))

    def readable(self, table: str, decode: Decode[R], rows: Sequence[Row]) -> list[R]:
        """The records in *rows*; a record that cannot be read is named in the log and left out."""
        found = []
        for row in rows:
            with suppress(Unreadable):
                found.append(self.reads.read(table, decode, row, _key_of(row)))
        return found

    async def read_aside(self, table: str, decode: Decode[R], rows: Sequence[Row]) -> list[R]:
        """
        `readable`, in a thread if the rows are large, as in lists whose records hold payloads.
        ST-7.
        """
        read = partial(self.readable, table, decode, rows)
        size = sum(len(cell) for row in rows for cell in row if isinstance(cell, str))
        return await asyncio.to_thread(read) if size > ASIDE else read()

    async def among(self, kind: Kind[R], ids: Collection[str]) -> list[R]:
        """
        The records of *ids* that exist, by id. A single record is read by its key, as polls read
        it, so that the cache can answer.
        """
        if len(ids) <= 1:
            alone: list[R] = []
            for id in ids:
                record: R | None = await self.one(kind.one, (id,))
                alone += [] if record is None else [record]
            return alone
        sql = f"""SELECT version, {kind.whole}, id FROM {kind.table}
            WHERE id IN (SELECT value FROM json_each(?)) ORDER BY id"""
        return await self.few(kind, query(sql, text_of(list(ids))))

    async def some(self, table: str, decode: Decode[R], query: Query, limit: int) -> list[R]:
        """
        Up to *limit* records of a query without a limit. If none of the first *limit* records can
        be read, the next records follow: unreadable records must not block the readable records.
        """
        offset = 0
        while True:
            rows = await self.rows(query.part(limit, offset))
            found = self.readable(table, decode, rows)
            if found or len(rows) < limit:
                return found
            offset += limit

    async def page(self, table: str, decode: Decode[R], query: Query, page: PageRequest) -> Page[R]:
        """One page of a `Listing`; a record that cannot be read counts, but is left out."""
        rows = await self.rows(query)
        total = rows[0][0] if rows else None
        shown = [row for row in rows if row[_PLACED] is not None][: page.size]
        found = self.readable(table, decode, [row[_PLACED:] for row in shown])
        more = len(rows) > page.size
        next = PageCursor(*shown[-1][1:_PLACED]) if more else None
        return Page(tuple(found), total, page.page, page.size, next)

    def write(self, table: str, *writes: Write) -> None:
        """Collect writes that change *table*."""
        self.writes.extend(writes)
        self.changed.add(table)

    def require(self, write: Write) -> None:
        """Collect a condition: if the text finds no row, the unit is stale."""
        self.writes.append(write)

    def pend(self, table: str, key: Key, record: Any, known: KnownRecord | None = None) -> None:
        """
        Let reads of *key* show *record* from now on. *known*: the form to cache after the commit;
        None: not worth caching.
        """
        self.pending[table, key] = record, known

    def put(self, kind: Kind[R], record: R) -> None:
        """Collect the compare-and-set of a record that is one row."""
        self.write(kind.table, *kind.put(record, self.sealer))
        self.pend(kind.table, kind.key_of(record), kind.bumped(record))

    def delete(self, kind: Kind[R], key: Key, write: Write) -> None:
        """Collect a deletion."""
        self.write(kind.table, write)
        self.pend(kind.table, key, None)

    @abstractmethod
    async def commit(self) -> None:
        """Store everything, durably. Raises `Stale`, `StoreUnavailable`."""

    def begin_anew(self) -> None:
        """Forget all collected writes and all reads."""
        self.writes, self.pending = [], {}
        self.read, self.stored_at = {}, {}
        self.changed.clear()
