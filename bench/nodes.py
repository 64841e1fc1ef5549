"""
How soon one server learns what another one did, by hints over PostgreSQL.

Two servers' worth of services on one database, each with connections of its own, in one process:
one accepts, cancels and is asked to wait, the other works. Nothing is found by looking: a poll is
seconds away.
"""

import asyncio
import tempfile
import time
from collections.abc import Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import cast

from attrs import frozen

from adapters_runtime.engine.wakeups import SharedWakeups
from adapters_store.postgres.hints import PostgresHints
from bench.dispatch import p99_ms
from bench.postgres import SHARED, new_database
from tests.support.postgres_server import Cluster
from wfcore import (
    Engine,
    FunctionRunner,
    Principal,
    Services,
    apply_workflow,
    cancel_execution,
    ensure_account,
    on_postgres,
    start_execution,
    wait_for_rest,
)
from wfcore.model.access import Scope
from wfcore.ports.callbacks import CallbackAnswer
from wfcore.rules.definition.written import read_definition
from wfcore.rules.execution.machine import EXECUTION
from wfcore.time import MINUTE
from wfcore.usecases.accounts.keys import create_key
from wfcore.usecases.executions.executions import read_events

TIMES = 200
CALLED = "https://example.org/ended"
STEP_S = 0.02
"""How long a step takes: whoever waits for its end is waiting by then."""


@frozen
class Woken:
    """
    Milliseconds, p99: from the return of a last step to the answer of `?wait` and to the end of the
    stream of events at another server; and from an accepted cancellation to the end of the step and
    to the callback at another server.
    """

    wait_ms: float
    stream_ms: float
    cancel_ms: float
    callback_ms: float


class Receiver:
    """Where callbacks arrive, and when."""

    def __init__(self) -> None:
        self.posted = asyncio.Queue[float]()

    async def post(self, url: str, headers: Mapping[str, str], body: bytes) -> CallbackAnswer:
        self.posted.put_nowait(time.perf_counter())
        return CallbackAnswer(204)


def woken(made: Cluster) -> Woken:
    """All of them, each measured `TIMES` times in a row."""
    with tempfile.TemporaryDirectory() as folder:
        return asyncio.run(_woken(made, Path(folder)))


async def _woken(made: Cluster, folder: Path) -> Woken:
    url, told, receiver = await new_database(made), asyncio.Queue[float](), Receiver()

    async def short() -> None:
        await asyncio.sleep(STEP_S)
        told.put_nowait(time.perf_counter())

    async def long() -> None:
        told.put_nowait(0)
        try:
            await asyncio.sleep(MINUTE)
        finally:
            told.put_nowait(time.perf_counter())

    async with AsyncExitStack() as opened:
        accepts, works = [
            await opened.enter_async_context(on_postgres(url, folder, policy=SHARED))
            for _ in range(2)
        ]
        await opened.enter_async_context(Engine(works, FunctionRunner(short, long), receiver))
        for one in (accepts, works):
            await _hears(one)
        ann = Principal(await ensure_account(accepts, "ann@example.org"))
        flows = [await _workflow(accepts, ann, name) for name in ("short", "long")]
        made_key = await create_key(accepts, ann.account.id, "bench", Scope.ordinary())
        ann = Principal(ann.account, made_key.key)
        waits, streams, cancels, callbacks = (
            list[float](),
            list[float](),
            list[float](),
            list[float](),
        )
        for _ in range(TIMES):
            run = await start_execution(accepts, ann, flows[0], {})
            both = await asyncio.gather(
                _waited(accepts, ann, run.execution_id), _streamed(accepts, ann, run.execution_id)
            )
            began = await told.get()
            waits.append(both[0] - began)
            streams.append(both[1] - began)
            run = await start_execution(accepts, ann, flows[1], {}, callback_url=CALLED)
            await told.get()
            await cancel_execution(accepts, ann, run.execution_id)
            began = time.perf_counter()
            cancels.append(await told.get() - began)
            callbacks.append(await receiver.posted.get() - began)
        return Woken(*map(p99_ms, (waits, streams, cancels, callbacks)))


async def _waited(services: Services, who: Principal, execution_id: str) -> float:
    """When `?wait` answers."""
    await wait_for_rest(services, who, execution_id, MINUTE)
    return time.perf_counter()


async def _streamed(services: Services, who: Principal, execution_id: str) -> float:
    """When the stream of events ends, which reads as the server's does."""
    after = 0
    with services.wakeup.follow(execution_id) as rest:
        while True:
            run, events = await read_events(services, who, execution_id, after)
            after += len(events)
            if run.status in EXECUTION.final and after >= run.events:
                return time.perf_counter()
            if not events:
                await rest(MINUTE)


async def _workflow(services: Services, who: Principal, function: str) -> str:
    step = {"name": "do", "kind": "code", "language": "command", "command": [function]}
    flow = read_definition({"name": function, "steps": [step]})
    return (await apply_workflow(services, who.account.id, flow)).id


async def _hears(services: Services) -> None:
    with services.wakeup.follow(""):
        await cast("PostgresHints", cast("SharedWakeups", services.wakeup).hints).echo.wait()
