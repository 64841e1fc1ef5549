"""The stores keep the contract that wfcore ships."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from adapters_store.counters import SqliteCounters
from adapters_store.files import LocalFiles
from adapters_store.memory import MemoryCounters, MemoryStore
from adapters_store.sealing import AeadSealer, new_key
from adapters_store.sqlite.store import SqliteStore
from wfcore.ports.counters import Counters
from wfcore.ports.files import ArtifactFiles
from wfcore.ports.store import Store
from wfcore.testing.contracts import CountersContract, FilesContract, StoreContract


class TestMemoryStore(StoreContract):
    @pytest.fixture
    async def store(self) -> AsyncIterator[Store]:
        store = MemoryStore()
        yield store
        await store.close()

    @pytest.fixture
    def another(self, store: MemoryStore) -> Store:
        return MemoryStore(store.disk)


class TestMemoryCounters(CountersContract):
    @pytest.fixture
    async def counters(self) -> AsyncIterator[Counters]:
        counters = MemoryCounters()
        yield counters
        await counters.close()


class TestSqliteStore(StoreContract):
    @pytest.fixture
    async def store(self, tmp_path: Path) -> AsyncIterator[Store]:
        store = await SqliteStore.open(tmp_path / "wfcore.db")
        yield store
        await store.close()

    @pytest.fixture
    async def another(self, store: SqliteStore) -> AsyncIterator[Store]:
        another = await SqliteStore.open(store.path)
        yield another
        await another.close()


class TestSqliteStoreThatRemembersNothing(TestSqliteStore):
    """Every read decodes rows, and every write is over something unknown."""

    @pytest.fixture
    async def store(self, tmp_path: Path) -> AsyncIterator[SqliteStore]:
        store = await SqliteStore.open(tmp_path / "wfcore.db", cache_bytes=0)
        yield store
        await store.close()


class TestSealedSqliteStore(StoreContract):
    """Contents are encrypted, and another handle has the same key."""

    @pytest.fixture
    async def store(self, tmp_path: Path) -> AsyncIterator[Store]:
        sealer = AeadSealer([new_key()])
        store = await SqliteStore.open(tmp_path / "wfcore.db", cache_bytes=0, sealer=sealer)
        yield store
        await store.close()

    @pytest.fixture
    async def another(self, store: SqliteStore) -> AsyncIterator[Store]:
        another = await SqliteStore.open(store.path, sealer=store.sealer)
        yield another
        await another.close()


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
