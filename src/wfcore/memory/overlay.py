"""
One unit's view of the shared tables: the tables with the unit's own changes on top.

The same list of changes runs twice: leniently before the unit reads, so that the unit sees its own
writes, and strictly when the unit commits; then a failed expectation is `Stale`.
"""

from collections.abc import Callable, Hashable, Iterable
from typing import Any, Generic, Protocol, TypeVar, cast

from attrs import AttrsInstance, evolve, frozen

from wfcore.errors import Stale
from wfcore.memory.disk import Changes, Medium
from wfcore.model import execution


class Versioned(AttrsInstance, Protocol):
    """A record with a version."""

    @property
    def version(self) -> int: ...


R = TypeVar("R")
V = TypeVar("V", bound=Versioned)


@frozen
class Table(Generic[R]):
    """The name of a table; its type names the records in the table."""

    name: str


class Overlay:
    """Changes on top of a medium. The changes reach the medium only through its `settle`."""

    __slots__ = ("_strict", "_tables", "changes")

    def __init__(self, disk: Medium, *, strict: bool = False) -> None:
        self._tables = disk.tables
        self._strict = strict
        self.changes: Changes = {}

    def get(self, kind: Table[R], key: Hashable) -> R | None:
        """The record under *key*, including changes."""
        changed = self.changes.get(kind.name)
        if changed is not None and key in changed:
            return cast("R | None", changed[key])
        return cast("R | None", self._tables[kind.name].get(key))

    def all(self, kind: Table[R]) -> Iterable[R]:
        """Every record of that kind."""
        stored, changed = self._tables[kind.name], self.changes.get(kind.name)
        merged = {**stored, **changed} if changed else dict(stored)
        return cast("Iterable[R]", (record for record in merged.values() if record is not None))

    def set(self, kind: Table[R], key: Hashable, record: R | None) -> None:
        """Change one record; *record* None deletes the stored record."""
        self.changes.setdefault(kind.name, {})[key] = record

    def clear(self, kind: Table[R], holds: Callable[[R], bool]) -> None:
        """Delete every record for which *holds* is true."""
        stored, changed = self._tables[kind.name], self.changes.get(kind.name, {})
        for key, record in {**stored, **changed}.items():
            if record is not None and holds(cast("R", record)):
                self.set(kind, key, None)

    def put(self, kind: Table[V], key: Hashable, record: V) -> None:
        """Compare the version and set; the stored copy's version is one higher."""
        stored = self.get(kind, key)
        self.expect(kind, key, (stored.version if stored else 0) == record.version)
        copied: Any = execution.evolve if hasattr(record, "__dict__") else evolve
        self.set(kind, key, copied(record, version=record.version + 1))

    def drop(self, kind: Table[V], key: Hashable, record: V) -> None:
        """Compare the version and delete."""
        stored = self.get(kind, key)
        self.expect(kind, key, stored is not None and stored.version == record.version)
        self.set(kind, key, None)

    def expect(self, kind: Table[Any], key: Hashable, holds: bool) -> None:
        """Raise `Stale` if this overlay is strict and *holds* is false."""
        if self._strict and not holds:
            raise Stale(kind=kind.name, id=str(key))


Change = Callable[[Overlay], None]
