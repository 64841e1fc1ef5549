"""What the worker does beyond its contract: lost answers, drains, and defects of ours."""

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from attrs import evolve

from adapters_runtime.engine import worker as engine
from adapters_runtime.engine.wakeups import Wakeups
from adapters_runtime.engine.worker import Worker
from adapters_store.memory import MemoryStore
from tests.support.worker_scene import LONG_S, a_scene
from wfcore.errors import LeaseLost, StoreUnavailable, Unreadable, WfError
from wfcore.model.access import OPERATOR
from wfcore.model.execution import ExecutionStatus, TriggerSource
from wfcore.model.workflow import (
    Branch,
    CodeStep,
    Definition,
    Language,
    ParallelStep,
)
from wfcore.ports.runtime import Job, Say, StepEnd
from wfcore.testing.fakes import ManualClock, NotedHints
from wfcore.testing.fakes_running import ScriptedRunner
from wfcore.time import EpochMs
from wfcore.usecases.executions import executions, starting
from wfcore.usecases.executions import worker as running
from wfcore.usecases.services import Policy, Services
from wfcore.usecases.upkeep import sweeping
from wfcore.usecases.workflows import workflows

S = ExecutionStatus


async def test_leases_are_kept_while_draining(tmp_path: Path) -> None:
    """A step that ends late in the drain is not lost to a lease that ran out meanwhile."""
    async with a_scene(tmp_path, lease_ms=2_500) as scene:
        run_id = await scene.start(await scene.account("ann"))
        await scene.until(lambda: bool(scene.runner.started))
        stopping = asyncio.create_task(scene.worker.stop(LONG_S))
        over = scene.services.clock.now() + 2_600
        await scene.until(lambda: scene.services.clock.now() > over)
        await sweeping.sweep(scene.services)
        scene.runner.let_go(run_id)
        await stopping
        assert (await scene.run(run_id)).status is S.COMPLETED


async def test_what_could_not_begin_begins_beside_what_runs(tmp_path: Path) -> None:
    """Under the same lease the same attempt is started again; it is seen that it waits. EX-27."""
    asked: list[tuple[str, int, int]] = []
    over = asyncio.Event()

    async def script(job: Job, say: Say) -> StepEnd:
        asked.append((job.step_name, job.attempt, job.postponed))
        if job.step_name == "b":
            await over.wait()
        elif not job.postponed:
            return StepEnd(postponed="no process was left")
        else:
            over.set()
        return StepEnd(job.step_name)

    steps = (CodeStep(name, Language.BASH, ":") for name in "ab")
    both = ParallelStep("both", tuple(Branch(step.name, (step,)) for step in steps))
    async with a_scene(tmp_path) as scene:
        scene.worker._runner = ScriptedRunner(script)
        ann = await scene.account("ann")
        flow = Definition("both", (both,), ())
        workflow = await workflows.apply_workflow(scene.services, ann.account.id, flow)
        run = await starting.start_execution(scene.services, ann, workflow.id, {})
        await scene.until(lambda: scene.worker.shortages.now == "no process was left")
        await scene.until_status(run.execution_id, S.COMPLETED)
        assert asked == [("a", 1, 0), ("b", 1, 0), ("a", 1, 1)]
        assert (scene.worker.shortages.now, scene.worker.shortages.total) == (None, 1)


@pytest.mark.parametrize("lost", ["begin", "complete_step"])
async def test_a_lost_answer_starts_nothing_twice_and_forgets_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lost: str
) -> None:
    """
    What was stored although the store seemed to fail is found again: each end says of what attempt
    it is. EX-23.
    """
    real, answers, attempts = getattr(running, lost), [], set[object]()

    async def deaf(*args: object, **more: object) -> object:
        answer = await real(*args, **more)
        attempts.add(more.get("attempt"))
        answers.append(answer)
        if len(answers) % 2:
            raise StoreUnavailable("the answer got lost")
        return answer

    monkeypatch.setattr(running, lost, deaf)
    async with a_scene(tmp_path) as scene:
        run_id = await scene.start(await scene.account("ann"), steps=3)
        for n in range(3):
            await scene.until(lambda n=n: len(scene.runner.started) == n + 1)  # type: ignore[misc]
            scene.runner.let_go(run_id)
        await scene.until_status(run_id, S.COMPLETED)
        assert [job.step_name for job in scene.runner.started] == ["s0", "s1", "s2"]
    assert attempts == {1 if lost == "complete_step" else None}


async def test_output_lines_wait_for_the_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A store that is away for a moment while a step speaks costs the step nothing but waits."""
    lines, failures, waits = running.log_lines, [1, 2], list[int]()

    async def failing(*args: Any, **more: Any) -> None:
        if failures and failures.pop():
            raise StoreUnavailable("disk full")
        await lines(*args, **more)

    monkeypatch.setattr(running, "log_lines", failing)
    waiting = SimpleNamespace(wait=lambda tried: waits.append(tried) or 0)
    monkeypatch.setattr(engine, "STORE_BACKOFF", waiting)
    async with a_scene(tmp_path) as scene:
        scene.runner.says, ann = "working\n", await scene.account("ann")
        run_id = await scene.start(ann, monitored=True)
        await scene.until(lambda: bool(scene.runner.gates))
        scene.runner.let_go(run_id)
        await scene.until_status(run_id, S.COMPLETED)
        _, events = await executions.read_events(scene.services, OPERATOR, run_id, 0)
        assert [e.data["text"] for e in events if e.kind == "step.log"] == ["working\n"]
    assert waits == [1, 2]


@pytest.mark.parametrize("heard", [True, False], ids=["heard", "unheard"])
async def test_an_execution_that_comes_back_here_is_run_by_its_new_lease(
    tmp_path: Path, heard: bool
) -> None:
    """
    Claimed again while its old step runs: that one is stopped, the other runs. EX-16.

    Also where it was taken away by another process, whose hints are not heard here, between two
    heartbeats: the next of these finds it among what this process holds.
    """
    async with a_scene(tmp_path, lease_ms=LONG_S * 2_000, heartbeat_ms=LONG_S * 1_000) as scene:
        services = scene.services if heard else evolve(scene.services, wakeup=NotedHints())
        run_id = await scene.start(await scene.account("ann"), source=TriggerSource.MANUAL)
        await scene.until(lambda: len(scene.runner.started) == 1)
        scene.runner.dying.clear()
        lease = running.Lease("w1", run_id, 1)
        await running.hand_back(services, lease)
        await sweeping.sweep(services)
        scene.wakeups.runner()
        await scene.until(lambda: len(scene.runner.started) == 2)
        scene.runner.dying.set()
        await scene.until(lambda: scene.runner.ended == [run_id])
        for _ in range(10):  # turns, in which the old one is let go of
            await asyncio.sleep(0)
        assert scene.worker.running == 1
        scene.runner.let_go(run_id)
        await scene.until_status(run_id, S.COMPLETED)
        await scene.until(lambda: scene.worker.running == 0)


async def test_a_defect_ends_the_execution_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """An execution that the service cannot carry on is FAILED once, not tried for ever."""
    begin, asked = running.begin, []

    async def broken(services: Services, lease: running.Lease) -> object:
        asked.append(lease.execution_id)
        if len(asked) == 1:
            raise RuntimeError("a defect")
        return await begin(services, lease)

    monkeypatch.setattr(running, "begin", broken)
    async with a_scene(tmp_path) as scene:
        ann = await scene.account("ann")
        run_id = await scene.start(ann)
        run = await scene.until_status(run_id, S.FAILED)
        assert run.error == "Internal error"
        other = await scene.start(ann, source=TriggerSource.MANUAL)
        await scene.until(lambda: bool(scene.runner.started))
        scene.runner.let_go(other)
        await scene.until_status(other, S.COMPLETED)
        assert asked == [run_id, other]
    (line,) = caplog.records
    assert line.getMessage() == "a defect ended an execution"
    assert vars(line)["execution_id"] == run_id


@pytest.mark.parametrize("end", ["break_off", "hand_back"])
@pytest.mark.parametrize(
    "refusal", [LeaseLost("exec_1"), StoreUnavailable("away"), Unreadable("execution", "exec_1")]
)
async def test_what_cannot_be_let_go_of_in_order_is_let_go_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, end: str, refusal: WfError
) -> None:
    """Where the store refuses its end, an execution frees its place and is left to its lease."""

    async def refused(*args: object) -> None:
        raise refusal

    async def broken(*args: object) -> None:
        raise RuntimeError("a defect")

    monkeypatch.setattr(running, end, refused)
    async with a_scene(tmp_path) as scene:
        await scene.start(await scene.account("ann"))
        await scene.until(lambda: bool(scene.runner.started))
        (held,) = scene.worker._held.values()
        assert held.driver is not None
        if end == "break_off":
            monkeypatch.setattr(running, "complete_step", broken)
            scene.runner.let_go(held.lease.execution_id)
        else:
            await scene.worker.stop(0)
        await asyncio.wait([held.driver])
        assert scene.worker.running == 0
        assert held.driver.cancelled() or held.driver.exception() is None


async def test_a_worker_is_enlisted_before_its_first_claim_and_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What others know a living worker by is taken before anything is, and not asked for again."""
    said: list[str] = []
    enlist, claim = MemoryStore.enlist, running.claim

    async def noted_enlist(store: MemoryStore, worker: str) -> None:
        said.append(worker)
        await enlist(store, worker)

    async def noted_claim(*args: object, **which: object) -> object:
        said.append("claim")
        return await claim(*args, **which)  # type: ignore[arg-type]

    monkeypatch.setattr(MemoryStore, "enlist", noted_enlist)
    monkeypatch.setattr(running, "claim", noted_claim)
    async with a_scene(tmp_path, poll_ms=1) as scene:
        ann = await scene.account("ann")
        for _ in range(3):
            run_id = await scene.start(ann)
            await scene.until(lambda run_id=run_id: run_id in scene.runner.gates)  # type: ignore[misc]
            scene.runner.let_go(run_id)
            await scene.until_status(run_id, S.COMPLETED)
    assert said[0] == "w1"
    assert set(said[1:]) == {"claim"}


@pytest.mark.parametrize(
    ("late_s", "idle_s", "held", "told"),
    [(9, 9, 0, True), (9, 9, 1, True), (9, 9, 2, False), (9, 1, 0, False), (1, 9, 0, False)],
)
async def test_due_work_that_is_left_is_told_unless_places_are_used(
    tmp_path: Path, late_s: int, idle_s: int, held: int, told: bool
) -> None:
    """Who takes nothing although work is due and most of the places are free is in trouble."""
    async with a_scene(tmp_path) as scene:
        clock = ManualClock()
        store = MemoryStore(now=clock.service_now)
        parts = {"policy": Policy(places=4), "wakeup": Wakeups()}
        services = evolve(scene.services, clock=clock, store=store, **parts)
        idle = Worker(services, scene.runner, "w2")
        assert idle.trouble(5) == "the worker does not run"
        idle.loop.running = True
        assert idle.trouble(5) is None
        idle.loop.oldest_due = EpochMs(clock.service_now() - late_s * 1_000)
        idle._last_taken = asyncio.get_running_loop().time() - idle_s
        over = asyncio.get_running_loop().create_future()
        for fence in range(held):
            lease = running.Lease("w2", "exec_1", fence)
            idle._held[lease] = engine._Held(lease, over)
        leaves = "the worker leaves executions that were due 9 s ago"
        assert idle.trouble(5) == (leaves if told else None)


async def test_who_has_stopped_leaves_nothing_running(tmp_path: Path) -> None:
    """No task is left that runs a step, or extends leases that others may take by now."""
    before = asyncio.all_tasks()
    async with a_scene(tmp_path) as scene:
        await scene.start(await scene.account("ann"))
        await scene.until(lambda: bool(scene.runner.started))
    await asyncio.sleep(0)
    assert asyncio.all_tasks() == before
