"""What the dispatcher's contract acts in: services over memory, and shortcuts to use them."""

import asyncio
from collections.abc import Callable
from typing import Any, TypeVar

from attrs import define, evolve

from wfcore.errors import NotFound, StoreUnavailable
from wfcore.memory import MemoryStore
from wfcore.model.access import Account, Plan, Principal
from wfcore.model.execution import Execution, ExecutionStatus
from wfcore.model.workflow import CodeStep, Definition, Language
from wfcore.ports.dispatch import Wakeup
from wfcore.testing.fakes import (
    CountingIds,
    CountingTokens,
    ManualClock,
    NotedHints,
    PathTemplates,
    PlainPasswords,
)
from wfcore.testing.fakes_running import DictFiles, counters_in_memory
from wfcore.usecases import accounts, executions, starting, sweeping, workflows
from wfcore.usecases.services import Policy, Services

R = TypeVar("R")

PATIENCE_S = 30
"""After so long, what should have come by itself does not come."""


@define
class Weather:
    """A `Gate` that lets others run first, and refuses the next writes where it is told to."""

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
    """Services whose store and time are in the hands of the test."""

    services: Services
    clock: ManualClock
    weather: Weather

    @classmethod
    def made(cls, wakeup: Wakeup) -> "Site":
        clock, weather = ManualClock(), Weather()
        services = Services(
            store=MemoryStore(weather),
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
        """The same site under another policy."""
        policy: Policy = evolve(self.services.policy, **changes)
        return evolve(self, services=evolve(self.services, policy=policy))

    def deaf(self) -> "Site":
        """The same store seen by another process: its hints do not come here."""
        return evolve(self, services=evolve(self.services, wakeup=NotedHints()))

    async def start(self, steps: int = 1, email: str = "ann@example.org", **how: Any) -> str:
        """Start an execution of so many steps, named s0, s1 and so on; its id."""
        account = await self._account(email)
        flow = tuple(CodeStep(f"s{number}", Language.BASH, ":") for number in range(steps))
        applied = await workflows.apply_workflow(
            self.services, account.id, Definition(f"flow {steps}", flow, ())
        )
        who = Principal(account)
        return (
            await starting.start_execution(self.services, who, applied.id, {}, **how)
        ).execution_id

    async def _account(self, email: str) -> Account:
        try:
            return await accounts.find_account(self.services, email)
        except NotFound:
            return await accounts.create_account(self.services, email, Plan.PRO)

    async def read(self, execution_id: str) -> Execution:
        return await executions.read_execution(self.services, None, execution_id)

    async def until_status(self, execution_id: str, status: ExecutionStatus) -> Execution:
        """The execution as soon as it has that status."""
        async with asyncio.timeout(PATIENCE_S):
            while (run := await self.read(execution_id)).status is not status:  # noqa: ASYNC110
                await asyncio.sleep(0.001)
        return run

    async def lose_lease(self, execution_id: str) -> None:
        """Let the lease end before anybody extends it, and have that found out."""
        async with asyncio.timeout(PATIENCE_S):
            while (await self.read(execution_id)).status is not ExecutionStatus.INTERRUPTED:
                self.clock.advance(self.services.policy.lease_ms + 1)
                await sweeping.recover(self.services)


async def until(holds: Callable[[], object]) -> None:
    """Wait for a condition that something beside the test brings about."""
    async with asyncio.timeout(PATIENCE_S):
        while not holds():  # noqa: ASYNC110 - polls what has no event
            await asyncio.sleep(0.001)
