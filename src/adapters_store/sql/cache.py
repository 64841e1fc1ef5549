"""
Decoded records by key and version, up to a number of bytes.

Records are frozen, so that one decoded record serves all readers. The reads of each database decide
whether a cached record is still current (`sqlite.reads`, `postgres.reads`).
"""

import logging
from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any, TypeVar

from attrs import define, field

from adapters_store.sql.cells import Cells, Key, Row, cost_of
from adapters_store.sql.kinds import Decode, Fetch
from adapters_store.sql.queries import Query
from adapters_store.sql.statement import Values
from wfcore.errors import Unreadable
from wfcore.ports.system import Sealer

R = TypeVar("R")
log = logging.getLogger("wfcore.store")

ENTRY_BYTES = 1_900
"""The bytes of an entry without the values in its texts: key, record, columns, results of steps."""


LIGHT = 1 << 20
"""The most bytes of a record that is held outside the cache."""


@define(eq=False)
class KnownRecord:
    """
    A decoded record, and the approximate bytes that the record and its row take up.

    `row`: the row, if rows are compared to find changes. `seen`: the state of the database (see
    `Reads.state`) in which the record was last found current. `head`: the part of `size` that the
    next change replaces; 0 if that is unknown, because the record was read. `bare`: the record
    without its large values, if large values were read, with `bare_size` and `bare_head`.
    """

    version: int
    record: Any
    size: int
    row: Values | Sequence[Any] | None = None
    seen: int | None = None
    head: int = 0
    bare: Any = None
    bare_size: int = 0
    bare_head: int = 0

    @property
    def least(self) -> Any:
        """The record without large values."""
        return self.record if self.bare is None else self.bare

    @property
    def light(self) -> Any:
        """
        The record to hold for long: with its large values only if it is at most `LIGHT` in size.
        """
        return self.record if self.size <= LIGHT else self.least

    @property
    def rest(self) -> int:
        """The part of `size` that the next change leaves."""
        return self.size - self.head

    @property
    def bare_rest(self) -> int:
        """The part of `bare_size` that the next change leaves."""
        return self.rest if self.bare is None else self.bare_size - self.bare_head

    @property
    def alone(self) -> "KnownRecord":
        """A `KnownRecord` of the record without large values."""
        if self.bare is None:
            return self
        return KnownRecord(self.version, self.bare, self.bare_size, None, self.seen, self.bare_head)


@define(eq=False)
class RecordCache:
    """
    Decoded records by table and key, limited by their approximate size in bytes. A record of more
    than `limit` bytes is not stored; each change of such a record writes all its steps again.
    `lookups`: the reads by key; `decoded`: the reads that had to decode a row.
    """

    limit: int
    entries: OrderedDict[tuple[str, Key], KnownRecord] = field(factory=OrderedDict)
    filled: int = 0
    lookups: int = 0
    decoded: int = 0

    def gauges(self) -> dict[str, float]:
        """The gauges for metrics."""
        return {
            "wfcore_cache_bytes": self.filled,
            "wfcore_cache_lookups_total": self.lookups,
            "wfcore_cache_decoded_total": self.decoded,
        }

    def get(self, table: str, key: Key) -> KnownRecord | None:
        """The record known under *key*; the caller compares versions."""
        self.lookups += 1
        return self.entries.get((table, key))

    def keep(self, table: str, key: Key, known: KnownRecord) -> None:
        """
        Store *known*, without its large values if it is too large with them; drop the oldest
        entries to make room.
        """
        self.forget(table, key)
        if known.size > self.limit and known.bare is not None:
            known = known.alone
        if known.size > self.limit:
            return
        self.entries[table, key] = known
        self.filled += known.size
        while self.filled > self.limit:
            self.forget(*next(iter(self.entries)))  # a dict would walk over all that were popped

    def forget(self, table: str, key: Key) -> None:
        """Remove the record under *key*."""
        old = self.entries.pop((table, key), None)
        if old is not None:
            self.filled -= old.size


@define(eq=False)
class Decoder:
    """
    Decodes rows to records, and caches the records. `unreadable`: the type of the error of each
    record that could not be read, by table and id.
    """

    cache: RecordCache
    sealer: Sealer | None = None
    unreadable: dict[tuple[str, str], str] = field(factory=dict)

    def decoded(self, fetch: Fetch[R], key: Key, row: Row, seen: int | None = None) -> R:
        """The record in *row*, cached under *key*."""
        self.cache.decoded += 1
        cells = Cells(self.sealer, fetch.table, key)
        record = self.read(fetch.table, fetch.decode, row, key, cells)
        texts = [text for text in row if isinstance(text, str)]
        compared = None if fetch.probe else row
        size = ENTRY_BYTES + cells.cost + sum(map(cost_of, texts))
        size += sum(map(len, texts)) if compared else 0
        self.cache.keep(fetch.table, key, KnownRecord(row[0], record, size, compared, seen))
        return record

    def read(
        self, table: str, decode: Decode[R], row: Row, key: Key, cells: Cells | None = None
    ) -> R:
        """
        The record in *row*. Raises `Unreadable` for a broken record, and names the record in the
        log: the first time, and each time the record is read alone (with *cells* of its own). The
        content of a record is never logged.
        """
        try:
            return decode(row, cells or Cells(self.sealer, table, key))
        except Exception as error:  # whatever a broken record raises
            id, kind = "/".join(map(str, key)), type(error).__name__
            if cells or (table, id) not in self.unreadable:
                about = {"kind": table, "id": id, "error": kind}
                log.error("a record cannot be read", extra=about)
            self.unreadable[table, id] = kind
            raise Unreadable(table, id) from None


class Reads(Decoder, ABC):
    """All reads of one store. Every method raises `StoreUnavailable`."""

    @abstractmethod
    async def one(self, fetch: Fetch[R], key: Key) -> R | None:
        """The record under *key*."""

    @abstractmethod
    async def row(self, sql: str, values: Sequence[Any]) -> Row | None:
        """The first row that *sql* finds, or None."""

    @abstractmethod
    async def few(self, query: Query) -> list[Row]:
        """All rows of a query that finds only a few rows."""

    @abstractmethod
    async def rows(self, query: Query) -> list[Row]:
        """All rows of *query*."""
