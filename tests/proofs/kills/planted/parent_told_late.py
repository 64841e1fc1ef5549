"""
A child's end and what its parent learns of it are two units of work. FL-6.

The fault: the server stops between the two.
"""

from typing import Any

from tests.proofs.kills import faults
from wfcore.model.execution import Execution
from wfcore.rules.execution.children import waits_for
from wfcore.time import EpochMs
from wfcore.usecases import unit_of_work
from wfcore.usecases.executions import worker
from wfcore.usecases.services import Services
from wfcore.usecases.unit_of_work import retried


def plant() -> None:
    faults.expect()
    complete, tell = worker.complete_step, unit_of_work._tell_parent
    late: list[tuple[Any, ...]] = []

    async def keep(_: Any, *told: Any) -> tuple[()]:
        late.append(told)
        return ()

    async def complete_step(services: Services, *args: Any, **more: Any) -> Any:
        work = await complete(services, *args, **more)
        while late:
            await tell_parent(services, *late.pop())
        return work

    @retried
    async def tell_parent(
        services: Services, parent_id: str, child: Execution, now: EpochMs
    ) -> None:
        async with services.store.unit() as unit:
            parent = await unit.get(Execution, parent_id)
            if parent is not None and waits_for(parent, child.id, child.parent_step):
                faults.freeze("")
            await tell(unit, parent_id, child, now)
            await unit.commit()

    unit_of_work._tell_parent = keep  # type: ignore[assignment]
    worker.complete_step = complete_step
