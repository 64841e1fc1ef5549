"""The job that packs ended executions, and the reads of their rows."""
# ruff: noqa: S608 - only constant text of this package is put together

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from attrs import frozen

from adapters_store.sql.cells import Cells, Row, text_of, value_of
from adapters_store.sql.packing import CellParts, Entry, cell_of, entries_of, parts_of
from adapters_store.sql.queries import Query, query
from adapters_store.sqlite.connection import Cursor, DriverError, is_no_text
from wfcore.ports.system import Sealer
from wfcore.time import MINUTE, EpochMs, later

LAG = MINUTE
"""The time after which followers have seen the end, and late writers have written."""


MOST_BYTES = 16 << 10
"""The most bytes of rows that are packed: lists have to open a whole cell."""


def _events_text(entries: Sequence[Entry]) -> str:
    """The text of *entries*; each entry has the time since the previous entry."""
    found: list[list[Any]] = []
    before = 0
    for at, kind, data in entries:
        found.append([at - before, kind, data] if data else [at - before, kind])
        before = at
    return text_of(found)


_SIZE = """length(r.body) + coalesce(length(r.output), 0)
    + coalesce((SELECT sum(length(s.body) + coalesce(length(s.output), 0)
        + coalesce(length(s.items), 0)) FROM step_results s WHERE s.execution_id = r.id), 0)
    + coalesce((SELECT length(v.body) + coalesce(length(v.cause), 0)
        FROM execution_variables v WHERE v.execution_id = r.id), 0)
    + coalesce((SELECT sum(length(e.data)) FROM events e WHERE e.execution_id = r.id), 0)"""


def ended_next(now: EpochMs, limit: int) -> Query:
    """
    Up to *limit* executions behind the mark, in the order of their ends: the instant, the id, and
    the approximate number of characters of their rows; 0 for a packed execution.
    """
    sql = f"""SELECT r.completed_at, r.id,
        CASE WHEN r.packed IS NOT NULL AND r.body = '' THEN 0 ELSE {_SIZE} END
        FROM executions r WHERE (r.completed_at, r.id) > (SELECT completed_at, id FROM packing_mark)
        AND r.completed_at < ? ORDER BY r.completed_at, r.id LIMIT ?"""
    return query(sql, later(now, -LAG), limit)


_THESE = "(SELECT value FROM json_each(?))"


_HEADS = f"""SELECT id, body, callback_url, output, packed FROM executions
    WHERE id IN {_THESE} AND status IN ('COMPLETED', 'FAILED', 'CANCELLED')"""


_STEPS = f"""SELECT execution_id, position, body, output, items FROM step_results
    WHERE execution_id IN {_THESE} ORDER BY execution_id, position"""


_VARIABLES = f"""SELECT execution_id, body, cause FROM execution_variables
    WHERE execution_id IN {_THESE}"""


_EVENTS = f"""SELECT execution_id, number, at, kind, data FROM events
    WHERE execution_id IN {_THESE} ORDER BY execution_id, number"""


_PUT = """UPDATE executions SET body = '', callback_url = NULL, output = NULL, packed = ?
    WHERE id = ?"""


_DROP = tuple(
    f"DELETE FROM {table} WHERE execution_id IN {_THESE}"
    for table in ("step_results", "execution_variables", "events")
)


_MOVE_MARK = """UPDATE packing_mark SET completed_at = ?, id = ?
    WHERE (completed_at, id) < (?, ?)"""


@frozen
class Pack:
    """A job that packs the executions *ids*, and moves the mark to *mark*."""

    ids: Sequence[str]
    mark: tuple[int, str]
    sealer: Sealer | None

    @classmethod
    def of(cls, found: Sequence[Row], sealer: Sealer | None) -> "Pack":
        """The job for those rows of `ended_next` that fit in a cell."""
        ids = [id for _, id, size in found if 0 < size <= MOST_BYTES]
        return cls(ids, (found[-1][0], found[-1][1]), sealer)

    def __call__(self, cursor: Cursor) -> None:
        pack(cursor, self.ids, self.sealer, self.sealer)
        cursor.execute(_MOVE_MARK, self.mark * 2)


def pack(
    cursor: Cursor, ids: Sequence[str], opener: Sealer | None, sealer: Sealer | None
) -> Sequence[str]:
    """
    Pack the executions of *ids* that have ended, seal them with *sealer*, and return their ids.
    *opener* opens their rows. An execution that is packed already, or cannot be read, stays
    unchanged.
    """
    values = (text_of(list(ids)),)
    try:
        heads = cursor.execute(_HEADS, values).fetchall()
        steps, variables, events = (
            _by_execution(cursor.execute(sql, values)) for sql in (_STEPS, _VARIABLES, _EVENTS)
        )
    except DriverError as error:
        if not is_no_text(error):
            raise
        return (
            []
            if len(ids) == 1
            else [one for id in ids for one in pack(cursor, [id], opener, sealer)]
        )
    cells: list[tuple[bytes, str]] = []
    for id, *head in heads:
        if head[0] or id in events:
            with suppress(Exception):  # whatever a broken record raises: its reader names it
                rows = steps.get(id, ()), variables.get(id, ()), events.get(id, ())
                parts, last = _packed(id, head, *rows, opener)
                cells.append((cell_of(parts, last, sealer, id), id))
    cursor.executemany(_PUT, cells)
    done = [id for _, id in cells]
    for sql in _DROP:
        cursor.execute(sql, (text_of(done),))
    return done


def _by_execution(rows: Iterable[Row]) -> Mapping[str, Sequence[Row]]:
    """*rows* grouped by their first value; the rows in the groups lack that value."""
    found = defaultdict[str, list[Row]](list)
    for id, *row in rows:
        found[id].append(row)
    return found


def _packed(
    id: str,
    head: Row,
    steps: Sequence[Row],
    variables: Sequence[Row],
    events: Sequence[Row],
    opener: Sealer | None,
) -> tuple[CellParts, int]:
    """The parts of the cell, and the number of events in the cell."""
    body, url, output, cell = head
    old = None if cell is None else parts_of(cell, opener, id)
    entries = [] if old is None else entries_of(old)
    for number, at, kind, data in events:
        if number != len(entries) + 1:
            raise ValueError("an event is missing: its number could not be told from a packed one")
        opened = Cells(opener, "events", (id, number)).opened(data, "data")
        entries.append((at, kind, value_of(opened)))
    text = _events_text(entries)
    if not body and old is not None:
        return old._replace(events=text), len(entries)
    cells = Cells(opener, "executions", (id,))
    about = value_of(body)
    if url is not None:
        about["callback_url"] = value_of(cells.opened(url, "callback_url"))
    for given, cause in variables:
        about["variables"] = value_of(cells.opened(given, "body", "execution_variables"))
        if cause is not None:
            about["trigger"] = value_of(cells.opened(cause, "cause", "execution_variables"))
    results = [value_of(one) for _, one, *_ in steps]
    apart = [
        [_value(cells, output, "output", place), _value(cells, items, "items", place)]
        for place, _, output, items in steps
    ]
    more: dict[str, Any] = {}
    if output is not None:
        more["output"] = value_of(cells.opened(output, "output"))
    if any(value is not None for pair in apart for value in pair):
        more["steps"] = apart
    hidden = text_of(more) if more else ""
    return CellParts(text_of(about), text_of(results), hidden, text), len(entries)


def _value(cells: Cells, cell: str | None, column: str, position: int) -> Any:
    if cell is None or cell == "null":
        return None
    return value_of(cells.opened(cell, column, "step_results", position))
