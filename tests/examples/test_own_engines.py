"""Dispatches of the examples: one keeps the shipped contract on a real Redis, one is a recipe."""

import asyncio
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from temporalio.testing import ActivityEnvironment

from tests.support.distribution import program
from wfcore.ports.queue import DispatchQueue, DueExecution
from wfcore.testing.contracts.dispatch import DispatchContract

from .loading import example

KEEP_S = 1.0
STARTS_S = 30
own = example("dramatiq_engine")
recipe = example("temporal_engine")


@pytest.fixture(scope="module")
def redis() -> Iterator[str]:
    """The URL of a server that listens at a socket and nowhere else."""
    folder = Path(tempfile.mkdtemp(prefix="wfrd"))  # a short name, because that of a socket must be
    socket = folder / "redis.sock"
    command = [program("redis-server", "redis-server"), "--port", "0", "--save", ""]
    process = subprocess.Popen(
        [*command, "--unixsocket", str(socket), "--dir", str(folder)], stdout=subprocess.DEVNULL
    )
    try:
        until = time.monotonic() + STARTS_S
        while not socket.exists() and time.monotonic() < until:
            assert process.poll() is None
            time.sleep(0.005)
        yield f"unix://{socket}"
    finally:
        process.terminate()
        process.wait()
        shutil.rmtree(folder)


class TestDramatiqDispatch(DispatchContract):
    @pytest.fixture
    def new_dispatch(self, redis: str) -> Callable[[], DispatchQueue]:
        own.DramatiqDispatch(redis).broker.client.flushall()
        return lambda: own.DramatiqDispatch(redis, KEEP_S)


async def test_an_activity_lasts_until_its_execution_is_let_go_of() -> None:
    """
    With Temporal: the activity hands over its id, passes on that the worker is alive, and answers
    when it is to be handed out again. Without a connection nothing is told.
    """
    dispatch = recipe.TemporalDispatch("127.0.0.1:1")
    assert not await dispatch.tell([DueExecution("exec_1", "1")])
    beats: list[object] = []
    for ends, again_ms in (("settle", -1), ("put_back", 250)):
        there = ActivityEnvironment()
        there.on_heartbeat = lambda *_: beats.append(1)
        activity = asyncio.create_task(there.run(dispatch.handle, "exec_1", 2))
        (one,) = await dispatch.take(1)
        assert (one.execution_id, one.tries) == ("exec_1", 2)
        await one.keep()
        await (one.settle() if ends == "settle" else one.put_back(250))
        assert await activity == again_ms
    assert len(beats) == 2
