"""What starts workflows by itself, in memory: triggers and their timers."""

from collections.abc import Collection, Sequence

from attrs import frozen

from wfcore.memory.overlay import Overlay
from wfcore.memory.tables import TIMERS, TRIGGERS, UnitOfWork, cut, newest
from wfcore.model.page import Page, PageRequest
from wfcore.model.trigger import Timer, Trigger
from wfcore.time import EpochMs


@frozen
class Triggers:
    unit: UnitOfWork

    async def get(self, id: str) -> Trigger | None:
        return await self.unit.one(TRIGGERS, id)

    async def list(self, page: PageRequest) -> Page[Trigger]:
        return cut(newest(await self.unit.select(TRIGGERS, lambda _: True)), page)

    async def of_workflow(self, workflow_id: str) -> Sequence[Trigger]:
        return newest(await self.unit.select(TRIGGERS, lambda t: t.workflow_id == workflow_id))[
            ::-1
        ]

    async def watching(self, keys: Collection[str]) -> Sequence[Trigger]:
        return newest(await self.unit.select(TRIGGERS, lambda t: t.watches in keys))[::-1]

    def put(self, record: Trigger) -> None:
        self.unit.put(TRIGGERS, record.id, record)

    def delete(self, record: Trigger) -> None:
        def change(overlay: Overlay) -> None:
            overlay.drop(TRIGGERS, record.id, record)
            for timer in overlay.all(TIMERS):
                if timer.trigger_id == record.id:
                    overlay.set(TIMERS, timer.id, None)

        self.unit.collect(change)


@frozen
class Timers:
    unit: UnitOfWork

    async def get(self, id: str) -> Timer | None:
        return await self.unit.one(TIMERS, id)

    async def due(self, now: EpochMs, limit: int) -> Sequence[Timer]:
        found = await self.unit.select(TIMERS, lambda timer: timer.due_at <= now)
        return sorted(found, key=lambda timer: (timer.due_at, timer.id))[:limit]

    async def next_due(self) -> EpochMs | None:
        found = await self.unit.select(TIMERS, lambda _: True)
        return min((timer.due_at for timer in found), default=None)

    async def next_of(self, trigger_id: str) -> EpochMs | None:
        found = await self.unit.select(TIMERS, lambda timer: timer.trigger_id == trigger_id)
        return min((timer.due_at for timer in found), default=None)

    def put(self, record: Timer) -> None:
        self.unit.put(TIMERS, record.id, record)

    def delete(self, record: Timer) -> None:
        self.unit.collect(lambda overlay: overlay.drop(TIMERS, record.id, record))
