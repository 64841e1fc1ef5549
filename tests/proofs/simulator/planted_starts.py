"""Bugs to plant in what starts by itself, and in limits of concurrency. See `planted`."""

from collections.abc import Sequence
from typing import Any

import pytest

from wfcore.memory import store as memory_store
from wfcore.memory import writes
from wfcore.memory.tables import TIMERS
from wfcore.model.trigger import Timer
from wfcore.usecases import unit_of_work
from wfcore.usecases.executions import worker
from wfcore.usecases.services import Services
from wfcore.usecases.workflows import firing


def timer_fires_before_it_goes(patch: pytest.MonkeyPatch) -> None:
    """A timer is deleted in a unit of its own, after what it started was stored."""
    fire = firing._fire

    async def fires(services: Services, unit: Any, timer: Timer, *more: Any) -> Any:
        unit._unit.changes.clear()
        unit._unit.overlay.changes.clear()
        fired = await fire(services, unit, timer, *more)
        async with services.store.unit() as after:
            after.delete(timer)
            await after.commit()
        return fired

    patch.setattr(firing, "_fire", fires)


def timers_in_a_unit_of_their_own(patch: pytest.MonkeyPatch) -> None:
    """A completion is stored first, and the timers of its chains afterwards."""
    late: list[Any] = []

    async def set_timers(unit: Any, run: Any) -> Sequence[Any]:
        late.append(run)
        return ()

    complete, set_at_once = worker.complete_step, unit_of_work._set_timers

    async def completes(services: Services, *args: Any, **more: Any) -> Any:
        jobs = await complete(services, *args, **more)
        while late:
            async with services.store.unit() as unit:
                await set_at_once(unit, late.pop())
                await unit.commit()
        return jobs

    patch.setattr(unit_of_work, "_set_timers", set_timers)
    patch.setattr(worker, "complete_step", completes)


def timer_id_by_chance(patch: pytest.MonkeyPatch) -> None:
    """
    The next timer of a schedule is stored without asking whether it is there, and what it starts
    has an id by chance, too: either alone is made good by the other.
    """

    put, delete = writes.put, writes.delete

    def set_timer(record: Any) -> Any:
        if not isinstance(record, Timer):
            return put(record)
        return lambda overlay: overlay.set(TIMERS, record.id, record)

    def forget_timer(record: Any) -> Any:
        if not isinstance(record, Timer):
            return delete(record)
        return lambda overlay: overlay.set(TIMERS, record.id, None)

    patch.setattr(writes, "put", set_timer)
    patch.setattr(writes, "delete", forget_timer)
    patch.setattr(firing, "start_id", lambda trigger, at: None)


def groups_are_ignored(patch: pytest.MonkeyPatch) -> None:
    """A claim does not ask how many of a workflow run already."""
    patch.setattr(memory_store, "waiting_in_groups", lambda runs, limits: frozenset())


def room_is_only_looked_at(patch: pytest.MonkeyPatch) -> None:
    """With `onLimit: skip` two starts that both see room are both stored."""
    patch.setattr(writes, "require_room", lambda group, at_once: lambda overlay: None)


def triggers_forget_their_inputs(patch: pytest.MonkeyPatch) -> None:
    """A trigger starts its workflow without its inputs, as if it had none."""
    patch.setattr(firing, "inputs_of", lambda spec, source, facts, render: {})
