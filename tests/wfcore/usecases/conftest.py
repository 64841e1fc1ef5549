"""A small world around the use cases: a store, a clock to turn, and shortcuts to act in it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from attrs import frozen

from adapters_runtime.cron import CronCalendar
from adapters_store import open_store
from adapters_store.files import LocalFiles
from wfcore.model.access import Account, Principal, Scope, Tier
from wfcore.model.json import Json
from wfcore.model.workflow import ApprovalStep, CodeStep, Definition, GroupSpec, Language, Step
from wfcore.ports.runtime import StepEnd, StepJob
from wfcore.testing.fakes import (
    CountingIds,
    CountingTokens,
    ManualClock,
    NotedHints,
    PathTemplates,
    PlainPasswords,
)
from wfcore.usecases.accounts import accounts, keys
from wfcore.usecases.executions import starting
from wfcore.usecases.executions import worker as running
from wfcore.usecases.services import Policy, Services
from wfcore.usecases.workflows import workflows


def code(name: str, **more: object) -> CodeStep:
    return CodeStep(name, Language.BASH, ":", **more)  # type: ignore[arg-type]


def review(rows: Json = (), **more: object) -> ApprovalStep:
    group = GroupSpec("rows", "Rows", list(rows))  # type: ignore[arg-type]
    return ApprovalStep("review", "Look", groups=(group,), **more)  # type: ignore[arg-type]


@frozen
class World:
    """Services, and the few things that nearly every test does first."""

    services: Services
    clock: ManualClock
    hints: NotedHints

    async def account(self, email: str = "ann@example.org", plan: Tier = Tier.PRO) -> Principal:
        return Principal(await accounts.create_account(self.services, email, plan))

    async def key(self, account: Account, *scopes: Scope) -> str:
        wanted = scopes or Scope.ordinary()
        return (await keys.create_key(self.services, account.id, "key", wanted)).text

    async def workflow(
        self, who: Principal, *steps: Step, name: str = "flow", **more: object
    ) -> str:
        definition = Definition(name, steps, (), **more)  # type: ignore[arg-type]
        return (await workflows.apply_workflow(self.services, who.account.id, definition)).id

    async def start(self, who: Principal, workflow_id: str, **more: object) -> str:
        started = await starting.start_execution(
            self.services,
            who,
            workflow_id,
            {},
            **more,  # type: ignore[arg-type]
        )
        return started.execution_id

    async def take(self, worker: str = "w1") -> tuple[running.Lease, tuple[StepJob, ...]]:
        """Claim the one execution that is due, and begin it; nobody need take a light one. EX-34"""
        leases = await running.claim(self.services, worker, 1)
        if not leases:
            return running.Lease(worker, "", 0), ()
        return leases[0], (await running.begin(self.services, leases[0])).jobs

    def done(self, output: Json = None) -> StepEnd:
        return StepEnd(output)

    def failed(self, error: str) -> StepEnd:
        return StepEnd(error=error)

    async def finish(
        self,
        lease: running.Lease,
        step: str,
        output: Json = None,
        *,
        attempt: int | None = None,
        **end: object,
    ) -> tuple[StepJob, ...]:
        done = StepEnd(output, **end)  # type: ignore[arg-type]
        work = await running.complete_step(self.services, lease, step, done, attempt=attempt)
        return work.jobs


@asynccontextmanager
async def a_world(url: str | None, folder: Path) -> AsyncIterator[World]:
    clock, hints = ManualClock(), NotedHints()
    opened = await open_store(url, folder, now=clock.service_now)
    services = Services(
        store=opened.store,
        counters=opened.counters,
        files=LocalFiles(folder / "artifacts"),
        clock=clock,
        ids=CountingIds(),
        tokens=CountingTokens(),
        passwords=PlainPasswords(),
        templates=PathTemplates(),
        wakeup=hints,
        signing_key=b"k" * 32,
        policy=Policy(),
        calendar=CronCalendar(),
    )
    try:
        yield World(services, clock, hints)
    finally:
        await opened.counters.close()
        await opened.store.close()


@pytest.fixture(params=["memory:", None], ids=["memory", "sqlite"])
async def world(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[World]:
    async with a_world(request.param, tmp_path) as made:
        yield made
