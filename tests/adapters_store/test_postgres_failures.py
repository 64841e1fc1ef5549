"""What may go wrong between the store and its server: nothing is lost, nothing is done twice."""

import asyncio
import gc
import signal
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import cast

import pytest
from attrs import evolve

from adapters_store.postgres import connection as connecting
from adapters_store.postgres import report as reporting
from adapters_store.postgres.clock import DatabaseClock
from adapters_store.postgres.connection import lent, rows_of
from adapters_store.postgres.store import PostgresStore
from tests.support.postgres_server import Cluster, cluster, emptied, prepared
from wfcore.errors import Stale, StoreUnavailable
from wfcore.model.access import Account
from wfcore.model.execution import Execution
from wfcore.ports.store import Slots
from wfcore.testing import builders as make
from wfcore.testing.contracts.keeping import keep
from wfcore.time import HOUR

from .wire import SOCKET, Wire

KILL = """SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
    WHERE application_name = 'wfcore' AND pid <> pg_backend_pid()"""


@pytest.fixture
async def store(database: str) -> AsyncIterator[PostgresStore]:
    store = await PostgresStore.open(await emptied(database))
    yield store
    await store.close()


@pytest.fixture
async def wire(server: Cluster) -> AsyncIterator[Wire]:
    with tempfile.TemporaryDirectory(prefix="wfpg") as folder:
        wire = Wire(server.folder, Path(folder))
        await wire.lay()
        yield wire
        await wire.cut()


@pytest.fixture
async def far(store: PostgresStore, database: str, wire: Wire) -> AsyncIterator[PostgresStore]:
    """Another handle, whose way to the server can be cut."""
    far = await PostgresStore.open(database.replace(str(wire.server), str(wire.folder)))
    yield far
    await far.close()


async def there(store: PostgresStore, *ids: str) -> list[str]:
    """Which of these executions are stored."""
    async with store.view() as view:
        return [id for id in ids if await view.get(Execution, id) is not None]


@pytest.mark.parametrize("audited", [False, True])
async def test_a_lost_answer_is_no_failed_commit(
    store: PostgresStore, far: PostgresStore, wire: Wire, audited: bool
) -> None:
    """The row is there each time, once; whoever repeats the unit is told so."""
    for number in range(10):
        records = [make.execution(f"e{number}"), make.event(1, f"e{number}")]
        if audited:
            records.append(make.audit_entry(f"aud_{number}"))
        await keep(far, make.execution(f"w{number}"), make.event(1, f"w{number}"))  # prepares it
        wire.loses = b"COMMIT\0" if audited else b"SELECT 1\0"
        with pytest.raises(StoreUnavailable):
            await keep(far, *records)
        wire.loses = None
        assert await there(store, f"e{number}") == [f"e{number}"]
        with pytest.raises(Stale):
            await keep(far, *records)
    assert wire.lost == 10


async def test_connections_that_are_killed_lose_nothing_that_was_answered(
    store: PostgresStore, far: PostgresStore
) -> None:
    """What was answered is there; whoever was told that the store is away may try again."""

    async def accept(id: str) -> bool:
        try:
            await keep(store, make.execution(id), make.event(1, id))
        except StoreUnavailable:
            return False
        return True

    done: list[str] = []
    for round in range(6):
        ids = [f"e{round}_{number}" for number in range(20)]
        accepting = asyncio.gather(*map(accept, ids))
        async with lent(far.pool) as connection:
            await rows_of(connection, KILL)
        done += [id for id, ok in zip(ids, await accepting, strict=True) if ok]
    assert await there(far, *done) == done
    await keep(store, make.execution("after"))


LET_IN = b"R\0\0\0\x08\0\0\0\0S\0\0\0\x18server_version\x0016.0\0Z\0\0\0\x05I"
"""AuthenticationOk and ReadyForQuery: what a pooler says whose server is away."""


@pytest.mark.parametrize("greeting", [b"", LET_IN], ids=["no greeting", "no answer"])
async def test_a_server_that_is_silent_is_not_waited_for(
    greeting: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither one that never greets nor one that never answers: who waits is told so in words."""

    lines: list[asyncio.Transport] = []

    class Greeter(asyncio.Protocol):
        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            lines.append(cast("asyncio.Transport", transport))
            lines[-1].write(greeting)

    monkeypatch.setattr(connecting, "CONNECT_S", 0.5)
    loop = asyncio.get_running_loop()
    async with asyncio.timeout(connecting.STATEMENT_S / 2):
        async with await loop.create_unix_server(Greeter, tmp_path / SOCKET):
            with pytest.raises(StoreUnavailable) as refused:
                await PostgresStore.open(f"postgresql://wfcore@/away?host={tmp_path}")
            for line in lines:
                line.abort()
    assert refused.value.detail == "the database does not answer"


@pytest.fixture(scope="module")
def own_server() -> Iterator[Cluster]:
    """A server that may be stopped; it flushes what it is told to keep."""
    yield from cluster(fsync="on", synchronous_commit="on")


def test_a_server_that_dies_and_comes_back_has_what_was_answered(
    own_server: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed as by a power cut: unavailable until it is back, then everything goes on by itself."""
    url = prepared(own_server)
    monkeypatch.setattr(reporting, "HEARD_S", 60.0)

    async def live() -> None:
        store = await PostgresStore.open(url)
        assert (await reporting.report(store, store.now, url)).cure is None
        await keep(store, make.execution("e1"), make.execution("e2"))
        (first, _) = await store.claim("w1", HOUR, Slots(9), 9)
        await asyncio.to_thread(own_server.stop, signal.SIGQUIT)
        for deed in (keep(store, first), store.claim("w1", HOUR, Slots(9), 9), store.ping()):
            with pytest.raises(StoreUnavailable):
                await deed
        await asyncio.to_thread(own_server.start)
        assert await there(store, "e1", "e2") == ["e1", "e2"]
        await keep(store, first)
        assert set(await store.extend("w1", ("e1", "e2"), HOUR)) == {"e1", "e2"}
        await store.close()

    asyncio.run(live())


def test_a_server_that_is_away_leaves_no_traceback_in_the_log(
    own_server: Cluster, caplog: pytest.LogCaptureFixture
) -> None:
    """The driver tries nothing by itself, and every error has somebody who is told."""
    url = prepared(own_server)

    async def live() -> None:
        store = await PostgresStore.open(url)
        await asyncio.gather(*(store.ping() for _ in range(5)))  # several connections
        await asyncio.to_thread(own_server.stop, signal.SIGQUIT)
        for _ in range(3):
            for failed in await asyncio.gather(
                *(store.ping() for _ in range(5)), return_exceptions=True
            ):
                assert isinstance(failed, StoreUnavailable)
        await asyncio.to_thread(own_server.start)
        await store.ping()
        await store.close()

    asyncio.run(live())
    gc.collect()  # what nobody awaited is said now
    assert [line.getMessage() for line in caplog.records] == []


async def test_a_change_by_another_handle_is_seen_by_the_next_read(
    store: PostgresStore, far: PostgresStore
) -> None:
    """What is remembered of accounts, keys, workflows and webhooks ends with their change."""
    await keep(store, make.account())
    for number in range(1, 4):
        for handle in (store, far):
            async with handle.view() as view:
                account = await view.get(Account, "acc_1")
            assert account is not None
            assert account.version == number
        await keep(far, evolve(account, email=f"{number}@example.org"))


async def test_executions_write_no_row_that_all_machines_write(store: PostgresStore) -> None:
    """Neither the audit chain nor the change counter knows of what is hot."""
    shared = "SELECT (SELECT xmin::text FROM changes), (SELECT xmin::text FROM audit_chain)"
    async with lent(store.pool) as connection:
        before = await rows_of(connection, shared)
    await asyncio.gather(*(keep(store, make.execution(f"e{number}")) for number in range(9)))
    for run in await store.claim("w1", HOUR, Slots(9), 9):
        await keep(store, evolve(run, worker=None, due_at=None))
    async with lent(store.pool) as connection:
        assert await rows_of(connection, shared) == before


def test_the_time_is_that_of_the_database() -> None:
    """Measured between asking and being answered; it never goes back, the database's may."""
    steady = iter([0, 100, 100, 100, 2_000_000, 2_000_000])
    clock = DatabaseClock(lambda: next(steady))

    async def measure(told: int) -> None:
        async def ask() -> int:
            return told

        await clock.measure(ask)

    assert not clock.known
    asyncio.run(measure(5_000))
    assert clock.now() == 5_000
    clock.learn(1_000_000, 1_000_010)
    assert [clock.now(), clock.now()] == [5_000, 5_000]
    assert clock.now() == 5_000


async def test_two_answers_that_cannot_both_be_true_forget_the_first() -> None:
    """An answer is in whole milliseconds, so it may be as old as the rest of one, and no older."""
    steady = 0
    clock = DatabaseClock(lambda: steady)
    for told in (5, 6):
        answer = asyncio.get_running_loop().create_future()
        answer.set_result(told)
        await clock.measure(lambda answer=answer: answer)  # type: ignore[misc]
    steady = 600
    assert clock.now() == 7
