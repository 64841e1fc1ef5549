"""
The contract of stores that wfcore ships, in full on SQLite. A store that changes part of another
one runs the suites of that part; the store in memory runs in full where the kit is tested.
"""

import re
import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from adapters_store import CACHE_BYTES
from adapters_store.files import LocalFiles
from adapters_store.memory import MemoryCounters, MemoryStore
from adapters_store.sql import queries
from adapters_store.sql.sealing import AeadSealer, new_key
from adapters_store.sqlite.counters import SqliteCounters
from adapters_store.sqlite.store import SqliteStore
from wfcore.ports.counters import Counters
from wfcore.ports.files import ArtifactFiles
from wfcore.ports.store import Store
from wfcore.ports.system import Sealer
from wfcore.testing import ManualClock
from wfcore.testing.contracts import CountersContract, FilesContract, StoreContract
from wfcore.testing.contracts.audit import AuditContract
from wfcore.testing.contracts.heads import HeadContract
from wfcore.testing.contracts.keeping import Handles
from wfcore.testing.contracts.lists import ListContract
from wfcore.testing.contracts.units import UnitContract


class TestMemoryStore(Handles, UnitContract):
    @pytest.fixture
    async def store(self, clock: ManualClock) -> AsyncIterator[Store]:
        store = MemoryStore(now=clock.service_now)
        yield store
        await store.close()

    @pytest.fixture
    def another(self, store: MemoryStore, clock: ManualClock) -> Store:
        return MemoryStore(store.disk, now=clock.service_now)


class TestMemoryCounters(CountersContract):
    @pytest.fixture
    async def counters(self) -> AsyncIterator[Counters]:
        counters = MemoryCounters()
        yield counters
        await counters.close()


class SqliteHandles(Handles):
    """The fixtures of a store on SQLite, with a cache and in clear text."""

    @pytest.fixture(autouse=True)
    def tables_are_found(self, store: SqliteStore, monkeypatch: pytest.MonkeyPatch) -> None:
        """A query that misses one of its tables shows a unit less than the unit has written."""
        with closing(sqlite3.connect(store.path)) as connection:
            found = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
            there = {name for (name,) in found}

        def named(sql: str, values: tuple[Any, ...]) -> queries.Query:
            made = Query(sql, values)
            assert set(re.findall(r"\w+", sql)) & there <= made.tables, sql
            return made

        Query = queries.Query
        monkeypatch.setattr(queries, "Query", named)

    @pytest.fixture
    def cache_bytes(self) -> int:
        return CACHE_BYTES

    @pytest.fixture
    def sealer(self) -> Sealer | None:
        return None

    @pytest.fixture
    async def store(
        self, tmp_path: Path, clock: ManualClock, cache_bytes: int, sealer: Sealer | None
    ) -> AsyncIterator[Store]:
        path = tmp_path / "wfcore.db"
        store = await SqliteStore.open(path, None, cache_bytes, sealer, clock.service_now)
        yield store
        await store.close()

    @pytest.fixture
    async def another(self, store: SqliteStore, clock: ManualClock) -> AsyncIterator[Store]:
        now = clock.service_now
        another = await SqliteStore.open(store.path, sealer=store.sealer, now=now)
        yield another
        await another.close()

    @pytest.fixture
    def broken(self, store: SqliteStore) -> Store:
        for path in store.path.parent.glob(f"{store.path.name}*"):
            path.unlink()
        return store


class TestSqliteStore(SqliteHandles, StoreContract):
    """The whole contract."""


class TestSqliteStoreWithoutCache(SqliteHandles, UnitContract, HeadContract):
    """Every read decodes rows, and every write is over a row that was not read."""

    @pytest.fixture
    def cache_bytes(self) -> int:
        return 0


class SealedSqliteHandles(SqliteHandles):
    """The fixtures of a store without a cache whose contents are encrypted."""

    @pytest.fixture
    def cache_bytes(self) -> int:
        return 0

    @pytest.fixture
    def sealer(self) -> Sealer | None:
        return AeadSealer([new_key()])


class TestSealedSqliteStore(
    SealedSqliteHandles, UnitContract, HeadContract, ListContract, AuditContract
):
    """Whatever is stored in sealed cells is read again, and lists are narrowed by clear ones."""


class TestSqliteCounters(CountersContract):
    @pytest.fixture
    async def counters(self, tmp_path: Path) -> AsyncIterator[Counters]:
        counters = await SqliteCounters.open(tmp_path / "counters.db")
        yield counters
        await counters.close()


class TestLocalFiles(FilesContract):
    @pytest.fixture
    def files(self, tmp_path: Path) -> ArtifactFiles:
        return LocalFiles(tmp_path / "artifacts")
