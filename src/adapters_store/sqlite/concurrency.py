"""
Lanes: who comes in is counted from rows, in the transaction that claims.

A new execution queues up where its lane is full (see `execution_rows`). Whatever may let others
in (an end, another limit) marks the lane in the same transaction; the next claim counts the
marked lanes and nothing else, so that it costs the same however many executions wait.
"""
# ruff: noqa: S608 - only constant text of this package is put together

from attrs import define

from adapters_store.sqlite.connection import Cursor
from adapters_store.sqlite.execution_rows import LANE_OPEN
from adapters_store.sqlite.queries import query
from adapters_store.sqlite.unit_of_work import UnitOfWork

LANES_IN_A_CLAIM = 200

OPEN = LANE_OPEN.format("?")
COUNT = f"SELECT count(*) FROM executions WHERE {OPEN}"
HELD = f"{COUNT} AND queued = 0 AND fence > 0"
LIMIT = f"""SELECT at_once FROM lane_limits WHERE workflow_id =
    (SELECT workflow_id FROM executions WHERE {OPEN} LIMIT 1)"""
INSIDE = f"""SELECT due_at, id, queued FROM executions
    WHERE {OPEN} AND queued = 0 AND fence = 0"""
FIRST_WAITING = f"""SELECT due_at, id, queued FROM executions
    WHERE {OPEN} AND queued = 1 ORDER BY due_at, id LIMIT ?"""
EVERYBODY = 1 << 31

TURN = "UPDATE executions SET queued = 1 - queued WHERE id = ?"
MARK_ALL = """INSERT INTO lane_checks (lane) SELECT DISTINCT lane FROM executions
    WHERE workflow_id = ? AND lane IS NOT NULL
    AND status NOT IN ('COMPLETED', 'FAILED', 'CANCELLED') ON CONFLICT (lane) DO NOTHING"""
MARKED = "SELECT lane FROM lane_checks ORDER BY number LIMIT ?"
CHECKED = "DELETE FROM lane_checks WHERE lane = ?"

SET_LIMIT = """INSERT INTO lane_limits (workflow_id, at_once) VALUES (?, ?)
    ON CONFLICT (workflow_id) DO UPDATE SET at_once = excluded.at_once"""
NO_LIMIT = "DELETE FROM lane_limits WHERE workflow_id = ?"

HAS_ROOM = f"UPDATE pulse SET beats = beats WHERE ({COUNT}) < ?"
"""Touches the one row of `pulse` exactly where there is room."""


@define(eq=False)
class Lanes:
    unit: UnitOfWork

    async def unfinished(self, lane: str) -> int:
        return await self._count(COUNT, lane)

    async def held(self, lane: str) -> int:
        return await self._count(HELD, lane)

    async def _count(self, sql: str, lane: str) -> int:
        found = await self.unit.few_rows(query(sql, lane, tables="executions"))
        return int(found[0][0])

    def limit(self, workflow_id: str, at_once: int | None) -> None:
        if at_once is None:
            self.unit.write("lane_limits", (NO_LIMIT, (workflow_id,), None))
        else:
            self.unit.write("lane_limits", (SET_LIMIT, (workflow_id, at_once), None))
        self.unit.write("lane_checks", (MARK_ALL, (workflow_id,), None))

    def require_room(self, lane: str, at_once: int) -> None:
        self.unit.write("pulse", (HAS_ROOM, (lane, at_once), ("lanes", lane)))


def settle_lanes(cursor: Cursor) -> None:
    """Let in, in every marked lane, as many as there are places; send back who is too many."""
    for (lane,) in cursor.execute(MARKED, (LANES_IN_A_CLAIM,)).fetchall():
        _settle(cursor, lane)
        cursor.execute(CHECKED, (lane,))


def _settle(cursor: Cursor, lane: str) -> None:
    """Those that nobody has taken yet are inside exactly while they are the first in line."""
    at_once = cursor.execute(LIMIT, (lane,)).fetchone()
    held = cursor.execute(HELD, (lane,)).fetchone()[0]
    room = max(0, at_once[0] - held) if at_once else EVERYBODY
    inside = cursor.execute(INSIDE, (lane,)).fetchall()
    line = sorted(inside + cursor.execute(FIRST_WAITING, (lane, room)).fetchall())
    for place, (_, id, queued) in enumerate(line):
        if queued == (place < room):
            cursor.execute(TURN, (id,))
