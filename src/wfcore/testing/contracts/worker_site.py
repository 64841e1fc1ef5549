"""The environment of the worker contract: services in memory, and shortcuts for tests."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, TypeAlias, TypeVar

from attrs import define, evolve, frozen

from wfcore.errors import NotFound, StoreUnavailable
from wfcore.memory import MemoryStore
from wfcore.model.access import OPERATOR, Account, Principal, Tier
from wfcore.model.approval import DecisionSource
from wfcore.model.execution import Execution, ExecutionStatus
from wfcore.model.workflow import CodeStep, Definition, Language, Step
from wfcore.ports.hints import Wakeup
from wfcore.ports.queue import Worker
from wfcore.ports.runtime import Job, JobRunner
from wfcore.rules.approval.machine import Approve
from wfcore.testing.fakes import (
    CountingIds,
    CountingTokens,
    ManualClock,
    NotedHints,
    PathTemplates,
    PlainPasswords,
)
from wfcore.testing.fakes_running import DictFiles, HeldRunner, counters_in_memory
from wfcore.usecases.accounts import accounts
from wfcore.usecases.approvals import approvals, deciding
from wfcore.usecases.executions import executions, starting
from wfcore.usecases.services import Policy, Services
from wfcore.usecases.upkeep import sweeping
from wfcore.usecases.workflows import workflows

R = TypeVar("R")

PATIENCE_S = 60
"""The seconds after which a test gives up an expected event."""


def code(name: str) -> CodeStep:
    """A code step for a runner."""
    return CodeStep(name, Language.BASH, ":")


@define
class RefusingGate:
    """A `SchedulingPoint` that lets other tasks run first. The next writes can be made to fail."""

    refuses: int = 0

    async def __call__(
        self, name: str, about: object, apply: Callable[[], R], *, writes: bool = False
    ) -> R:
        await asyncio.sleep(0)
        if writes and self.refuses:
            self.refuses -= 1
            raise StoreUnavailable(detail="a storm")
        return apply()


@define
class Site:
    """Services with a store and a time that the test controls."""

    services: Services
    clock: ManualClock
    weather: RefusingGate

    @classmethod
    def made(cls, wakeup: Wakeup) -> "Site":
        clock, weather = ManualClock(), RefusingGate()
        services = Services(
            store=MemoryStore(weather, now=clock.service_now),
            counters=counters_in_memory(),
            files=DictFiles(),
            clock=clock,
            ids=CountingIds(),
            tokens=CountingTokens(),
            passwords=PlainPasswords(),
            templates=PathTemplates(),
            wakeup=wakeup,
            signing_key=b"k" * 32,
        )
        return cls(services, clock, weather)

    def with_policy(self, **changes: Any) -> "Site":
        """The same site with another policy."""
        policy: Policy = evolve(self.services.policy, **changes)
        return evolve(self, services=evolve(self.services, policy=policy))

    def deaf(self) -> "Site":
        """The same store for another process, whose hints do not arrive here."""
        return evolve(self, services=evolve(self.services, wakeup=NotedHints()))

    async def start(self, steps: int = 1, email: str = "ann@example.org", **how: Any) -> str:
        """Start an execution with *steps* steps, named s0, s1 and so on; return its id."""
        return await self.start_of(*(code(f"s{n}") for n in range(steps)), email=email, **how)

    async def start_of(self, *steps: Step, email: str = "ann@example.org", **how: Any) -> str:
        """Start an execution with these steps; return its id."""
        account = await self._account(email)
        flow = Definition(f"flow {len(steps)}", steps, ())
        applied = await workflows.apply_workflow(self.services, account.id, flow)
        who = Principal(account)
        started = await starting.start_execution(self.services, who, applied.id, {}, **how)
        return started.execution_id

    async def approve(self, execution_id: str) -> None:
        """Approve the execution's open approval."""
        for approval in await approvals.approvals_of(self.services, OPERATOR, execution_id):
            asked = deciding.Decide(approval.id, Approve(), DecisionSource.API)
            await deciding.decide_approval(self.services, OPERATOR, asked)

    async def _account(self, email: str) -> Account:
        try:
            return await accounts.find_account(self.services, email)
        except NotFound:
            return await accounts.create_account(self.services, email, Tier.PRO)

    async def read(self, execution_id: str) -> Execution:
        return await executions.read_execution(self.services, OPERATOR, execution_id)

    async def until_status(self, execution_id: str, status: ExecutionStatus) -> Execution:
        """Return the execution as soon as it has *status*."""
        async with asyncio.timeout(PATIENCE_S):
            while (run := await self.read(execution_id)).status is not status:  # noqa: ASYNC110
                await asyncio.sleep(0.001)
        return run

    async def lose_lease(self, execution_id: str) -> None:
        """Let the lease expire before it is extended, and let a sweep find the expired lease."""
        async with asyncio.timeout(PATIENCE_S):
            while (await self.read(execution_id)).status is not ExecutionStatus.INTERRUPTED:
                self.clock.advance(self.services.policy.lease_ms + 1)
                await sweeping.recover(self.services)


async def until(holds: Callable[[], object]) -> None:
    """Wait until *holds* returns true."""
    async with asyncio.timeout(PATIENCE_S):
        while not holds():  # noqa: ASYNC110 - polls what has no event
            await asyncio.sleep(0.001)


Dispatch: TypeAlias = Callable[[Services, JobRunner, str], Worker]
"""A function that makes a worker from services, a runner and the worker's name."""


@frozen
class RunningWorker:
    """A running worker and its runner."""

    worker: Worker
    runner: HeldRunner

    @property
    def runs(self) -> Sequence[tuple[str, str]]:
        """The execution id and step name of each running step."""
        return names(self.runner.running)

    async def until_runs(self, *steps: tuple[str, str]) -> None:
        """Wait until exactly these steps run."""
        await until(lambda: sorted(self.runs) == sorted(steps))

    async def stop(self, drain_s: float) -> None:
        async with asyncio.timeout(2 * PATIENCE_S):
            await self.worker.stop(drain_s)


def names(jobs: Sequence[Job]) -> Sequence[tuple[str, str]]:
    """The execution id and step name of each job."""
    return [(job.execution_id, job.step_name) for job in jobs]


@asynccontextmanager
async def at_work(
    site: Site, dispatch: Dispatch, runner: HeldRunner | None = None, name: str = "w1"
) -> AsyncIterator[RunningWorker]:
    """A worker that runs until the end of the block and is then stopped."""
    held = runner or HeldRunner()
    worker = dispatch(site.services, held, name)
    loop = asyncio.create_task(worker.run())
    work = RunningWorker(worker, held)
    try:
        yield work
    finally:
        await work.stop(0)
        async with asyncio.timeout(PATIENCE_S):
            await loop
