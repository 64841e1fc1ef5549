"""
Ended executions, packed: head, results, variables and events of each in one cell.

What has ended is hardly ever written again, and most of what its rows take up is said over and
over: names of fields, kinds of events, instants, keys and seals of cells. So `pack` replaces body,
output, callback URL, results, variables and events of an execution by one compressed and sealed
cell, `executions.packed`. Columns that lists and indexes look at stay as they are.

**The cell** is a header of five bytes (the version of the form, whose highest bit says whether the
rest is sealed; the number of the last event) and four lines of JSON, compressed with a dictionary
of typical text: the body with variables and callback URL; the results of the steps without what is
in `apart`; what lists do not show; the events.

**Rows say more than the cell.** As long as the body is empty, head and results are those of the
cell. A later put writes a body and every row, as it does over anything unknown, and then these
count. Events are those of the cell, followed by rows.

**Who packs** walks along the ends of executions behind a mark, a minute behind now. Where an
execution cannot be read, or takes up much, it stays as it is. Each is packed within one
transaction of the writer, from what is stored then: nobody can write in between.

One cell for several executions would halve the size again, but each deletion would rewrite the
others, and a page of a list would open fifty times as much.
"""
# ruff: noqa: S608 - only constant text of this package is put together

import zlib
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from attrs import frozen

from adapters_store.sqlite.connection import Cursor, DriverError, is_no_text
from adapters_store.sqlite.kinds import Cells, InClear, Row, cost_of, text_of, value_of
from adapters_store.sqlite.queries import Query, query
from wfcore.ports.system import Sealer
from wfcore.time import MINUTE, EpochMs, later

LAG = MINUTE
"""By then, followers have seen the end, and who was late has written."""
MOST_BYTES = 16 << 10
"""Rows that take up more stay as they are: lists would have to open all of it."""

FORM = 1
"""The form that is written, which is also the version of the dictionary."""
SEALED = 0x80
_HEADER = 5
_MOST_NUMBER = (1 << 32) - 1
_WINDOW_BITS, _LEVEL, _MEMORY = -12, 6, 5
"""Without a header or checksum, and with small tables, which take longer to make than to use. The
window, 4 KB, has room for the dictionary."""

_TYPICAL = {
    1: (
        b'"put_aside"1/"language:javascript""language:typescript""language:ruby""language:lua""ai"'
        b'"granted":"failing":{"secrets":["password"],"webhook_id":"wh_","key_id":"key_"'
        b'"concurrency_group":"wf_1a2/","trigger_id":"trg_1a2","chain_depth":1,"redrive_of":"exec_'
        b'"parent_id":"exec_1a2","parent_step":"","root_source":"open_api","resumes":1'
        b'"status_reason":"monitored":true,"request_id":"req_"trace":{"trace_id":"","span_id":"'
        b'"callback_url":"https://example.com/hook","refused":[{"name":"","size":"earlier":1,"case":0'
        b'"reason":"exit_code","child_id":"exec_1a2","awaits":"child","approval_id":"appr_1a2'
        b'"usage":{"input_tokens":100,"output_tokens":10,"cost_usd":"0.001"},"attempt_at":1795'
        b'"SKIPPED","CANCELLED","error":"exited with code 1","outputs_size":10,"variables":{"'
        b'{"workflow_name":"flow","workflow_owner_id":"acc_1a2","revision":1,"total_steps":3,'
        b'"events":9,"capabilities":["language:python"]"language:bash"]}\n'
        b'[{"name":"s0","status":"FAILED","started_at":1795,"error":"'
        b'[{"name":"a","status":"COMPLETED","started_at":1795,"attempts":1,"steps":1,'
        b'"completed_at":1795},{"name":"b","status":"COMPLETED","started_at":17956,"attempts":1,'
        b'"steps":1,"completed_at":17956}]\n'
        b'{"output":{"rows":[{"id":1,"name":"","value":true}],"steps":[[null,null],[{"ok":true},'
        b'null],["",null]]}\n"approval.assented","approval.delegated","approval.escalated",'
        b'"approval.reminder","approval.rejected",{"step":"review","approvalId":"appr_1a2",'
        b'"approval.revised","approval.cancelled","approval.approved","approval.created",'
        b'"execution.awaiting_approval","execution.interrupted","notice.failed","failure.started",'
        b'"step.skipped","step.retrying","step.postponed","step.log","artifact.created",'
        b'{"artifactId":"art_1a2","execution.cancelled","step.failed",{"step":"a","error":"",'
        b'"duration":10}],[0,"execution.failed",{"error":"Step \'a\' failed: '
        b'[[1795,"execution.pending",{"workflowId":"wf_1a2","triggerSource":"webhook"}],'
        b'"triggerSource":"schedule"}],"triggerSource":"manual"}],"triggerSource":"open_api"}],'
        b'[2,"execution.running"],[0,"step.started",{"step":"a","attempt":1}],[3,"step.completed",'
        b'{"step":"b","duration":3}],[0,"step.started",{"step":"s1","attempt":1}],[1,'
        b'"step.completed",{"step":"s1","duration":1}],[0,"execution.completed"]]'
    )
}
"""By the version of the form. What is frequent comes last. Never changed: a new one is added."""


class Parts(NamedTuple):
    """The JSON of a cell: see the module."""

    head: str
    steps: str
    apart: str
    events: str


def cell_of(parts: Parts, last: int, sealer: Sealer | None, id: str) -> bytes:
    """The cell of the execution *id*, whose last event has the number *last*."""
    made = zlib.compressobj(_LEVEL, zlib.DEFLATED, _WINDOW_BITS, _MEMORY, zdict=_TYPICAL[FORM])
    squeezed = made.compress("\n".join(parts).encode()) + made.flush()
    return _sealed(squeezed, FORM, number_bytes(last), sealer, id)


def _sealed(squeezed: bytes, form: int, number: bytes, sealer: Sealer | None, id: str) -> bytes:
    if sealer is None:
        return bytes((form,)) + number + squeezed
    return bytes((form | SEALED,)) + number + sealer.seal_bytes(squeezed, _place(id, number))


def number_bytes(number: int) -> bytes:
    """As in the header, so that SQL can compare it."""
    return min(max(number, 0), _MOST_NUMBER).to_bytes(4, "big")


def _place(id: str, number: bytes) -> str:
    return f"executions.packed/{id}/{int.from_bytes(number, 'big')}"


def parts_of(cell: bytes, sealer: Sealer | None, id: str) -> Parts:
    """The inverse of `cell_of`. Raises `ValueError` for what cannot be opened."""
    form, squeezed = _opened(cell, sealer, id)
    made = zlib.decompressobj(_WINDOW_BITS, zdict=_TYPICAL[form])
    text = made.decompress(squeezed)
    if not made.eof or made.unused_data:
        raise ValueError("it was cut, or is longer than it was")
    return Parts(*text.decode().split("\n"))


def _opened(cell: bytes, sealer: Sealer | None, id: str) -> tuple[int, bytes]:
    """The form, and what is compressed."""
    if not cell[0] & SEALED:
        if sealer is not None:
            raise InClear
        return cell[0], cell[_HEADER:]
    if sealer is None:
        raise ValueError("it is sealed, and there is no key")
    place = _place(id, cell[1:_HEADER])
    return cell[0] & ~SEALED, sealer.open_bytes(cell[_HEADER:], place)


def resealed(cell: bytes, sealer: Sealer, id: str, *, clear: bool = False) -> bytes | None:
    """
    The cell sealed with the first key; None if it is. *clear*: also one in clear. Raises
    `ValueError` if it cannot be opened.
    """
    if not isinstance(cell, bytes) or len(cell) <= _HEADER:
        raise ValueError("it was cut, or is no cell")
    mine = bytes.fromhex(sealer.keys[0])
    if cell[0] & SEALED and cell[_HEADER:].startswith(mine):
        return None
    opener = None if clear and not cell[0] & SEALED else sealer
    form, squeezed = _opened(cell, opener, id)
    return _sealed(squeezed, form, cell[1:_HEADER], sealer, id)


KEY_OF_CELL = f"""CASE WHEN hex(substr({{0}}, 1, 1)) >= '{SEALED:02X}'
    THEN lower(hex(substr({{0}}, {_HEADER + 1}, 4))) END"""
"""The id of the key that a cell is sealed with, in SQL; NULL: none."""
LAST_OF_CELL = "substr({0}, 2, 4)"
"""The number of its last event, to be compared with `number_bytes`."""


class Unpacked(NamedTuple):
    """
    What a cell says of an execution: the body with variables and callback URL, the bodies of the
    steps, the output, and of each step output and items.
    """

    head: dict[str, Any]
    steps: Sequence[dict[str, Any]]
    output: Any
    apart: Sequence[Sequence[Any]]


def unpacked(cell: bytes, cells: Cells, id: str, *, listed: bool) -> Unpacked:
    """
    What a cell says, counted in *cells* as what is cached. *listed*: without outputs and items, as
    lists show it.
    """
    parts = parts_of(cell, cells.sealer, id)
    head, steps = value_of(parts.head), value_of(parts.steps)
    if listed:
        return Unpacked(head, steps, None, ())
    cells.cost += sum(map(cost_of, parts[:3]))
    apart = value_of(parts.apart) if parts.apart else {}
    return Unpacked(head, steps, apart.get("output"), apart.get("steps", ()))


Entry = tuple[int, str, Any]
"""Instant, kind and data of an event; their numbers count from 1."""


def entries_of(parts: Parts) -> list[Entry]:
    """The events."""
    found: list[Entry] = []
    at = 0
    for after_ms, kind, *data in value_of(parts.events):
        at += after_ms
        found.append((at, kind, data[0] if data else {}))
    return found


def _events_text(entries: Sequence[Entry]) -> str:
    """Each by the time since the one before."""
    found: list[list[Any]] = []
    before = 0
    for at, kind, data in entries:
        found.append([at - before, kind, data] if data else [at - before, kind])
        before = at
    return text_of(found)


_SIZE = """length(r.body) + coalesce(length(r.output), 0)
    + coalesce((SELECT sum(length(s.body) + coalesce(length(s.output), 0)
        + coalesce(length(s.items), 0)) FROM step_results s WHERE s.execution_id = r.id), 0)
    + coalesce((SELECT length(v.body) FROM execution_variables v WHERE v.execution_id = r.id), 0)
    + coalesce((SELECT sum(length(e.data)) FROM events e WHERE e.execution_id = r.id), 0)"""


def ended_next(now: EpochMs, limit: int) -> Query:
    """
    Up to *limit* executions behind the mark, in the order of their ends: instant, id, and about how
    many characters their rows take up; 0 for what is packed.
    """
    sql = f"""SELECT r.completed_at, r.id,
        CASE WHEN r.packed IS NOT NULL AND r.body = '' THEN 0 ELSE {_SIZE} END
        FROM executions r WHERE (r.completed_at, r.id) > (SELECT completed_at, id FROM packing_mark)
        AND r.completed_at < ? ORDER BY r.completed_at, r.id LIMIT ?"""
    tables = "executions step_results execution_variables events packing_mark"
    return query(sql, later(now, -LAG), limit, tables=tables)


_THESE = "(SELECT value FROM json_each(?))"
_HEADS = f"""SELECT id, body, callback_url, output, packed FROM executions
    WHERE id IN {_THESE} AND status IN ('COMPLETED', 'FAILED', 'CANCELLED')"""
_STEPS = f"""SELECT execution_id, position, body, output, items FROM step_results
    WHERE execution_id IN {_THESE} ORDER BY execution_id, position"""
_VARIABLES = f"SELECT execution_id, body FROM execution_variables WHERE execution_id IN {_THESE}"
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
    """A job for the writer: pack the executions *ids*, and move the mark to *mark*."""

    ids: Sequence[str]
    mark: tuple[int, str]
    sealer: Sealer | None

    @classmethod
    def of(cls, found: Sequence[Row], sealer: Sealer | None) -> "Pack":
        """Of the rows of `ended_next` those that fit in a cell."""
        ids = [id for _, id, size in found if 0 < size <= MOST_BYTES]
        return cls(ids, (found[-1][0], found[-1][1]), sealer)

    def __call__(self, cursor: Cursor) -> None:
        pack(cursor, self.ids, self.sealer, self.sealer)
        cursor.execute(_MOVE_MARK, self.mark * 2)


def pack(
    cursor: Cursor, ids: Sequence[str], opener: Sealer | None, sealer: Sealer | None
) -> Sequence[str]:
    """
    Pack those of *ids* that have ended, seal them with *sealer*, and return them. *opener* opens
    their rows. What is packed, or cannot be read, stays as it is.
    """
    asked = (text_of(list(ids)),)
    try:
        heads = cursor.execute(_HEADS, asked).fetchall()
        steps, variables, events = (
            _by_execution(cursor.execute(sql, asked)) for sql in (_STEPS, _VARIABLES, _EVENTS)
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
            with suppress(Exception):  # whatever a broken record raises: who reads it names it
                rows = steps.get(id, ()), variables.get(id, ()), events.get(id, ())
                parts, last = _packed(id, head, *rows, opener)
                cells.append((cell_of(parts, last, sealer, id), id))
    cursor.executemany(_PUT, cells)
    done = [id for _, id in cells]
    for sql in _DROP:
        cursor.execute(sql, (text_of(done),))
    return done


def _by_execution(rows: Iterable[Row]) -> Mapping[str, Sequence[Row]]:
    """Rows without their first value, by that."""
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
) -> tuple[Parts, int]:
    """The parts of the cell, and how many events are in it."""
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
    for (given,) in variables:
        about["variables"] = value_of(cells.opened(given, "body", "execution_variables"))
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
    return Parts(text_of(about), text_of(results), hidden, text), len(entries)


def _value(cells: Cells, cell: str | None, column: str, position: int) -> Any:
    if cell is None or cell == "null":
        return None
    return value_of(cells.opened(cell, column, "step_results", position))
