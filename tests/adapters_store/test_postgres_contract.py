"""PostgreSQL keeps the contract that wfcore ships, over two handles with their own connections."""

import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

import asyncpg
import pytest

from adapters_store.postgres.clock import CLOCKS
from adapters_store.postgres.counters import PostgresCounters
from adapters_store.postgres.store import PostgresStore
from adapters_store.sql.cells import SEALED
from adapters_store.sql.sealing import AeadSealer, new_key
from tests.support.postgres_server import Cluster, emptied
from wfcore.ports.counters import Counters
from wfcore.ports.store import Store
from wfcore.ports.system import Sealer
from wfcore.testing.contracts import CountersContract, StoreContract
from wfcore.testing.contracts.audit import AuditContract
from wfcore.testing.contracts.keeping import Handles
from wfcore.testing.contracts.units import UnitContract

from .test_sealing import fill, seen
from .wire import Wire


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


@pytest.mark.parametrize("sealed", [True, False])
async def test_nothing_of_anybody_is_in_the_database_in_clear(database: str, sealed: bool) -> None:
    """Every cell that may be sealed is, where there is a key; all of it is read again."""
    sealer = AeadSealer([new_key()]) if sealed else None
    store = await PostgresStore.open(await emptied(database), sealer=sealer)
    await fill(store)
    assert repr(await seen(store)).count("c4nary") >= 9
    await store.close()
    connection = await asyncpg.connect(database)
    try:
        for table, about in SEALED.items():
            for column in about.columns:
                cell = f"{column}::text"
                where = f"{cell} NOT IN ('null', '{{}}')"
                found = await connection.fetch(f"SELECT {cell} FROM {table} WHERE {where}")
                assert found, (table, column)
                assert {cell.startswith("~") for (cell,) in found} == {sealed}, (table, column)
    finally:
        await connection.close()


async def test_each_server_has_a_clock_of_its_own(database: str) -> None:
    """Which all stores of a process that speak to it share."""
    stores = [await PostgresStore.open(database) for _ in "12"]
    connection = await asyncpg.connect(database)
    try:
        server = await connection.fetchval("SELECT system_identifier FROM pg_control_system()")
        assert {id(one._clock) for one in stores} == {id(CLOCKS[str(server)])}
    finally:
        await connection.close()
        for one in stores:
            await one.close()


class TestPostgresCounters(CountersContract):
    @pytest.fixture
    async def counters(self, database: str) -> AsyncIterator[Counters]:
        counters = await PostgresCounters.open(await emptied(database))
        yield counters
        await counters.close()
