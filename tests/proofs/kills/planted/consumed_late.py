"""How to plant a timer that is consumed after the start it stands for, in another unit of work."""

from typing import Any

from attrs import define, field

from tests.proofs.kills import faults
from wfcore.model.trigger import Timer, Trigger, TriggerSpec
from wfcore.usecases.services import Services
from wfcore.usecases.workflows import firing


@define
class _Unit:
    """A unit that notes what is to become of timers, and does not do it."""

    unit: Any
    asked: list[tuple[str, Any]] = field(factory=list)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.unit, name)

    def put(self, record: Any) -> None:
        self._note("put", record)

    def delete(self, record: Any) -> None:
        self._note("delete", record)

    def _note(self, verb: str, record: Any) -> None:
        if isinstance(record, Timer):
            self.asked.append((verb, record))
        else:
            getattr(self.unit, verb)(record)


def consume_late(kind: type[TriggerSpec]) -> None:
    """
    Let triggers of this kind start first. The fault: the server stops when the start is stored
    and the timer is still there.
    """
    faults.expect()
    consumed, fire = firing._consumed, firing._fire
    kept: list[_Unit] = []

    async def later(services: Services, unit: Any, timer: Any, trigger: Trigger, *more: Any) -> Any:
        if not isinstance(trigger.spec, kind):
            return await consumed(services, unit, timer, trigger, *more)
        kept.append(_Unit(unit))
        return await consumed(services, kept[-1], timer, trigger, *more)

    async def start_first(services: Services, *args: Any) -> Any:
        fired = await fire(services, *args)
        while kept:
            if fired.execution_id is not None:
                faults.freeze("")
            async with services.store.unit() as unit:
                for verb, record in kept.pop().asked:
                    getattr(unit, verb)(record)
                await unit.commit()
        return fired

    firing._consumed, firing._fire = later, start_first  # type: ignore[assignment]
