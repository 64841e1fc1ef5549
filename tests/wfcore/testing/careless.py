"""Stores in memory that forget one thing each, in two handles, and how they are compared."""

from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

from adapters_store.memory import MemoryStore
from wfcore.memory import Disk, MemoryUnit, UnitOfWork, writes
from wfcore.memory.overlay import Overlay
from wfcore.ports.store import Store
from wfcore.testing.comparison.comparing import StoreComparison
from wfcore.time import Now


class Unversioned(UnitOfWork):
    """A commit that compares no version: updates get lost."""

    def _settle(self) -> None:
        with mock.patch.object(Overlay, "expect", return_value=None):
            super()._settle()


class Holding(UnitOfWork):
    """A commit that leaves the lease to an execution whose worker let go of it."""

    def _settle(self) -> None:
        with mock.patch.object(writes, "_let_go", return_value=None):
            super()._settle()


class Unlocked(UnitOfWork):
    """A commit that compares first and stores afterwards, with no lock in between."""

    async def commit(self) -> None:
        settled = Overlay(self.medium, strict=True)
        await self._gate("compare", self, lambda: [change(settled) for change in self.changes])
        await self._gate("store", self, lambda: self.medium.settle(settled.changes), writes=True)
        self.changes.clear()


class Uncommitted(UnitOfWork):
    """A unit that reads what other units have written and not committed: READ UNCOMMITTED."""

    def __init__(self, disk: Any, *more: Any) -> None:
        super().__init__(disk, *more)
        vars(disk).setdefault("units", []).append(self)

    @property
    def overlay(self) -> Overlay:
        seen = Overlay(self.medium)
        for unit in vars(self.medium)["units"]:
            for change in unit.changes:
                change(seen)
        return seen


class RolledBack(MemoryUnit):
    """A unit whose writes are taken back if it ends without a commit."""

    async def __aexit__(self, *raised: object) -> None:
        self._unit.changes.clear()


class Caching(MemoryUnit):
    """A unit that reads records from the cache of its handle, which hears of no other handle."""

    cache: dict[Any, Any]

    async def get(self, kind: type[Any], *key: str | int) -> Any:
        if self._unit.changes:
            return await super().get(kind, *key)
        if (kind, key) not in self.cache:
            self.cache[kind, key] = await super().get(kind, *key)
        return self.cache[kind, key]

    async def commit(self) -> None:
        await super().commit()
        self.cache.clear()


class CarelessStore(MemoryStore):
    """A handle on *disk* whose units work as *work* does."""

    def __init__(self, disk: Disk, now: Now, work: type[UnitOfWork]) -> None:
        super().__init__(disk, now)
        self._work = work

    def unit(self) -> MemoryUnit:
        return RolledBack(self._work(self.disk, self._gate, self._now, self.ended))


class CachingStore(MemoryStore):
    """A handle on *disk* with a cache of its own."""

    def __init__(self, disk: Disk, now: Now) -> None:
        super().__init__(disk, now)
        self._cache: dict[Any, Any] = {}

    def unit(self) -> MemoryUnit:
        unit = Caching(super().unit()._unit)
        unit.cache = self._cache
        return unit


Handle = Callable[[Any, Now], Store]
"""Makes a handle on a disk."""


def working(work: type[UnitOfWork]) -> Handle:
    """Handles whose units work so."""
    return lambda disk, now: CarelessStore(disk, now, work)


def comparison(handle: Handle, *, two: bool = True) -> type[StoreComparison]:
    """A comparison of such a store, through two handles or one."""

    class Careless(StoreComparison):
        async def open(self, folder: Path) -> Store:
            self.disk = Disk()
            return handle(self.disk, self.clock.service_now)

        async def reopen(self, folder: Path) -> Store | None:
            return handle(self.disk, self.clock.service_now) if two else None

    return Careless
