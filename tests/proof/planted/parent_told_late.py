"""
A child's end and what its parent learns of it are two units of work. FL-6.

The fault: the server stops between the two.
"""

from typing import Any

from proof import faults
from wfcore.instants import EpochMs
from wfcore.model.execution import Execution
from wfcore.rules.family import waits_for
from wfcore.usecases import _apply, running
from wfcore.usecases._retry import retried
from wfcore.usecases.services import Services


def plant() -> None:
    faults.expect()
    complete, tell = running.complete_step, _apply._tell_parent
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
            parent = await unit.executions.get(parent_id)
            if parent is not None and waits_for(parent, child.id, child.parent_step):
                faults.freeze("")
            await tell(unit, parent_id, child, now)
            await unit.commit()

    _apply._tell_parent = keep  # type: ignore[assignment]
    running.complete_step = complete_step
