"""What starts workflows by itself: triggers and their timers."""
# ruff: noqa: S608 - only constant text of this package is put together

from collections.abc import Collection, Sequence

from attrs import define

from adapters_store.sqlite.kinds import TIMERS, TRIGGERS
from adapters_store.sqlite.queries import Listing, query
from adapters_store.sqlite.unit_of_work import UnitOfWork
from wfcore.model.page import Page, PageRequest
from wfcore.model.trigger import Timer, Trigger
from wfcore.time import EpochMs

TRIGGER_PAGES = Listing("triggers")


@define(eq=False)
class Triggers:
    unit: UnitOfWork

    async def get(self, id: str) -> Trigger | None:
        return await self.unit.one(TRIGGERS.one, (id,))

    async def list(self, page: PageRequest) -> Page[Trigger]:
        found = TRIGGER_PAGES.page("1 = 1", (), page, "triggers")
        return await self.unit.page(TRIGGERS.table, TRIGGERS.decode, found, page)

    async def of_workflow(self, workflow_id: str) -> Sequence[Trigger]:
        sql = "SELECT version, body, id FROM triggers WHERE workflow_id = ? ORDER BY created_at, id"
        return await self.unit.few(TRIGGERS, query(sql, workflow_id, tables="triggers"))

    async def watching(self, keys: Collection[str]) -> Sequence[Trigger]:
        marks = ", ".join("?" for _ in keys)
        sql = f"""SELECT version, body, id FROM triggers WHERE watches IN ({marks})
            ORDER BY created_at, id"""
        return await self.unit.few(TRIGGERS, query(sql, *keys, tables="triggers"))

    def put(self, record: Trigger) -> None:
        self.unit.put(TRIGGERS, record)

    def delete(self, record: Trigger) -> None:
        self.unit.delete(TRIGGERS, (record.id,), TRIGGERS.drop(record))
        sql = "DELETE FROM timers WHERE trigger_id = ?"
        self.unit.write("timers", (sql, (record.id,), None))


@define(eq=False)
class Timers:
    unit: UnitOfWork

    async def get(self, id: str) -> Timer | None:
        return await self.unit.one(TIMERS.one, (id,))

    async def due(self, now: EpochMs, limit: int) -> Sequence[Timer]:
        sql = "SELECT version, body, id FROM timers WHERE due_at <= ? ORDER BY due_at, id"
        found = query(sql, now, tables="timers")
        return await self.unit.some("timers", TIMERS.decode, found, limit)

    async def next_due(self) -> EpochMs | None:
        return await self._earliest("SELECT min(due_at) FROM timers")

    async def next_of(self, trigger_id: str) -> EpochMs | None:
        return await self._earliest(
            "SELECT min(due_at) FROM timers WHERE trigger_id = ?", trigger_id
        )

    async def _earliest(self, sql: str, *values: str) -> EpochMs | None:
        found = (await self.unit.few_rows(query(sql, *values, tables="timers")))[0][0]
        return None if found is None else EpochMs(found)

    def put(self, record: Timer) -> None:
        self.unit.put(TIMERS, record)

    def delete(self, record: Timer) -> None:
        self.unit.delete(TIMERS, (record.id,), TIMERS.drop(record))
