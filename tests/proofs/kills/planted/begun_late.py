"""
A step is on record as begun only when its process has spoken already. EX-3.

The fault: the server stops when the process has spoken and the record is not stored.
"""

import asyncio
from contextlib import suppress
from typing import Any

from attrs import define, evolve, field

from tests.proofs.kills import faults
from wfcore.errors import Stale
from wfcore.ports.runtime import StepJob
from wfcore.usecases.executions import worker
from wfcore.usecases.executions.worker import Lease, Work
from wfcore.usecases.services import Services


@define
class _LateStore:
    """A store whose units keep what was committed until it is asked for."""

    store: Any
    kept: list[Any] = field(factory=list)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.store, name)

    def unit(self) -> "_LateUnit":
        return _LateUnit(self.store.unit(), self.kept)

    async def commit(self) -> None:
        """Store everything."""
        with suppress(Stale):
            for unit in self.kept:
                await unit.commit()


@define
class _LateUnit:
    entered: Any
    kept: list[Any]
    unit: Any = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self.unit, name)

    async def __aenter__(self) -> "_LateUnit":
        self.unit = await self.entered.__aenter__()
        return self

    async def __aexit__(self, *_: object) -> None:
        """Nothing: the unit goes on."""

    async def commit(self) -> None:
        self.kept.append(self.unit)


def plant() -> None:
    faults.expect()
    record, complete = worker.begin, worker.complete_step
    late: dict[Lease, asyncio.Task[None]] = {}

    async def begin(services: Services, lease: Lease) -> Work:
        store = _LateStore(services.store)
        work = await record(evolve(services, store=store), lease)
        jobs = [job for job in work.jobs if isinstance(job, StepJob)]
        if jobs:
            late[lease] = asyncio.create_task(_store_late(store, jobs[0], faults.spoken(jobs[0])))
        else:
            await store.commit()
        return work

    async def complete_step(services: Services, lease: Lease, *args: Any, **more: Any) -> Any:
        if lease in late:
            await late[lease]
        return await complete(services, lease, *args, **more)

    worker.begin, worker.complete_step = begin, complete_step


async def _store_late(store: _LateStore, job: StepJob, before: int) -> None:
    while faults.spoken(job) == before:  # noqa: ASYNC110
        await asyncio.sleep(faults.SOON_S)
    faults.freeze("")
    await store.commit()
