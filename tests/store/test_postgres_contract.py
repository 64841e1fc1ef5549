"""PostgreSQL keeps the contract that wfcore ships, over two handles with their own connections."""

import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from adapters_store.postgres.counters import PostgresCounters
from adapters_store.postgres.store import PostgresStore
from adapters_store.sealing import AeadSealer, new_key
from postgres_server import Cluster, emptied
from store.wire import Wire
from wfcore.ports.counters import Counters
from wfcore.ports.store import Store
from wfcore.ports.system import Sealer
from wfcore.testing.contracts import CountersContract, StoreContract
from wfcore.testing.contracts.audit import AuditContract
from wfcore.testing.contracts.keeping import Handles
from wfcore.testing.contracts.units import UnitContract


@pytest.fixture
async def gone(server: Cluster, database: str) -> AsyncIterator[PostgresStore]:
    """A store whose server cannot be reached any more."""
    with tempfile.TemporaryDirectory(prefix="wfpg") as folder:
        wire = Wire(server.folder, Path(folder))
        await wire.lay()
        url = (await emptied(database)).replace(str(server.folder), folder)
        store = await PostgresStore.open(url)
        await wire.cut()
        yield store
        await store.close()


class TestPostgresStore(StoreContract):
    @pytest.fixture
    def cache_bytes(self) -> int:
        return 1 << 20

    @pytest.fixture
    def sealer(self) -> Sealer | None:
        return None

    @pytest.fixture
    async def store(
        self, database: str, cache_bytes: int, sealer: Sealer | None
    ) -> AsyncIterator[Store]:
        store = await PostgresStore.open(await emptied(database), cache_bytes, sealer)
        yield store
        await store.close()

    @pytest.fixture
    async def another(self, store: PostgresStore, database: str) -> AsyncIterator[Store]:
        another = await PostgresStore.open(database, 0, store.sealer)
        yield another
        await another.close()

    @pytest.fixture
    def broken(self, gone: PostgresStore) -> Store:
        return gone


class TestSealedPostgresStore(Handles, UnitContract, AuditContract):
    """Contents are encrypted, and nothing is remembered."""

    store, another = TestPostgresStore.store, TestPostgresStore.another

    @pytest.fixture
    def cache_bytes(self) -> int:
        return 0

    @pytest.fixture
    def sealer(self) -> Sealer | None:
        return AeadSealer([new_key()])


class TestPostgresCounters(CountersContract):
    @pytest.fixture
    async def counters(self, database: str) -> AsyncIterator[Counters]:
        counters = await PostgresCounters.open(await emptied(database))
        yield counters
        await counters.close()
