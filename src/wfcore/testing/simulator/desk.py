"""Where a unit of the simulated store reads and collects."""

from collections.abc import Callable, Hashable, Iterable, Sequence
from operator import attrgetter
from typing import Any, TypeVar

from wfcore.model.page import Page, PageRequest
from wfcore.testing.simulator.asks import Gate
from wfcore.testing.simulator.tables import Change, Disk, Kind, Overlay, V

R = TypeVar("R")


class Desk:
    """The reads and collected changes of one unit. Every read passes the gate."""

    __slots__ = ("changes", "disk", "gate", "overlay")

    def __init__(self, disk: Disk, gate: Gate) -> None:
        self.disk = disk
        self.gate = gate
        self.overlay = Overlay(disk)
        self.changes: list[Change] = []

    def __str__(self) -> str:
        """What was collected, for the trace."""
        changed = self.overlay.changes.items()
        return ", ".join(
            f"{name} {key} {_state(row)}".rstrip()
            for name, rows in changed
            for key, row in rows.items()
        )

    async def one(self, kind: Kind[R], key: Hashable) -> R | None:
        """The record under *key*."""
        return await self.gate(kind.name, key, lambda: self.overlay.get(kind, key))

    async def select(self, kind: Kind[R], holds: Callable[[R], bool]) -> list[R]:
        """Every record of which *holds* is true."""
        return await self.gate(
            kind.name, "*", lambda: [one for one in self.overlay.all(kind) if holds(one)]
        )

    def collect(self, change: Change) -> None:
        """Keep *change* for the commit; reads of this unit see it from now on."""
        change(self.overlay)
        self.changes.append(change)

    def put(self, kind: Kind[V], key: Hashable, record: V) -> None:
        """Compare-and-set one record."""
        self.collect(lambda overlay: overlay.put(kind, key, record))

    async def commit(self) -> None:
        """Carry out everything that was collected, or raise `Stale` and change nothing."""
        await self.gate("commit", self, self._settle, writes=True)
        self.changes.clear()

    def _settle(self) -> None:
        settled = Overlay(self.disk, strict=True)
        for change in self.changes:
            change(settled)
        self.disk.settle(settled.changes)


def newest(records: Iterable[R], at: str = "created_at") -> list[R]:
    """*records*, newest first."""
    when: Callable[[Any], Any] = attrgetter(at)
    return sorted(records, key=lambda r: (when(r), getattr(r, "id", "")), reverse=True)


def cut(records: Sequence[R], page: PageRequest) -> Page[R]:
    """One page of *records*."""
    rows = tuple(records[page.offset : page.offset + page.size])
    return Page(rows, len(records), page.page, page.size)


def _state(record: Any) -> str:
    """What is worth telling of a record in a trace."""
    if record is None:
        return "deleted"
    if isinstance(record, tuple):
        return f"up to {len(record)}"
    version, status = getattr(record, "version", ""), getattr(record, "status", "")
    return f"v{version} {status}" if version else ""
