"""Decoded records by table and key, bounded in bytes. When they are current: `read_cache`."""

from collections import OrderedDict
from typing import Any

from attrs import define, field

from adapters_store.sqlite.kinds import Key, Row

ENTRY_BYTES = 1_900
"""What an entry takes up beside the values in its texts: key, record, columns, results of steps."""


@define(eq=False)
class Known:
    """
    A decoded record, its row if that is what is compared, and the approximate bytes of both.

    `seen`: the state of the database (see `Reads.state`) in which it was last found current.
    `head`: the part of `size` that the next change replaces; 0 if it was read and that is unknown.
    """

    version: int
    record: Any
    size: int
    row: Row | None = None
    seen: int | None = None
    head: int = 0


@define(eq=False)
class Cache:
    """
    Decoded records by table and key, limited by their approximate size in bytes. One of more than
    `limit` is not stored: each change then writes all its steps again. `lookups`: reads by key that
    asked it; `decoded`: those that had to decode their row.
    """

    limit: int
    entries: OrderedDict[tuple[str, Key], Known] = field(factory=OrderedDict)
    filled: int = 0
    lookups: int = 0
    decoded: int = 0

    def gauges(self) -> dict[str, float]:
        """For metrics."""
        return {
            "wfcore_cache_bytes": self.filled,
            "wfcore_cache_lookups_total": self.lookups,
            "wfcore_cache_decoded_total": self.decoded,
        }

    def get(self, table: str, key: Key) -> Known | None:
        """The record known under that key; the caller compares versions."""
        self.lookups += 1
        return self.entries.get((table, key))

    def keep(self, table: str, key: Key, known: Known) -> None:
        """Store it; the oldest entries make room."""
        self.forget(table, key)
        if known.size > self.limit:
            return
        self.entries[table, key] = known
        self.filled += known.size
        while self.filled > self.limit:
            self.forget(*next(iter(self.entries)))  # a dict would look past all that were popped

    def clear(self) -> None:
        """Remove all of them."""
        self.entries.clear()
        self.filled = 0

    def forget(self, table: str, key: Key) -> None:
        """Remove it."""
        old = self.entries.pop((table, key), None)
        if old is not None:
            self.filled -= old.size
