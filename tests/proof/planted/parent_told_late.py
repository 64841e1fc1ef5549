"""
A child's end and what its parent learns of it are two units of work. FL-6.

The fault: the server stops between the two.
"""

from typing import Any

from proof import faults
from wfcore.usecases import _apply, running
from wfcore.usecases.services import Services


def plant() -> None:
    complete, tell = running.complete_step, _apply._tell_parent
    late: list[tuple[Any, ...]] = []

    async def keep(_: Any, *told: Any) -> tuple[()]:
        late.append(told)
        return ()

    async def complete_step(services: Services, *args: Any, **more: Any) -> Any:
        work = await complete(services, *args, **more)
        while late:
            faults.freeze("")
            async with services.store.unit() as unit:
                await tell(unit, *late.pop())
                await unit.commit()
        return work

    _apply._tell_parent = keep  # type: ignore[assignment]
    running.complete_step = complete_step
