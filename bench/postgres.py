"""
The store on PostgreSQL beside the one in a file, with the same use cases, both flushing the disk.

Everything runs in one process without HTTP and without processes for steps, so that the store is
most of what is measured. The server and its client share the machine.
"""

import asyncio
import os
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import TypeVar

from attrs import frozen

from adapters_store.postgres.connection import Connection, close_pool, lent, open_pool, rows_of
from adapters_store.postgres.counters import PostgresCounters
from adapters_store.postgres.hints import PostgresHints
from adapters_store.postgres.store import PostgresStore
from tests.support.postgres_server import Cluster, cluster
from wfcore import (
    Engine,
    FunctionRunner,
    PageRequest,
    Principal,
    Services,
    apply_workflow,
    ensure_account,
    list_executions,
    on_postgres,
    on_sqlite,
    start_execution,
)
from wfcore.model.access import OPERATOR, Window
from wfcore.ports.store import Slots
from wfcore.rules.definition.written import read_definition
from wfcore.time import HOUR, EpochMs
from wfcore.usecases.services import Policy
from wfserver.settings.record import SHARED_POLL_MS, SHARED_SWEEP_MS

T = TypeVar("T")
CLIENTS = 32
HELLO = read_definition(
    {
        "name": "Hello",
        "steps": [{"name": "greet", "kind": "code", "language": "command", "command": ["greet"]}],
    }
)
SHORT, LONG = 20_000, 1_000_000
"""Waiting executions."""
WINDOWS = (
    Window("minute", EpochMs(0), EpochMs(60_000), 10**9),
    Window("day", EpochMs(0), EpochMs(86_400_000), 10**9),
)
SHARED = Policy(poll_ms=SHARED_POLL_MS, sweep_ms=SHARED_SWEEP_MS)
LISTENERS = 4
LISTENING_TURNS = 9
SESSIONS = """SELECT count(*) FILTER (WHERE wait_event_type = 'Lock'), count(*)
    FROM pg_stat_activity
    WHERE datname = current_database() AND state <> 'idle' AND pid <> pg_backend_pid()"""
LOOK_S = 0.005
TRANSACTIONS = "SELECT xact_commit + xact_rollback FROM pg_stat_database WHERE datname = ?"


@contextmanager
def server() -> Iterator[Cluster]:
    """A server that flushes as one in use does."""
    running = cluster(fsync="on", synchronous_commit="on", full_page_writes="on", autovacuum="on")
    made = next(running)
    try:
        yield made
    finally:
        running.close()


def greet() -> str:
    return "hello"


@asynccontextmanager
async def opened(
    made: Cluster | None, folder: Path
) -> AsyncIterator[tuple[Services, Principal, str]]:
    """Services on an own database (None: on SQLite), somebody, and a workflow."""
    door = on_sqlite(folder) if made is None else on_postgres(await new_database(made), folder)
    async with door as services:
        ann = Principal(await ensure_account(services, "ann@example.org"))
        workflow = await apply_workflow(services, ann.account.id, HELLO)
        yield services, ann, workflow.id


async def new_database(made: Cluster) -> str:
    """The URL of an empty database."""
    name = f"wf_{time.monotonic_ns()}"
    await asyncio.to_thread(made.execute, f"CREATE DATABASE {name}")
    return made.url(name)


async def in_parallel(deed: Callable[[], Awaitable[object]], seconds: float) -> float:
    """How often a second, by `CLIENTS` who wait for their answers."""
    done, over = count(), time.perf_counter() + seconds

    async def client() -> None:
        while True:
            await deed()
            next(done)
            if time.perf_counter() >= over:
                return

    began = time.perf_counter()
    await asyncio.gather(*(client() for _ in range(CLIENTS)))
    return next(done) / (time.perf_counter() - began)


def starts(made: Cluster | None, seconds: float) -> float:
    """Executions accepted a second."""

    async def run(folder: Path) -> float:
        async with opened(made, folder) as (services, ann, workflow):
            return await in_parallel(lambda: start_execution(services, ann, workflow, {}), seconds)

    return _in_folder(run)


def lock_waits(made: Cluster, seconds: float) -> float:
    """
    Of all looks at a session that is at work, the percentage that find it waiting for a lock, while
    `CLIENTS` start executions at two servers.
    """

    async def run(folder: Path) -> float:
        async with opened(made, folder) as (one, ann, workflow):
            assert isinstance(one.store, PostgresStore)
            turn, url = count(), one.store.location
            waiting = working = 0

            async def look(connection: Connection) -> None:
                nonlocal waiting, working
                while True:
                    locked, all = (await rows_of(connection, SESSIONS))[0]
                    waiting, working = waiting + locked, working + all
                    await asyncio.sleep(LOOK_S)

            async with on_postgres(url, folder) as two, lent(one.store.pool) as connection:
                looking = asyncio.create_task(look(connection))
                await in_parallel(
                    lambda: start_execution((one, two)[next(turn) % 2], ann, workflow, {}), seconds
                )
                looking.cancel()
                await asyncio.wait((looking,))
            assert looking.cancelled(), looking.exception()
            return 100 * waiting / max(working, 1)

    return _in_folder(run)


def beside_listeners(made: Cluster, seconds: float) -> tuple[float, float]:
    """
    Executions accepted a second while other servers listen to hints, and while none does; in turns,
    the one in the middle.
    """

    async def run(folder: Path) -> tuple[float, float]:
        async with opened(made, folder) as (services, ann, workflow):

            async def rate() -> float:
                start = lambda: start_execution(services, ann, workflow, {})  # noqa: E731
                return await in_parallel(start, seconds / LISTENING_TURNS)

            turns = []
            for _ in range(LISTENING_TURNS):
                async with _listeners(services):
                    listened = await rate()
                turns.append((listened, await rate()))
            return sorted(turns, key=lambda turn: turn[0] / turn[1])[LISTENING_TURNS // 2]

    return _in_folder(run)


@asynccontextmanager
async def _listeners(services: Services) -> AsyncIterator[None]:
    """As many connections as other servers would have to hear hints."""
    store = services.store
    assert isinstance(store, PostgresStore)
    pool = await open_pool(store.location, LISTENERS)
    others = [PostgresHints(pool, store.location) for _ in range(LISTENERS)]
    hearing = [asyncio.create_task(one.hear(lambda _: None)) for one in others]
    try:
        for one in others:
            await one.echo.wait()
        yield
    finally:
        for task in hearing:
            task.cancel()
        await asyncio.wait(hearing)
        await close_pool(pool)


def drained(made: Cluster | None, executions: int) -> float:
    """Executions a second from the start of an engine until all that were waiting have ended."""

    async def run(folder: Path) -> float:
        async with opened(made, folder) as (services, ann, workflow):
            for _ in range(executions // CLIENTS):
                await asyncio.gather(
                    *(start_execution(services, ann, workflow, {}) for _ in range(CLIENTS))
                )
            began = time.perf_counter()
            async with Engine(services, FunctionRunner(greet)):
                while await _open(services):  # noqa: ASYNC110 - it is the rate that is asked
                    await asyncio.sleep(0.05)
            return executions / (time.perf_counter() - began)

    return _in_folder(run)


@frozen
class Cost:
    """What an execution costs: ms of CPU here and in the database, bytes of its log (WAL)."""

    here_ms: float
    database_ms: float
    wal: float


def cost(made: Cluster, executions: int) -> Cost:
    """Of executions that are accepted and drained, but for the processes of their steps."""

    async def run(folder: Path) -> Cost:
        async with opened(made, folder) as (services, ann, workflow):
            wal, there, here = await _wal(services), _cpu_ms(made), time.process_time()
            async with Engine(services, FunctionRunner(greet)):
                for _ in range(executions // CLIENTS):
                    await asyncio.gather(
                        *(start_execution(services, ann, workflow, {}) for _ in range(CLIENTS))
                    )
                while await _open(services):  # noqa: ASYNC110 - its pauses cost nearly nothing
                    await asyncio.sleep(0.05)
            here = (time.process_time() - here) * 1_000
            all = executions // CLIENTS * CLIENTS
            wal, there = await _wal(services) - wal, _cpu_ms(made) - there
            return Cost(here / all, there / all, wal / all)

    return _in_folder(run)


async def _wal(services: Services) -> int:
    """Bytes that the log has ever had."""
    store = services.store
    assert isinstance(store, PostgresStore)
    async with lent(store.pool) as connection:
        return int(await connection.fetchval("SELECT pg_current_wal_lsn() - '0/0'"))


def _cpu_ms(made: Cluster) -> float:
    """CPU time of the server's processes, those that have ended included."""
    assert made.process is not None
    ticks = 0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            pid, text = stat.parent.name, stat.read_text().rpartition(")")[2].split()
            if pid == str(made.process.pid):
                ticks += sum(map(int, text[11:15]))
            elif text[1] == str(made.process.pid):
                ticks += sum(map(int, text[11:13]))
    return ticks * 1_000 / os.sysconf("SC_CLK_TCK")


async def _open(services: Services) -> int:
    async with services.store.view() as view:
        due = await view.executions.next_due()
        if due is not None:
            return 1
    found = await list_executions(services, OPERATOR, PageRequest(size=200))
    return sum(run.completed_at is None for run in found.rows)


def admissions(made: Cluster, seconds: float) -> float:
    """Admissions of one key a second, asked for through two processes' connections."""

    async def run(folder: Path) -> float:
        async with opened(made, folder) as (services, _, _):
            store = services.store
            assert isinstance(store, PostgresStore)
            both = [services.counters, await PostgresCounters.open(store.location)]
            turn = count()
            try:
                return await in_parallel(
                    lambda: both[next(turn) % 2].take("key", WINDOWS, EpochMs(1)), seconds
                )
            finally:
                await both[1].close()

    return _in_folder(run)


@frozen
class Claims:
    """Milliseconds of a claim with none waiting, and with many of one account."""

    empty_ms: float
    full_ms: float
    waiting: int


def claims(made: Cluster, waiting: int) -> Claims:
    """A claim of one execution, with few and with many waiting."""

    async def run(folder: Path) -> Claims:
        async with opened(made, folder) as (services, ann, workflow):
            for _ in range(4):
                await asyncio.gather(
                    *(start_execution(services, ann, workflow, {}) for _ in range(CLIENTS))
                )
            empty = await _claim_ms(services)
            await _multiply(services, waiting)
            return Claims(empty, await _claim_ms(services), waiting)

    return _in_folder(run)


async def _claim_ms(services: Services) -> float:
    taken = []
    for number in range(40):
        began = time.perf_counter()
        assert await services.store.claim(f"w{number}", HOUR, Slots(9), 1)
        taken.append((time.perf_counter() - began) * 1_000)
    return sorted(taken)[len(taken) // 2]


async def _multiply(services: Services, wanted: int) -> None:
    store = services.store
    assert isinstance(store, PostgresStore)
    async with lent(store.pool) as connection:
        columns = [
            row[0]
            for row in await rows_of(
                connection,
                "SELECT attname::text FROM pg_attribute WHERE attrelid = 'executions'::regclass "
                "AND attnum > 0",
            )
        ]
        copied = ", ".join("id || '_' || n" if name == "id" else name for name in columns)
        await connection.execute(
            f"INSERT INTO executions ({', '.join(columns)}) SELECT {copied} FROM "
            "(SELECT * FROM executions WHERE worker IS NULL AND due_at IS NOT NULL LIMIT 1) e, "
            f"generate_series(1, {wanted}) n",
            timeout=600,
        )
        await connection.execute("VACUUM ANALYZE executions", timeout=600)


def idle_transactions(made: Cluster, nodes: int, seconds: float) -> float:
    """
    Transactions a second of each of *nodes* servers that have nothing to do, at the pace of
    servers that share a database, without those of PostgreSQL's own vacuum. The servers settle for
    as long as they are counted: PostgreSQL counts what idle sessions did some seconds later.
    """
    made.execute("ALTER SYSTEM SET autovacuum = off")
    made.execute("SELECT pg_reload_conf()")

    async def run(folder: Path) -> float:
        url = await new_database(made)
        async with AsyncExitStack() as running:
            for _ in range(nodes):
                node = on_postgres(url, folder, policy=SHARED)
                services = await running.enter_async_context(node)
                await running.enter_async_context(Engine(services, FunctionRunner(greet)))
            await asyncio.sleep(seconds)
            before = await transactions(services)
            await asyncio.sleep(seconds)
            return (await transactions(services) - before) / seconds / nodes

    found = _in_folder(run)
    made.execute("ALTER SYSTEM RESET autovacuum")
    made.execute("SELECT pg_reload_conf()")
    return found


async def transactions(services: Services) -> int:
    store = services.store
    assert isinstance(store, PostgresStore)
    async with lent(store.pool) as connection:
        await connection.execute("SELECT pg_stat_force_next_flush()")
        name = await connection.fetchval("SELECT current_database()")
        return int((await rows_of(connection, TRANSACTIONS, name))[0][0])


def _in_folder(run: Callable[[Path], Awaitable[T]]) -> T:
    with tempfile.TemporaryDirectory() as folder:
        return asyncio.run(_awaited(run, Path(folder)))


async def _awaited(run: Callable[[Path], Awaitable[T]], folder: Path) -> T:
    return await run(folder)
