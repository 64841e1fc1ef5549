"""Bugs to plant in the state of workflows. See `planted`."""

from contextlib import suppress
from typing import Any

import pytest

from wfcore.errors import Stale, StoreUnavailable
from wfcore.model.execution import Execution
from wfcore.ports.runtime import StepEnd
from wfcore.rules.masking import NO_SECRETS
from wfcore.usecases.executions import worker
from wfcore.usecases.executions.worker import Lease
from wfcore.usecases.executions.writing_state import WrittenState, written_state
from wfcore.usecases.services import Services
from wfcore.usecases.unit_of_work import definition_of


def state_in_a_unit_of_its_own(patch: pytest.MonkeyPatch) -> None:
    """What a step wrote is stored first, its result afterwards: a repeated end writes it twice."""
    complete = worker.complete_step

    async def completes(
        services: Services, lease: Lease, step: str, end: StepEnd, **more: Any
    ) -> Any:
        with suppress(Stale, StoreUnavailable):
            async with services.store.unit() as unit:
                run = await unit.get(Execution, lease.execution_id)
                assert run is not None
                definition = await definition_of(unit, run.workflow_id, run.revision)
                found = await written_state(unit, run, definition, end, NO_SECRETS)
                if found.state is not None:
                    unit.put(found.state)
                    await unit.commit()
        return await complete(services, lease, step, end, **more)

    patch.setattr(worker, "complete_step", completes)


def state_is_forgotten(patch: pytest.MonkeyPatch) -> None:
    """The result of a step is stored without the state that the step wrote."""

    async def forgets(view: Any, run: Any, definition: Any, end: StepEnd, *more: Any) -> Any:
        return WrittenState(end)

    patch.setattr(worker, "written_state", forgets)
