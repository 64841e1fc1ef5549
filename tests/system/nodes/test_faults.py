"""What goes wrong between nodes and their database: nothing is lost, nothing is done twice."""

import asyncio
import os
import tempfile
from collections import Counter
from collections.abc import AsyncIterator
from itertools import cycle
from pathlib import Path

import pytest

from adapters_runtime.functions import current_call
from adapters_runtime.system import SystemClock
from adapters_store.postgres.hints import PostgresHints
from tests.adapters_store.wire import Wire
from tests.support.postgres_server import Cluster, emptied
from wfcore import Engine, FunctionRunner, apply_workflow, start_execution
from wfcore.errors import StoreUnavailable
from wfcore.model.access import OPERATOR
from wfcore.model.event import EventKind
from wfcore.rules.definition.written import read_definition
from wfcore.time import MINUTE
from wfcore.usecases.executions.executions import read_events
from wfcore.usecases.executions.idempotency import Idempotency

from .conftest import AddNode, Node, command, opened

LONG_S = 300
LOST = int(os.environ.get("LOST_ANSWERS", "8"))
"""Answers of the database that never arrive; 200 in the long form."""
ANSWER = b"SELECT 1\0"


class Off(SystemClock):
    """The clock of a machine that is set wrong."""

    def __init__(self, by: int) -> None:
        self._by = by
        super().__init__()

    def _wall(self) -> int:
        return super()._wall() + self._by


class Ledger:
    """What steps did, outside of the database."""

    def __init__(self) -> None:
        self.done: Counter[tuple[str, str, int]] = Counter()

    def runner(self) -> FunctionRunner:
        return FunctionRunner(self.first, self.second)

    async def first(self) -> str:
        return self._note()

    async def second(self) -> str:
        await asyncio.sleep(0.15)  # several heartbeats and sweeps long
        return self._note()

    def _note(self) -> str:
        job = current_call().job
        self.done[job.execution_id, job.step.name, job.attempt] += 1
        return "done"


async def test_clocks_that_are_set_wrong_interrupt_nothing(node: AddNode) -> None:
    """
    One machine is a minute ahead, another one a minute behind; steps that are longer than several
    heartbeats and sweeps all run once, and no healthy worker is taken for lost.
    """
    busy = {"heartbeat_ms": 20, "sweep_ms": 20, "poll_ms": 20, "lease_ms": 20_000}
    ledger = Ledger()
    ahead, behind = await node(clock=Off(MINUTE), **busy), await node(clock=Off(-MINUTE), **busy)
    async with (
        Engine(ahead.services, ledger.runner()),
        Engine(behind.services, ledger.runner()),
        asyncio.timeout(LONG_S),
    ):
        steps = command("first"), command("second")
        runs = [await one.start(*steps) for one in (ahead, behind) for _ in range(6)]
        assert [await ahead.rests(run) for run in runs] == ["COMPLETED"] * len(runs)
    for run in runs:
        _, events = await read_events(ahead.services, OPERATOR, run, 0)
        assert EventKind.EXECUTION_INTERRUPTED not in {event.kind for event in events}
    assert set(ledger.done.values()) == {1}
    assert len(ledger.done) == 2 * len(runs)


@pytest.fixture
async def wire(server: Cluster) -> AsyncIterator[Wire]:
    """A way to the server that loses answers."""
    with tempfile.TemporaryDirectory(prefix="wfpg") as folder:
        wire = Wire(server.folder, Path(folder))
        await wire.lay()
        yield wire
        await wire.cut()


@pytest.fixture
async def far(database: str, wire: Wire, tmp_path: Path) -> AsyncIterator[Node]:
    """A node behind that way, whose work goes on soon after a claim whose answer was lost."""
    url = (await emptied(database)).replace(str(wire.server), str(wire.folder))
    busy = {"heartbeat_ms": 50, "sweep_ms": 50, "poll_ms": 50, "lease_ms": 1_000, "grace_ms": 1}
    async with opened(url, tmp_path / "shared", **busy) as node:
        yield node


async def test_a_key_starts_one_execution_although_the_answers_are_lost(
    far: Node, wire: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever asks again after an answer to COMMIT was lost is told of what it has made."""

    async def quiet(*_: object) -> None:
        """No answers but those that are counted here."""

    monkeypatch.setattr(PostgresHints, "tell", quiet)
    steps = [command("first"), command("second")]
    flow = read_definition({"name": "Flow", "steps": steps})
    workflow = await apply_workflow(far.services, far.ann.account.id, flow)

    async def start(key: str) -> tuple[str, bool]:
        told = await start_execution(
            far.services, far.ann, workflow.id, {}, idempotency=Idempotency(key, "0" * 64)
        )
        return told.execution_id, told.replayed

    await start("warm")
    made: dict[str, str] = {}
    kept = 0
    async with asyncio.timeout(LONG_S):
        while kept < LOST:  # the others lost the answer to a read, and nothing was stored
            key = f"key {len(made)}"
            wire.loses, wire.spares = ANSWER, 1
            with pytest.raises(StoreUnavailable):
                await start(key)
            wire.loses = None
            made[key], replayed = await start(key)
            kept += replayed
            assert await start(key) == (made[key], True)
    assert len(set(made.values())) == len(made)
    ledger = Ledger()
    async with Engine(far.services, ledger.runner()), asyncio.timeout(LONG_S):
        assert {await far.rests(run) for run in made.values()} == {"COMPLETED"}
    assert set(ledger.done.values()) == {1}


async def test_steps_run_once_although_answers_to_their_worker_are_lost(
    far: Node, wire: Wire
) -> None:
    """Claims, beginnings and ends whose answers are lost are repeated; no step runs twice."""
    runs = [await far.start(command("first"), command("second")) for _ in range(LOST)]
    ledger = Ledger()
    async with Engine(far.services, ledger.runner()), asyncio.timeout(LONG_S):
        for spares in cycle((7, 3, 11, 5)):
            wire.loses, wire.spares, lost = ANSWER, spares, wire.lost
            while wire.lost == lost:  # noqa: ASYNC110
                await asyncio.sleep(0.005)
            wire.loses = None
            if wire.lost >= LOST // 2:
                break
            await asyncio.sleep(0.05)
        assert {await far.rests(run) for run in runs} == {"COMPLETED"}
    assert set(ledger.done.values()) == {1}
    assert len(ledger.done) == 2 * len(runs)
