"""
What a node costs the database while nothing happens.

Its pace is twenty times as fast as that of a server; `IDLE_S=30` measures at the real one.
"""

import asyncio
import os
import time
from pathlib import Path

import asyncpg

from nodes.conftest import opened
from nodes.test_hints import Functions, hears
from postgres_server import emptied
from wfcore import Engine
from wfserver.settings import SHARED_POLL_MS, SHARED_SWEEP_MS

IDLE_S = float(os.environ.get("IDLE_S", "0"))
FASTER = 1 if IDLE_S else 20
PACE = {"poll_ms": SHARED_POLL_MS // FASTER, "sweep_ms": SHARED_SWEEP_MS // FASTER}
MOST = 3.0
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
    async with opened(url, data, **PACE) as node, Engine(node.services, Functions().runner()):
        await hears(node)
        began = time.monotonic()
        await asyncio.sleep(seconds)
        lasted = time.monotonic() - began
    return lasted, await counted(url) - before


async def test_an_idle_node_hardly_asks(database: str, tmp_path: Path) -> None:
    """The node that sweeps makes at most three transactions a second while nothing happens."""
    url = await emptied(database)
    await idle(url, tmp_path, 0)
    short, few = await idle(url, tmp_path, 0)
    long, many = await idle(url, tmp_path, IDLE_S or 0.6)
    assert (many - few) / (long - short) / FASTER <= MOST
