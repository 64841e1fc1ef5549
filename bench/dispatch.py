"""
Executions dispatched by NATS: how long until another server begins one, and what waiting costs.
Without NATS hints take its place, and without these too whoever works looks by itself.

Two servers' worth of services on one PostgreSQL, each with connections of its own, in one process;
PostgreSQL and NATS are processes of their own and share the machine with it. A step is a function,
so that nothing but the way of an execution to its worker is measured.
"""

import asyncio
import tempfile
import time
from collections.abc import Collection, Iterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, contextmanager
from pathlib import Path

from attrs import frozen

from adapters_runtime.engine.jetstream import NatsDispatch
from adapters_store.postgres.hints import PostgresHints
from bench.postgres import HELLO, SHARED, new_database, transactions
from tests.support.nats_server import Broker, broker
from tests.support.postgres_server import Cluster
from wfcore import (
    Engine,
    FunctionRunner,
    Principal,
    Services,
    apply_workflow,
    ensure_account,
    on_postgres,
    start_execution,
)
from wfcore.ports.hints import Hint
from wfcore.worker import dispatching

TIMES = 200
PAUSE_S = 0.02
UNHEARD = 80
UNHEARD_PAUSE_S = 0.1
IDLE_S = 20.0
SETTLED_S = 15.0
"""After so long PostgreSQL has counted what sessions did that have nothing to do any more."""


@frozen
class Measured:
    """
    Milliseconds from acceptance to the first step, p99: by NATS, by hints, found by looking, by
    NATS once more; transactions a second while idle.
    """

    plugged_ms: float
    unplugged_ms: float
    unheard_ms: float
    again_ms: float
    idle: float


@contextmanager
def nats() -> Iterator[Broker]:
    """A NATS server."""
    running = broker()
    try:
        yield next(running)
    finally:
        running.close()


def measured(made: Cluster, server: Broker) -> Measured:
    """With NATS, without it, without hints either, and with it again."""
    with tempfile.TemporaryDirectory() as folder:
        return asyncio.run(_measured(made, server, Path(folder)))


async def _measured(made: Cluster, server: Broker, folder: Path) -> Measured:
    url, begun = await new_database(made), asyncio.Queue[float]()

    async def greet() -> str:
        begun.put_nowait(time.perf_counter())
        return "hello"

    ours, theirs = (NatsDispatch.at(server.url, 5) for _ in range(2))
    async with AsyncExitStack() as opened:
        enter = opened.enter_async_context
        accepts = await enter(dispatching(await enter(_node(url, folder)), ours))
        plain = await enter(_node(url, folder))
        works = await enter(dispatching(plain, theirs))
        await enter(Engine(works, FunctionRunner(greet), dispatch=theirs))
        await _until([ours, theirs], True)
        plugged = await _worst_ms(accepts, begun)
        await asyncio.sleep(SETTLED_S)
        before = await transactions(plain)
        await asyncio.sleep(IDLE_S)
        idle = (await transactions(plain) - before) / IDLE_S
        server.kill()
        await _until([ours, theirs], False)
        unplugged = await _worst_ms(accepts, begun)
        with _nobody_hears():
            unheard = await _unheard_ms(accepts, begun)
        server.start()
        await _until([ours, theirs], True)
        return Measured(plugged, unplugged, unheard, await _worst_ms(accepts, begun), idle)


def _node(url: str, folder: Path) -> AbstractAsyncContextManager[Services]:
    return on_postgres(url, folder, policy=SHARED)


async def _until(dispatches: list[NatsDispatch], up: bool) -> None:
    while any(one.up is not up for one in dispatches):  # noqa: ASYNC110 - it is not what is measured
        await asyncio.sleep(0.05)


async def _worst_ms(services: Services, begun: "asyncio.Queue[float]") -> float:
    ann, workflow = await _hello(services)
    taken = []
    for _ in range(TIMES):
        await start_execution(services, ann, workflow, {})
        accepted = time.perf_counter()
        taken.append(await begun.get() - accepted)
        await asyncio.sleep(PAUSE_S)
    return p99_ms(taken)


@contextmanager
def _nobody_hears() -> Iterator[None]:
    """Every hint between servers is lost."""
    tell = PostgresHints.tell

    async def lose(hints: PostgresHints, told: Collection[Hint]) -> None:
        pass

    PostgresHints.tell = lose  # type: ignore[method-assign]
    try:
        yield
    finally:
        PostgresHints.tell = tell  # type: ignore[method-assign]


async def _unheard_ms(services: Services, begun: "asyncio.Queue[float]") -> float:
    """
    Of executions that are accepted all the time, not one after the other: what looks takes the
    oldest first, so the n-th to begin is the n-th that was accepted.
    """
    ann, workflow = await _hello(services)
    accepted = []
    for _ in range(UNHEARD):
        await start_execution(services, ann, workflow, {})
        accepted.append(time.perf_counter())
        await asyncio.sleep(UNHEARD_PAUSE_S)
    return p99_ms([await begun.get() - at for at in accepted])


async def _hello(services: Services) -> tuple[Principal, str]:
    ann = Principal(await ensure_account(services, "ann@example.org"))
    return ann, (await apply_workflow(services, ann.account.id, HELLO)).id


def p99_ms(seconds: list[float]) -> float:
    return sorted(seconds)[len(seconds) * 99 // 100] * 1_000
