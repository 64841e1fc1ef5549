"""When a worker looks for work: at hints, at ends that leave room, and never in vain."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from adapters_store.memory import MemoryStore
from adapters_store.sqlite.store import SqliteStore
from tests.support.worker_scene import a_scene
from wfcore.model.execution import ExecutionStatus
from wfcore.model.workflow import CodeStep, Concurrency, Definition, DelayStep, Language
from wfcore.ports.store import Store
from wfcore.time import HOUR, DurationMs
from wfcore.usecases.executions import starting
from wfcore.usecases.executions import worker as running
from wfcore.usecases.services import Services
from wfcore.usecases.workflows import workflows

S = ExecutionStatus


@pytest.fixture(params=["memory", "sqlite"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Store]:
    if request.param == "memory":
        yield MemoryStore()
        return
    opened = await SqliteStore.open(tmp_path / "wfcore.db")
    yield opened
    await opened.close()


async def test_a_place_that_gets_free_is_given_to_what_had_none(
    tmp_path: Path, store: Store
) -> None:
    """Who had no place begins as soon as there is one, however seldom the worker looks. EX-2."""
    async with a_scene(tmp_path, store, places=1, poll_ms=HOUR) as scene:
        ann = await scene.account("ann")
        first, second = await scene.start(ann), await scene.start(ann)
        for run_id in (first, second):
            await scene.until(lambda run_id=run_id: run_id in scene.runner.gates)  # type: ignore[misc]
            scene.runner.let_go(run_id)
            await scene.until_status(run_id, S.COMPLETED)


async def test_room_in_a_group_is_given_to_what_waits_for_it(tmp_path: Path, store: Store) -> None:
    """An end within a concurrency group is a hint, since what waits there is not yet due. CC-2."""
    async with a_scene(tmp_path, store, poll_ms=HOUR) as scene:
        ann = await scene.account("ann")
        step = CodeStep("s0", Language.BASH, ":")
        alone = Definition("alone", (step,), (), concurrency=Concurrency(1))
        workflow = await workflows.apply_workflow(scene.services, ann.account.id, alone)
        both = [
            (await starting.start_execution(scene.services, ann, workflow.id, {})).execution_id
            for _ in range(2)
        ]
        for run_id in both:
            await scene.until(lambda run_id=run_id: run_id in scene.runner.gates)  # type: ignore[misc]
            scene.runner.let_go(run_id)
            await scene.until_status(run_id, S.COMPLETED)


async def test_an_end_that_leaves_nothing_to_do_makes_nobody_look(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the last look left nothing and a place was free, an end is no reason for a claim."""
    claim, claims = running.claim, list[int]()

    async def counted(*args: Any, **which: Any) -> Any:
        taken = await claim(*args, **which)
        claims.append(len(taken))
        return taken

    monkeypatch.setattr(running, "claim", counted)
    async with a_scene(tmp_path, poll_ms=HOUR) as scene:
        run_id = await scene.start(await scene.account("ann"))
        await scene.until(lambda: run_id in scene.runner.gates)
        before = [*claims]
        scene.runner.let_go(run_id)
        await scene.until(lambda: scene.worker.running == 0)
        for _ in range(10):  # turns, in which a round would begin
            await asyncio.sleep(0)
        assert claims == before


async def test_a_round_without_a_hint_claims_only_what_is_due(
    tmp_path: Path, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An idle worker asks for the earliest due instant alone; what is due is claimed. EX-2."""
    claims, rounds = 0, 0
    claim, next_due = running.claim, running.next_due

    async def counted_claim(*given: Any, **named: Any) -> Any:
        nonlocal claims
        claims += 1
        return await claim(*given, **named)

    async def counted_round(*given: Any) -> Any:
        nonlocal rounds
        rounds += 1
        return await next_due(*given)

    async with a_scene(tmp_path, store, poll_ms=DurationMs(1)) as scene:
        ann = await scene.account("ann")
        await scene.until(lambda: scene.worker.loop.hinted is False)
        monkeypatch.setattr(running, "claim", counted_claim)
        monkeypatch.setattr(running, "next_due", counted_round)
        await scene.until(lambda: rounds >= 5)
        assert claims == 0
        monkeypatch.setattr(scene.services.wakeup, "runner", lambda *_: None)
        run_id = await scene.start(ann)
        await scene.until(lambda: run_id in scene.runner.gates)
        assert claims >= 1
        scene.runner.let_go(run_id)
        await scene.until_status(run_id, S.COMPLETED)


async def test_what_is_due_later_is_taken_then(tmp_path: Path) -> None:
    """A delay is a hint to workers: they need no sweep, and no poll, to end it. FL-5."""
    async with a_scene(tmp_path, poll_ms=HOUR) as scene:
        ann = await scene.account("ann")
        waits = Definition("waits", (DelayStep("wait", DurationMs(30)),), ())
        workflow = await workflows.apply_workflow(scene.services, ann.account.id, waits)
        run = await starting.start_execution(scene.services, ann, workflow.id, {})
        await scene.until_status(run.execution_id, S.COMPLETED)


async def test_what_a_dispatch_does_not_deliver_follows_what_was_hinted_at(
    tmp_path: Path,
) -> None:
    """A hint of more than there are places for is followed to its end, whatever is delivered."""
    silent = cast("Any", SimpleNamespace(up=True))
    async with a_scene(tmp_path, dispatch=silent, places=1, reconcile_ms=HOUR) as scene:
        ann = await scene.account("ann")
        scene.worker.set_draining(True)
        both = [await scene.start(ann) for _ in range(2)]
        scene.worker.set_draining(False)
        for _ in both:
            await scene.until(lambda: bool(scene.runner.gates))
            [run_id] = scene.runner.gates
            scene.runner.let_go(run_id)
            await scene.until_status(run_id, S.COMPLETED)


@pytest.mark.parametrize("during", ["claim", "next_due"])
async def test_an_end_during_a_round_is_not_missed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, during: str
) -> None:
    """A place that gets free while the worker claims, or looks for what is left, is filled."""
    real, reached, goes_on = getattr(running, during), asyncio.Event(), asyncio.Event()

    async def held_up(*args: Any, **which: Any) -> Any:
        found = await real(*args, **which)
        reached.set()
        await goes_on.wait()
        return found

    async with a_scene(tmp_path, places=2, poll_ms=HOUR) as scene:
        ann, bob = await scene.account("ann"), await scene.account("bob")
        ran = await scene.start(bob)
        await scene.until(lambda: ran in scene.runner.gates)
        scene.runner.let_go(ran)  # since then the last place is kept for others than ann
        await scene.until_status(ran, S.COMPLETED)
        first = await scene.start(ann)
        await scene.until(lambda: first in scene.runner.gates)
        flow = (await scene.run(first)).workflow_id
        monkeypatch.setattr(running, during, held_up)
        second = await starting.start_execution(scene.services, ann, flow, {})
        await reached.wait()
        scene.runner.let_go(first)
        await scene.until(lambda: scene.worker.running == 0)
        goes_on.set()
        await scene.until(lambda: second.execution_id in scene.runner.gates)


async def test_a_claim_that_took_less_than_there_was_is_repeated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is left, beside a row that cannot be read, say, waits for no poll."""
    claim = running.claim

    async def hesitant(services: Services, worker: str, limit: int, **which: Any) -> Any:
        return await claim(services, worker, min(limit, 1), **which)

    monkeypatch.setattr(running, "claim", hesitant)
    async with a_scene(tmp_path, poll_ms=HOUR) as scene:
        ann = await scene.account("ann")
        scene.worker.set_draining(True)
        waits = [await scene.start(ann) for _ in range(3)]
        scene.worker.set_draining(False)
        await scene.until(lambda: {*waits} <= scene.runner.gates.keys())
