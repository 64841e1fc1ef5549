"""The dispatcher: bounded, fair, stoppable, and never silent about a defect."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from attrs import define, field

from adapters_runtime.dispatcher import Dispatcher
from adapters_runtime.system import SystemClock, SystemIds
from adapters_runtime.wakeups import Wakeups
from adapters_store.files import LocalFiles
from adapters_store.memory import MemoryCounters, MemoryStore
from wfcore.errors import StoreUnavailable
from wfcore.instants import DurationMs
from wfcore.model.access import Plan, Principal
from wfcore.model.execution import Execution, ExecutionStatus, TriggerSource
from wfcore.model.workflow import CodeStep, Definition, Language
from wfcore.ports.runtime import LanguageState, Say, StepEnd, StepJob
from wfcore.testing.fakes import CountingTokens, PathTemplates, PlainPasswords
from wfcore.usecases import accounts, executions, running, starting, sweeping, workflows
from wfcore.usecases.services import Policy, Services

S = ExecutionStatus
LONG_S = 30


@define
class HeldRunner:
    """A step runner whose steps end when the test says so."""

    started: list[StepJob] = field(factory=list)
    ended: list[str] = field(factory=list)
    gates: dict[str, asyncio.Future[StepEnd]] = field(factory=dict)
    says: str = ""
    dying: asyncio.Event = field(factory=asyncio.Event)
    """While it is clear, steps that were stopped are not dead yet."""

    async def run(self, job: StepJob, say: Say) -> StepEnd:
        gate = asyncio.get_running_loop().create_future()
        self.started.append(job)
        if self.says:
            await say("stdout", self.says)
        self.gates[job.execution_id] = gate
        try:
            return await gate
        except asyncio.CancelledError:
            await self.dying.wait()
            raise
        finally:
            self.ended.append(job.execution_id)
            if self.gates.get(job.execution_id) is gate:
                del self.gates[job.execution_id]

    def let_go(self, execution_id: str) -> None:
        self.gates[execution_id].set_result(StepEnd("done"))

    def languages(self) -> Mapping[Language, LanguageState]:
        return {}

    async def close(self) -> None:
        """Nothing to end."""


@define
class Scene:
    """A dispatcher at work on a store in memory."""

    services: Services
    runner: HeldRunner
    dispatcher: Dispatcher
    wakeups: Wakeups
    loop: asyncio.Task[None]

    async def account(self, name: str) -> Principal:
        return Principal(
            await accounts.create_account(self.services, f"{name}@example.org", Plan.PRO)
        )

    async def start(self, who: Principal, steps: int = 1, **more: object) -> str:
        flow = Definition(
            f"flow {steps}",
            tuple(CodeStep(f"s{n}", Language.BASH, ":") for n in range(steps)),
            (),
        )
        workflow = await workflows.apply_workflow(self.services, who.account.id, flow)
        started = await starting.start_execution(
            self.services,
            who,
            workflow.id,
            {},
            **more,  # type: ignore[arg-type]
        )
        return started.execution_id

    async def run(self, execution_id: str) -> Execution:
        return await executions.read_execution(self.services, None, execution_id)

    async def until(self, holds: Callable[[], bool]) -> None:
        """Wait for a condition that something here brings about."""
        async with asyncio.timeout(LONG_S):
            while not holds():  # noqa: ASYNC110 - polls what has no event
                await asyncio.sleep(0.001)

    async def until_status(self, execution_id: str, status: ExecutionStatus) -> Execution:
        async with asyncio.timeout(LONG_S):
            while (run := await self.run(execution_id)).status is not status:  # noqa: ASYNC110
                await asyncio.sleep(0.001)
        return run


@asynccontextmanager
async def a_scene(tmp_path: Path, places: int = 8, lease_ms: int = 15_000) -> AsyncIterator[Scene]:
    wakeups = Wakeups()
    services = Services(
        store=MemoryStore(),
        counters=MemoryCounters(),
        files=LocalFiles(tmp_path),
        clock=SystemClock(),
        ids=SystemIds(),
        tokens=CountingTokens(),
        passwords=PlainPasswords(),
        templates=PathTemplates(),
        wakeup=wakeups,
        signing_key=b"k" * 32,
        policy=Policy(places=places, lease_ms=DurationMs(lease_ms)),
    )
    runner = HeldRunner()
    runner.dying.set()
    dispatcher = Dispatcher(services, runner, wakeups, "w1")
    scene = Scene(services, runner, dispatcher, wakeups, asyncio.create_task(dispatcher.run()))
    try:
        yield scene
    finally:
        await dispatcher.stop(0)
        await scene.loop


async def test_steps_start_as_soon_as_something_is_accepted(tmp_path: Path) -> None:
    """A start wakes the dispatcher, and the end of one step starts the next."""
    async with a_scene(tmp_path) as scene:
        run_id = await scene.start(await scene.account("ann"), steps=2)
        for n in range(2):
            await scene.until(lambda n=n: len(scene.runner.started) == n + 1)  # type: ignore[misc]
            scene.runner.let_go(run_id)
        run = await scene.until_status(run_id, S.COMPLETED)
        assert run.output == "done"


async def test_no_more_steps_run_than_there_are_places(tmp_path: Path) -> None:
    """With four places the fifth execution waits, and is taken when one is free."""
    async with a_scene(tmp_path, places=4) as scene:
        people = [await scene.account(f"p{n}") for n in range(6)]
        ids = [await scene.start(who) for who in people]
        await scene.until(lambda: len(scene.runner.started) == 4)
        for run_id in ids[:4]:
            scene.runner.let_go(run_id)
        await scene.until(lambda: len(scene.runner.started) == 6)
        assert len(scene.runner.gates) <= 4


async def test_one_accounts_flood_leaves_room_for_anothers_first_step(tmp_path: Path) -> None:
    """However many executions one account has due, another one's step starts at once."""
    async with a_scene(tmp_path, places=4) as scene:
        flood, ann = await scene.account("flood"), await scene.account("ann")
        for _ in range(20):
            await scene.start(flood)
        await scene.until(lambda: len(scene.runner.started) == 3)
        run_id = await scene.start(ann)
        await scene.until(lambda: any(job.execution_id == run_id for job in scene.runner.started))
        assert sum(job.execution_id != run_id for job in scene.runner.started) == 3


async def test_a_cancelled_execution_is_stopped_here(tmp_path: Path) -> None:
    """Cancel reaches the running step, and the place is free again."""
    async with a_scene(tmp_path) as scene:
        run_id = await scene.start(await scene.account("ann"))
        await scene.until(lambda: bool(scene.runner.started))
        await executions.cancel_execution(scene.services, None, run_id)
        await scene.until(lambda: scene.runner.ended == [run_id])
        await scene.until(lambda: scene.dispatcher.running == 0)
        assert (await scene.run(run_id)).status is S.CANCELLED


async def test_what_another_process_took_away_is_stopped(tmp_path: Path) -> None:
    """A cancel whose hint never came is noticed with the next heartbeat."""
    async with a_scene(tmp_path) as scene:
        run_id = await scene.start(await scene.account("ann"))
        await scene.until(lambda: bool(scene.runner.started))
        scene.wakeups.on_stop = lambda execution_id: None
        await executions.cancel_execution(scene.services, None, run_id)
        await scene.dispatcher.keep_leases()
        await scene.until(lambda: scene.runner.ended == [run_id])


async def test_stopping_lets_a_step_end_and_hands_the_rest_back(tmp_path: Path) -> None:
    """Drained: the step's result is kept, the next step is another worker's. EX-15."""
    async with a_scene(tmp_path) as scene:
        run_id = await scene.start(await scene.account("ann"), steps=2)
        await scene.until(lambda: bool(scene.runner.started))
        stopping = asyncio.create_task(scene.dispatcher.stop(LONG_S))
        await asyncio.sleep(0)
        scene.runner.let_go(run_id)
        await stopping
        run = await scene.run(run_id)
        assert (run.status, run.worker, list(run.step_results)) == (S.RUNNING, None, ["s0"])
        assert await running.claim(scene.services, "w2", 1)


async def test_leases_are_kept_while_draining(tmp_path: Path) -> None:
    """A step that ends late in the drain is not lost to a lease that ran out meanwhile."""
    async with a_scene(tmp_path, lease_ms=2_500) as scene:
        run_id = await scene.start(await scene.account("ann"))
        await scene.until(lambda: bool(scene.runner.started))
        stopping = asyncio.create_task(scene.dispatcher.stop(LONG_S))
        over = scene.services.clock.now() + 2_600
        await scene.until(lambda: scene.services.clock.now() > over)
        await sweeping.sweep(scene.services)
        scene.runner.let_go(run_id)
        await stopping
        assert (await scene.run(run_id)).status is S.COMPLETED


async def test_what_does_not_end_in_the_drain_is_interrupted(tmp_path: Path) -> None:
    """Its step is ended, and the execution says so instead of running again. EX-11."""
    async with a_scene(tmp_path) as scene:
        run_id = await scene.start(await scene.account("ann"))
        await scene.until(lambda: bool(scene.runner.started))
        await scene.dispatcher.stop(0)
        assert scene.runner.ended == [run_id]
        assert (await scene.run(run_id)).status is S.INTERRUPTED


async def test_a_result_outlives_an_outage_of_the_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While the store cannot write, the result is kept and stored when it can."""
    async with a_scene(tmp_path) as scene:
        run_id = await scene.start(await scene.account("ann"))
        await scene.until(lambda: bool(scene.runner.started))
        complete, failures = running.complete_step, []

        async def failing(*args: object, **more: object) -> object:
            if len(failures) < 3:
                failures.append(1)
                raise StoreUnavailable("disk full")
            return await complete(*args, **more)  # type: ignore[arg-type]

        monkeypatch.setattr(running, "complete_step", failing)
        scene.runner.let_go(run_id)
        await scene.until_status(run_id, S.COMPLETED)
        assert len(failures) == 3


@pytest.mark.parametrize("lost", ["begin", "complete_step"])
async def test_a_lost_answer_starts_nothing_twice_and_forgets_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lost: str
) -> None:
    """What was stored although the store seemed to fail is found again. EX-23."""
    real, answers = getattr(running, lost), []

    async def deaf(*args: object, **more: object) -> object:
        answer = await real(*args, **more)
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


async def test_output_lines_wait_for_the_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A store that is away for a moment while a step speaks costs the step nothing."""
    lines, failures = running.log_lines, []

    async def failing(*args: object) -> None:
        if len(failures) < 2:
            failures.append(1)
            raise StoreUnavailable("disk full")
        await lines(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(running, "log_lines", failing)
    async with a_scene(tmp_path) as scene:
        scene.runner.says = "working\n"
        run_id = await scene.start(await scene.account("ann"))
        await scene.until(lambda: bool(scene.runner.gates))
        scene.runner.let_go(run_id)
        await scene.until_status(run_id, S.COMPLETED)
        _, events = await executions.read_events(scene.services, None, run_id, 0)
        assert [e.data["text"] for e in events if e.kind == "step.log"] == ["working\n"]


async def test_an_execution_that_comes_back_here_is_run_by_its_new_lease(tmp_path: Path) -> None:
    """Claimed again while its old step still ends: one is stopped, the other runs. EX-16."""
    async with a_scene(tmp_path) as scene:
        run_id = await scene.start(await scene.account("ann"), source=TriggerSource.MANUAL)
        await scene.until(lambda: len(scene.runner.started) == 1)
        scene.runner.dying.clear()
        lease = running.Lease("w1", run_id, 1)
        await running.hand_back(scene.services, lease)
        await sweeping.sweep(scene.services)
        await scene.until(lambda: len(scene.runner.started) == 2)
        scene.runner.dying.set()
        await scene.until(lambda: scene.runner.ended == [run_id])
        for _ in range(10):  # turns, in which the old one is let go of
            await asyncio.sleep(0)
        assert scene.dispatcher.running == 1
        scene.runner.let_go(run_id)
        await scene.until_status(run_id, S.COMPLETED)
        await scene.until(lambda: scene.dispatcher.running == 0)


async def test_a_defect_ends_the_execution_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
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
    assert "a defect ended an execution" in capsys.readouterr().out
