"""
How soon one server learns what another one did, by hints over PostgreSQL.

Two servers' worth of services on one database, each with connections of its own, in one process:
one accepts, cancels and is asked to wait, the other works. Nothing is found by looking: a poll is
seconds away.
"""

import asyncio
import tempfile
import time
from contextlib import AsyncExitStack
from pathlib import Path
from typing import cast

from attrs import frozen

from adapters_runtime.engine.wakeups import SharedWakeups
from adapters_store.postgres.hints import PostgresHints
from bench.dispatch import POLICY
from postgres_server import Cluster
from wfcore import (
    Definition,
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
from wfcore.time import MINUTE

TIMES = 200
STEP_S = 0.02
"""How long a step takes: whoever waits for its end is waiting by then."""


@frozen
class Woken:
    """
    Milliseconds, p99: from the return of a last step to the answer of `?wait` at another server,
    and from an accepted cancellation to the end of the step at another server.
    """

    wait_ms: float
    cancel_ms: float


def woken(made: Cluster) -> Woken:
    """Both, each measured `TIMES` times in a row."""
    with tempfile.TemporaryDirectory() as folder:
        return asyncio.run(_woken(made, Path(folder)))


async def _woken(made: Cluster, folder: Path) -> Woken:
    await asyncio.to_thread(made.execute, "CREATE DATABASE woken")
    url, told = made.url("woken"), asyncio.Queue[float]()

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
            await opened.enter_async_context(on_postgres(url, folder, policy=POLICY))
            for _ in range(2)
        ]
        await opened.enter_async_context(Engine(works, FunctionRunner(short, long)))
        for one in (accepts, works):
            await _hears(one)
        ann = Principal(await ensure_account(accepts, "ann@example.org"))
        flows = [await _workflow(accepts, ann, name) for name in ("short", "long")]
        waits, cancels = [], []
        for _ in range(TIMES):
            run = await start_execution(accepts, ann, flows[0], {})
            await wait_for_rest(accepts, ann, run.execution_id, MINUTE)
            waits.append(time.perf_counter() - await told.get())
            run = await start_execution(accepts, ann, flows[1], {})
            await told.get()
            await cancel_execution(accepts, ann, run.execution_id)
            began = time.perf_counter()
            cancels.append(await told.get() - began)
        return Woken(_p99_ms(waits), _p99_ms(cancels))


async def _workflow(services: Services, who: Principal, function: str) -> str:
    step = {"name": "do", "kind": "code", "language": "command", "command": [function]}
    flow = Definition.from_mapping({"name": function, "steps": [step]})
    return (await apply_workflow(services, who.account.id, flow)).id


async def _hears(services: Services) -> None:
    with services.wakeup.follow(""):
        await cast("PostgresHints", cast("SharedWakeups", services.wakeup).hints).echo.wait()


def _p99_ms(seconds: list[float]) -> float:
    return sorted(seconds)[len(seconds) * 99 // 100] * 1_000
