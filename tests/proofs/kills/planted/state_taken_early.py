"""What a step wrote to the state is stored in a unit of its own, before the step's result. SV-3."""

import asyncio
from contextlib import suppress
from typing import Any

from wfcore.errors import Stale
from wfcore.model.execution import Execution
from wfcore.ports.runtime import StepEnd
from wfcore.rules.masking import NO_SECRETS
from wfcore.usecases.executions import worker
from wfcore.usecases.executions.worker import Lease
from wfcore.usecases.executions.writing_state import written_state
from wfcore.usecases.services import Services
from wfcore.usecases.unit_of_work import definition_of

BETWEEN_S = 1


def plant() -> None:
    complete = worker.complete_step

    async def completes(
        services: Services, lease: Lease, step: str, end: StepEnd, **more: Any
    ) -> Any:
        if end.state is not None:
            with suppress(Stale):
                async with services.store.unit() as unit:
                    run = await unit.get(Execution, lease.execution_id)
                    assert run is not None
                    definition = await definition_of(unit, run.workflow_id, run.revision)
                    found = await written_state(unit, run, definition, end, NO_SECRETS)
                    if found.state is not None:
                        unit.put(found.state)
                        await unit.commit()
            await asyncio.sleep(BETWEEN_S)
        return await complete(services, lease, step, end, **more)

    worker.complete_step = completes
