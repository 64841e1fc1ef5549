"""What a store promises holds as well when all that has ended is packed; and in another store."""

import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve
from hypothesis import settings

from adapters_store.postgres.store import PostgresStore
from adapters_store.sql.sealing import AeadSealer, new_key
from adapters_store.sqlite.store import SqliteStore
from adapters_store.sqlite.unit import SqliteUnit
from wfcore.errors import Stale
from wfcore.model.execution import Execution, ExecutionStatus
from wfcore.model.page import PageRequest
from wfcore.ports.records import ExecutionFilter
from wfcore.ports.store import Store
from wfcore.ports.system import Sealer
from wfcore.testing import ManualClock
from wfcore.testing import builders as make
from wfcore.testing.comparison.comparing import StoreComparison
from wfcore.testing.contracts.heads import HeadContract
from wfcore.testing.contracts.keeping import keep
from wfcore.testing.contracts.lists import ListContract
from wfcore.testing.contracts.units import UnitContract
from wfcore.testing.contracts.upkeep import UpkeepContract

from .test_contract import SealedSqliteHandles
from .test_moving import blank, carry, folder, fresh
from .test_packing import pack_all

__all__ = ["fresh"]
"""A fixture that is used here, too."""


class PackingUnit(SqliteUnit):
    async def commit(self) -> None:
        await super().commit()
        sealer = self._unit.sealer
        await self._unit.writer.submit(lambda cursor: pack_all(cursor, sealer))


class PackingStore(SqliteStore):
    """Packs after each commit what has ended."""

    def unit(self) -> SqliteUnit:
        return PackingUnit(super().unit()._unit)


class TestPackingStore(
    SealedSqliteHandles, UnitContract, HeadContract, ListContract, UpkeepContract
):
    """Executions that have ended are packed at once: read, changed, listed and purged as before."""

    @pytest.fixture
    async def store(
        self, tmp_path: Path, clock: ManualClock, cache_bytes: int, sealer: Sealer | None
    ) -> AsyncIterator[Store]:
        path = tmp_path / "wfcore.db"
        store = await PackingStore.open(path, None, cache_bytes, sealer, clock.service_now)
        yield store
        await store.close()


class PackingComparison(StoreComparison):
    async def open(self, folder: Path) -> Store:
        return await PackingStore.open(folder / "wfcore.db", now=self.clock.service_now)

    async def reopen(self, folder: Path) -> Store:
        return await self.open(folder)


TestPackingComparison = PackingComparison.TestCase
TestPackingComparison.settings = settings(max_examples=15)


async def test_what_is_packed_is_read_and_changed_elsewhere(tmp_path: Path, fresh: str) -> None:
    """
    Cells are moved as they are, without their key: read and changed in PostgreSQL, and in SQLite
    again.
    """
    sealer, url = AeadSealer([new_key()]), await blank(fresh)
    old, new = folder(tmp_path, "old"), folder(tmp_path, "new")
    store = await SqliteStore.open(old, sealer=sealer)
    ended = evolve(make.execution("exec_2", status=ExecutionStatus.FAILED), completed_at=make.NOW)
    ended = evolve(ended, output="c4nary", step_results={"a": make.step_result(output=["c4nary"])})
    await keep(store, ended, make.event(1, "exec_2"), make.event(2, "exec_2", data={"n": 1}))
    assert await store.pack(9) == 1
    before = await all_of(store, "exec_2")
    assert before[0] == evolve(ended, version=1)
    await store.close()
    await carry(old, url)
    moved = await PostgresStore.open(url, sealer=sealer)
    assert await all_of(moved, "exec_2") == before
    with pytest.raises(Stale):
        await keep(moved, make.event(2, "exec_2"))
    async with moved.unit() as unit:
        run = await unit.get(Execution, "exec_2")
        assert run is not None
        unit.put(evolve(run, error="late"))
        unit.append(make.event(3, "exec_2"))
        await unit.commit()
    changed = await all_of(moved, "exec_2")
    assert (changed[0].error, changed[0].step_results) == ("late", ended.step_results)
    assert [one.number for one in changed[1]] == [1, 2, 3]
    await moved.close()
    await carry(url, new)
    again = await SqliteStore.open(new, sealer=sealer)
    for _ in range(2):
        assert await all_of(again, "exec_2") == changed
        await again.pack(9)
    with closing(sqlite3.connect(new)) as database:
        assert database.execute("SELECT count(*) FROM step_results").fetchone() == (0,)
    await again.close()


async def all_of(store: Store, id: str) -> list[Any]:
    """An execution, its events, and the list of executions."""
    async with store.view() as view:
        return [
            await view.get(Execution, id),
            await view.events.of_execution(id, 0, 9),
            await view.executions.list(ExecutionFilter(), PageRequest()),
        ]
