"""
What a node costs the database: while nothing happens, and for an execution.

The pace of an idle one is twenty times as fast as that of a server; `IDLE_S=30` measures at the
real one.
"""

import asyncio
import os
import time
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from adapters_store.postgres.reads import PostgresReads
from tests.support.postgres_server import emptied
from wfcore import Engine
from wfcore.ports.runtime import StepEnd
from wfcore.testing.fakes_running import NotedCallbacks, NotedNotifier
from wfcore.usecases.executions import worker as running
from wfserver.settings.record import SHARED_POLL_MS, SHARED_SWEEP_MS

from .conftest import NEVER, AddNode, command, opened
from .test_hints import Functions, hears

IDLE_S = float(os.environ.get("IDLE_S", "0"))
FASTER = 1 if IDLE_S else 20
PACE = {"poll_ms": SHARED_POLL_MS // FASTER, "sweep_ms": SHARED_SWEEP_MS // FASTER}
MOST = 2.0
"""Transactions a second of a node that sweeps."""
COUNT = """SELECT sum(xact_commit + xact_rollback)::bigint FROM pg_stat_database
    WHERE datname = current_database()"""


async def counted(url: str) -> int:
    """The transactions so far of all sessions that have ended."""
    connection = await asyncpg.connect(url)
    try:
        return int(await connection.fetchval(COUNT))
    finally:
        await connection.close()


async def idle(url: str, data: Path, seconds: float) -> tuple[float, int]:
    """Run a node for some time: how long that was, and all its transactions."""
    before = await counted(url)
    outgoing = NotedCallbacks(), NotedNotifier()
    async with (
        opened(url, data, **PACE) as node,
        Engine(node.services, Functions().runner(), *outgoing),
    ):
        await hears(node)
        began = time.monotonic()
        await asyncio.sleep(seconds)
        lasted = time.monotonic() - began
    return lasted, await counted(url) - before


async def test_an_idle_node_hardly_asks(database: str, tmp_path: Path) -> None:
    """A node that is alone, sweeps and calls back makes at most two transactions a second."""
    url = await emptied(database)
    await idle(url, tmp_path, 0)
    short, few = await idle(url, tmp_path, 0)
    long, many = await idle(url, tmp_path, IDLE_S or 0.6)
    assert (many - few) / (long - short) / FASTER <= MOST


async def test_a_worker_does_not_read_what_it_stored_itself(
    node: AddNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From the claim to its end an execution is never read, unless somebody else changes it."""
    real, read = PostgresReads.one, list[str]()

    async def noted(reads: PostgresReads, fetch: Any, key: Any) -> Any:
        read.append(fetch.table)
        return await real(reads, fetch, key)

    services = (one := await node(**NEVER)).services
    run_id = await one.start(command("greet"), command("greet", step="again"))
    monkeypatch.setattr(PostgresReads, "one", noted)
    (lease,) = await running.claim(services, "w1", 1)
    await running.begin(services, lease)
    for step in ("greet", "again"):
        await running.complete_step(services, lease, step, StepEnd("done"))
    assert "executions" not in read
    assert await one.rests(run_id) == "COMPLETED"
