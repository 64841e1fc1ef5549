"""A store whose rows lie on a database server keeps the shipped contract, over two handles."""

import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import asyncpg
import pytest
from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test

from tests.adapters_store.wire import Wire
from tests.support.postgres_server import Cluster
from wfcore.errors import StoreUnavailable
from wfcore.model.execution import Execution
from wfcore.ports.store import Store
from wfcore.testing import StoreComparison
from wfcore.testing import builders as make
from wfcore.testing.contracts import StoreContract
from wfcore.testing.contracts.keeping import keep

from .loading import EXAMPLES, example

own = example("network_store")
LINES = 220


@pytest.fixture(scope="module")
def rows(server: Cluster) -> Iterator[str]:
    """The URL of a database for such a store."""
    server.execute("CREATE DATABASE network_store")
    yield server.url("network_store")
    server.execute("DROP DATABASE network_store WITH (FORCE)")


async def empty(url: str) -> str:
    """*url*, whose database has no rows."""
    connection = await asyncpg.connect(url)
    await connection.execute("DROP TABLE IF EXISTS store_rows")
    await connection.close()
    return url


class TestNetworkStore(StoreContract):
    @pytest.fixture
    async def store(self, rows: str) -> AsyncIterator[Store]:
        store = await own.open_store(await empty(rows))
        yield store
        await store.close()

    @pytest.fixture
    async def another(self, store: Store, rows: str) -> AsyncIterator[Store]:
        another = await own.open_store(rows)
        yield another
        await another.close()

    @pytest.fixture
    async def broken(self, server: Cluster, rows: str) -> AsyncIterator[Store]:
        with tempfile.TemporaryDirectory(prefix="wfpg") as folder:
            wire = Wire(server.folder, Path(folder))
            await wire.lay()
            store = await own.open_store(rows.replace(str(server.folder), folder))
            await wire.cut()
            yield store
            await store.close()


def test_every_answer_is_that_of_the_store_in_memory(rows: str) -> None:
    """Scripts that alternate between two handles get the answers of the store in memory."""

    class Comparison(StoreComparison):
        async def open(self, folder: Path) -> Store:
            store: Store = await own.open_store(await empty(rows))
            return store

        async def reopen(self, folder: Path) -> Store:
            store: Store = await own.open_store(rows)
            return store

    run_state_machine_as_test(Comparison, settings=settings(max_examples=4, deadline=None))


async def test_a_step_whose_connection_ends_stores_nothing(server: Cluster, rows: str) -> None:
    """
    A connection that ends within a step ends the step: no statement runs on another connection,
    without the lock. The next step makes a new one.
    """
    store = await own.open_store(await empty(rows))
    await keep(store, make.execution("exec_1"))
    settle, database = store.disk.settle, store.disk

    def settle_late(changes: object) -> None:
        pid = database.session()("SELECT pg_backend_pid()")[0][0]
        server.execute(f"SELECT pg_terminate_backend({pid}, 5000)")
        settle(changes)

    database.settle = settle_late
    with pytest.raises(StoreUnavailable):
        await keep(store, make.execution("exec_2"))
    database.settle = settle
    async with store.view() as view:
        assert await view.get(Execution, "exec_2") is None
    await keep(store, make.execution("exec_2"))
    await store.close()


async def test_a_list_takes_one_query(rows: str) -> None:
    """However many rows a table has, they travel in one answer."""
    store = await own.open_store(await empty(rows))
    await keep(store, *(make.execution(f"exec_{number}") for number in range(20)))
    sent: list[str] = []
    session = store.disk._reader
    ask = own.Session.__call__

    def counting(self: object, sql: str, *values: object) -> object:
        if self is session:
            sent.append(sql)
        return ask(self, sql, *values)

    own.Session.__call__ = counting
    try:
        async with store.view() as view:
            assert len(await view.executions.abandoned(50)) == 0
            assert len(await view.some(Execution, [f"exec_{n}" for n in range(20)])) == 20
    finally:
        own.Session.__call__ = ask
    assert sent.count(own.ALL) == 2
    assert own.ONE not in sent
    await store.close()


def test_the_example_is_short() -> None:
    """A store for a database server is at most so many lines."""
    assert len((EXAMPLES / "network_store.py").read_text().splitlines()) <= LINES
