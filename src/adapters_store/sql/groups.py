"""
Concurrency groups: the transaction that claims counts rows to see whether a group has room.

A new execution is queued if its group is full (see `execution_rows`). Every change that may make
room (an end, another limit) marks the group in the same transaction; the next claim counts only the
marked groups, so the cost of a claim does not depend on how many executions wait.
"""
# ruff: noqa: S608 - only constant text of this package is put together

from attrs import define

from adapters_store.sql.execution_rows import GROUP_OPEN
from adapters_store.sql.queries import query
from adapters_store.sql.unit_of_work import SqlUnitOfWork

OPEN = GROUP_OPEN.format("?")
COUNT = f"SELECT count(*) FROM executions WHERE {OPEN}"
HELD = f"{COUNT} AND queued = 0 AND fence > 0"
LIMIT = f"""SELECT at_once FROM group_limits WHERE workflow_id =
    (SELECT workflow_id FROM executions WHERE {OPEN} LIMIT 1)"""
INSIDE = f"""SELECT due_at, id, queued FROM executions
    WHERE {OPEN} AND queued = 0 AND fence = 0"""
FIRST_WAITING = f"""SELECT due_at, id, queued FROM executions
    WHERE {OPEN} AND queued = 1 ORDER BY due_at, id LIMIT ?"""
EVERYBODY = 1 << 31


SET_LIMIT = """INSERT INTO group_limits (workflow_id, at_once) VALUES (?, ?)
    ON CONFLICT (workflow_id) DO UPDATE SET at_once = excluded.at_once"""
NO_LIMIT = "DELETE FROM group_limits WHERE workflow_id = ?"
MARK_ALL = """INSERT INTO group_checks (concurrency_group)
    SELECT DISTINCT concurrency_group FROM executions
    WHERE workflow_id = ? AND concurrency_group IS NOT NULL
    AND status NOT IN ('COMPLETED', 'FAILED', 'CANCELLED')
    ON CONFLICT (concurrency_group) DO NOTHING"""
HAS_ROOM = f"SELECT 1 WHERE ({COUNT}) < ?"
"""The condition that the group has room."""


@define(eq=False)
class Groups:
    unit: SqlUnitOfWork

    async def unfinished(self, group: str) -> int:
        return await self._count(COUNT, group)

    async def held(self, group: str) -> int:
        return await self._count(HELD, group)

    async def _count(self, sql: str, group: str) -> int:
        found = await self.unit.few_rows(query(sql, group))
        return int(found[0][0])
