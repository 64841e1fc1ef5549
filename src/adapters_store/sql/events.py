"""
Reading events of executions, and output lines, which have the form of events.

Packed events are in the cell of their execution; later events are rows.
"""
# ruff: noqa: S608 - only constant text of this package is put together

from collections.abc import Sequence

from attrs import define

from adapters_store.sql.cells import Cells, Row, value_of
from adapters_store.sql.packing import LAST_OF_CELL, entries_of, number_bytes, parts_of
from adapters_store.sql.queries import query
from adapters_store.sql.unit_of_work import SqlUnitOfWork
from wfcore.model.event import Event, EventKind
from wfcore.time import EpochMs

_ROWS = """SELECT execution_id, number, at, kind, data, execution_id || '/' || number AS key
    FROM {} WHERE execution_id = ? AND number > ?"""
_LOGS = _ROWS.format("logs") + " ORDER BY number"
_EVENTS = f"""{_ROWS.replace("data,", "data, NULL AS packed,").format("events")}
    UNION ALL SELECT id, 0, 0, '', '', packed, id FROM executions
    WHERE id = ? AND packed IS NOT NULL AND {LAST_OF_CELL.format("packed")} > ? ORDER BY number"""
"""
The query for packed events, which come first, and events in rows. One statement, so that no packing
happens between two reads.
"""


def _event(row: Row, cells: Cells) -> Event:
    id, number, at, kind, data, _ = row
    return Event(id, number, EpochMs(at), EventKind(kind), value_of(cells.opened(data, "data")))


def _events(row: Row, cells: Cells) -> Sequence[Event]:
    """The events of a packed execution, or the event of one row."""
    *row, packed, id = row
    if packed is None:
        return (_event((*row, id), cells),)
    parts = parts_of(packed, cells.sealer, id)
    return [
        Event(id, number, EpochMs(at), EventKind(kind), data)
        for number, (at, kind, data) in enumerate(entries_of(parts), 1)
    ]


@define(eq=False)
class Events:
    unit: SqlUnitOfWork

    async def of_execution(self, execution_id: str, after: int, limit: int) -> Sequence[Event]:
        values = (execution_id, after, execution_id, number_bytes(after))
        found, offset = query(_EVENTS, *values), 0
        while True:
            rows = await self.unit.rows(found.part(limit, offset))
            several = self.unit.readable("events", _events, rows)
            events = [one for some in several for one in some if one.number > after]
            if events or len(rows) < limit:
                return events[:limit]
            offset += limit


@define(eq=False)
class Logs:
    """Output lines, which have the form of events."""

    unit: SqlUnitOfWork

    async def of_execution(self, execution_id: str, after: int, limit: int) -> Sequence[Event]:
        found = query(_LOGS, execution_id, after)
        return await self.unit.some("logs", _event, found, limit)
