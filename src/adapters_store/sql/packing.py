"""
Ended executions, packed: head, results, variables and events of each execution in one cell.

An ended execution is hardly ever written again, and most of the text in its rows is repetition:
names of fields, kinds of events, instants, keys and seals of cells. So `pack` replaces body,
output, callback URL, results, variables and events of an execution by one compressed and sealed
cell, `executions.packed`. Columns of lists and indexes stay.

**The cell** is a header of five bytes (the version of the form, whose highest bit is set if the
cell is sealed; the number of the last event) and four lines of JSON, compressed with a dictionary
of typical text: the body with variables and callback URL; the results of the steps without the
values in `apart`; the values that lists leave out; the events.

**Rows win over the cell.** As long as the body is empty, head and results come from the cell. A
later put writes a body and every row, as over every unknown record; from then on head and results
come from the rows. Events come from the cell first, then from rows.

**The packer** takes ended executions in the order of their ends, from a mark up to a minute ago. An
execution that cannot be read, or that is large, stays unpacked. Each execution is packed within one
transaction of the writer, from the rows of that moment, so that no other write comes in between.

One cell for several executions would halve the size again, but the deletion of one execution would
rewrite the others, and a page of a list would open fifty times as much.
"""

import zlib
from collections.abc import Sequence
from typing import Any, NamedTuple

from adapters_store.sql.cells import Cells, InClear, cost_of, value_of
from wfcore.ports.system import Sealer

FORM = 1
"""The form of new cells, which is also the version of the dictionary."""
SEALED = 0x80
_HEADER = 5
_MOST_NUMBER = (1 << 32) - 1
_WINDOW_BITS, _LEVEL, _MEMORY = -12, 6, 5
"""
The settings of zlib: no header or checksum, and small tables, because making tables costs more than
using them. The window, 4 KB, has room for the dictionary.
"""

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
"""
The dictionaries, by the version of the form. Frequent text comes last. A dictionary never changes;
a new version gets a new dictionary.
"""


class CellParts(NamedTuple):
    """The four lines of JSON in a cell, see the module."""

    head: str
    steps: str
    apart: str
    events: str


def cell_of(parts: CellParts, last: int, sealer: Sealer | None, id: str) -> bytes:
    """The cell of the execution *id*, whose last event has the number *last*."""
    made = zlib.compressobj(_LEVEL, zlib.DEFLATED, _WINDOW_BITS, _MEMORY, zdict=_TYPICAL[FORM])
    squeezed = made.compress("\n".join(parts).encode()) + made.flush()
    return _sealed(squeezed, FORM, number_bytes(last), sealer, id)


def _sealed(squeezed: bytes, form: int, number: bytes, sealer: Sealer | None, id: str) -> bytes:
    if sealer is None:
        return bytes((form,)) + number + squeezed
    return bytes((form | SEALED,)) + number + sealer.seal_bytes(squeezed, _place(id, number))


def number_bytes(number: int) -> bytes:
    """*number* as the header stores it, so that SQL can compare the bytes."""
    return min(max(number, 0), _MOST_NUMBER).to_bytes(4, "big")


def _place(id: str, number: bytes) -> str:
    return f"executions.packed/{id}/{int.from_bytes(number, 'big')}"


def parts_of(cell: bytes, sealer: Sealer | None, id: str) -> CellParts:
    """The inverse of `cell_of`. Raises `ValueError` for a cell that cannot be opened."""
    form, squeezed = _opened(cell, sealer, id)
    made = zlib.decompressobj(_WINDOW_BITS, zdict=_TYPICAL[form])
    text = made.decompress(squeezed)
    if not made.eof or made.unused_data:
        raise ValueError("it was cut, or is longer than it was")
    return CellParts(*text.decode().split("\n"))


def _opened(cell: bytes, sealer: Sealer | None, id: str) -> tuple[int, bytes]:
    """The form of a cell, and its compressed content."""
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
    The cell sealed with the first key of *sealer*; None if that key sealed the cell already.
    *clear*: a cell in clear is sealed, too. Raises `ValueError` for a cell that cannot be opened.
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
"""The SQL expression for the id of the key that sealed a cell; NULL for a cell in clear."""
LAST_OF_CELL = "substr({0}, 2, 4)"
"""
The SQL expression for the number of the last event in a cell; `number_bytes` gives values to
compare with that number.
"""


class Unpacked(NamedTuple):
    """
    The content of a cell: the body with variables and callback URL, the bodies of the steps, the
    output of the execution, and the output and items of each step.
    """

    head: dict[str, Any]
    steps: Sequence[dict[str, Any]]
    output: Any
    apart: Sequence[Sequence[Any]]


def unpacked(cell: bytes, cells: Cells, id: str, *, listed: bool) -> Unpacked:
    """
    The content of a cell; its cost is added to *cells*. *listed*: without outputs and items, as in
    lists.
    """
    parts = parts_of(cell, cells.sealer, id)
    head, steps = value_of(parts.head), value_of(parts.steps)
    if listed:
        return Unpacked(head, steps, None, ())
    cells.cost += sum(map(cost_of, parts[:3]))
    apart = value_of(parts.apart) if parts.apart else {}
    return Unpacked(head, steps, apart.get("output"), apart.get("steps", ()))


Entry = tuple[int, str, Any]
"""Instant, kind and data of an event. The first event of a cell has the number 1."""


def entries_of(parts: CellParts) -> list[Entry]:
    """The events of a cell."""
    found: list[Entry] = []
    at = 0
    for after_ms, kind, *data in value_of(parts.events):
        at += after_ms
        found.append((at, kind, data[0] if data else {}))
    return found
