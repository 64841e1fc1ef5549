"""A worker at work on a store, with steps that end when the test says so."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from attrs import define, field

from adapters_runtime.engine.wakeups import Wakeups
from adapters_runtime.engine.worker import Worker
from adapters_runtime.system import SystemClock, SystemIds
from adapters_store.files import LocalFiles
from adapters_store.memory import MemoryCounters, MemoryStore
from wfcore.model.access import OPERATOR, Principal, Tier
from wfcore.model.execution import Execution, ExecutionStatus
from wfcore.model.workflow import CodeStep, Definition, Language
from wfcore.ports.queue import DispatchQueue
from wfcore.ports.runtime import LanguageState, Say, StepEnd, StepJob
from wfcore.ports.store import Store
from wfcore.testing.fakes import CountingTokens, PathTemplates, PlainPasswords
from wfcore.usecases.accounts import accounts
from wfcore.usecases.executions import executions, starting
from wfcore.usecases.services import Policy, Services
from wfcore.usecases.workflows import workflows

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
    """A worker at work on a store."""

    services: Services
    runner: HeldRunner
    worker: Worker
    wakeups: Wakeups
    loop: asyncio.Task[None]

    async def account(self, name: str) -> Principal:
        return Principal(
            await accounts.create_account(self.services, f"{name}@example.org", Tier.PRO)
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
        return await executions.read_execution(self.services, OPERATOR, execution_id)

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
async def a_scene(
    tmp_path: Path,
    store: Store | None = None,
    dispatch: DispatchQueue | None = None,
    **policy: Any,
) -> AsyncIterator[Scene]:
    """*store* None: one in memory. *dispatch*: the worker's."""
    wakeups, clock = Wakeups(), SystemClock()
    services = Services(
        store=store or MemoryStore(now=clock.service_now),
        counters=MemoryCounters(),
        files=LocalFiles(tmp_path),
        clock=clock,
        ids=SystemIds(),
        tokens=CountingTokens(),
        passwords=PlainPasswords(),
        templates=PathTemplates(),
        wakeup=wakeups,
        signing_key=b"k" * 32,
        policy=Policy(**policy),
    )
    runner = HeldRunner()
    runner.dying.set()
    worker = Worker(services, runner, "w1", dispatch=dispatch)
    scene = Scene(services, runner, worker, wakeups, asyncio.create_task(worker.run()))
    try:
        yield scene
    finally:
        await worker.stop(0)
        await scene.loop
