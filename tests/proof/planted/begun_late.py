"""A step is on record as begun only some time after it was started. EX-3."""

import asyncio
from typing import Any

from wfcore.effects import StartStep
from wfcore.rules import execution_machine as facts
from wfcore.usecases import running
from wfcore.usecases.running import Lease, Work
from wfcore.usecases.services import Services

LATE_S = 0.3


def plant() -> None:
    record, complete = running.begin, running.complete_step
    recordings: dict[str, asyncio.Task[Work]] = {}

    async def record_late(services: Services, lease: Lease) -> Work:
        await asyncio.sleep(LATE_S)
        return await record(services, lease)

    async def begin(services: Services, lease: Lease) -> Work:
        async with services.store.unit() as unit:
            run, definition = await running._held(unit, lease)
            now = services.clock.now()
            outcome = running._proceed(services, run, definition, now, facts.Claimed())
        steps = [one for one in outcome.effects if isinstance(one, StartStep)]
        if not steps:
            return await record(services, lease)
        recordings[lease.execution_id] = asyncio.create_task(record_late(services, lease))
        job = running._job(services, lease, definition, outcome.record, steps[0])
        return Work((job,), frozenset({job.step_name}))

    async def complete_step(services: Services, lease: Lease, *args: Any, **more: Any) -> Any:
        if recording := recordings.pop(lease.execution_id, None):
            await recording
        return await complete(services, lease, *args, **more)

    running.begin, running.complete_step = begin, complete_step
