"""
An execution as rows: a head, its variables, and one row for each step result.

A transition of a long execution changes the head and one step; only those rows are written. Changes
are found by comparing with the record that was loaded at the same version.
"""

# ruff: noqa: S608 - only constant text of this package is put together

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from operator import attrgetter
from typing import Any, TypeAlias

from adapters_store.sql.cache import ENTRY_BYTES, KnownRecord
from adapters_store.sql.cells import (
    SEALED,
    Cells,
    Row,
    cost_of,
    sealed,
    sealed_later,
    text_of,
    value_of,
)
from adapters_store.sql.kinds import Fetch
from adapters_store.sql.packing import LAST_OF_CELL, number_bytes, unpacked
from adapters_store.sql.statement import Write, insert, update
from adapters_store.sql.step_rows import (
    LARGE,
    SAYS_SO,
    STEP_APART,
    VersionOf,
    body_of,
    divided,
    is_aside,
    step_writes,
    unread,
)
from adapters_store.sql.unit_of_work import SqlUnitOfWork
from wfcore.model.event import Event
from wfcore.model.execution import (
    Execution,
    ExecutionStatus,
    Unread,
    evolve,
    leaving_out,
    left_out,
)
from wfcore.ports.system import Sealer
from wfcore.rules.execution.budget import ended_cost
from wfcore.wire.records import reader_of, writer_of

_steps = """(SELECT group_concat('[' || s.position || ',' || {cells} || ']', ',')
    FROM step_results s WHERE s.execution_id = r.id)"""
_cell = (
    """CASE substr(s.{0}, 1, 1) WHEN '~' THEN '"' || s.{0} || '"' ELSE '[' || s.{0} || ']' END"""
)
"""
The expression for a cell: a sealed cell becomes a string, any other cell a list of its value, so
that no value can look sealed.
"""
_cells = (
    f"s.body || ',' || {_cell.format('output')} || ',' || coalesce({_cell.format('items')}, '[]')"
)


def _head_cell(column: str) -> str:
    """
    The expression for the text of a cell; if the body of the row names large values, the number 0,
    without a read of the cell.
    """
    return f"""CASE WHEN substr(s.body, 1, {len(SAYS_SO)}) = '{SAYS_SO}' THEN '0'
        ELSE {_cell.format(column)} END"""


_head_cells = (
    f"s.body || ',' || {_head_cell('output')} || ',' || coalesce({_head_cell('items')}, '[]')"
)
_NOT_READ = "!"
"""The mark of an output that was not read; no cell has this text."""
_head_output = f"""CASE WHEN substr(r.body, 1, {len(SAYS_SO)}) = '{SAYS_SO}' THEN '{_NOT_READ}'
    ELSE r.output END"""
_variables = "(SELECT v.body FROM execution_variables v WHERE v.execution_id = r.id)"
_start = _variables.replace("v.body", "v.body || coalesce('\n' || v.cause, '')")
"""The expression for the variables and `trigger`. No cell has a line break."""

_IN_COLUMNS = (
    *("version", "worker", "fence", "due_at", "owner_id", "workflow_id", "revision"),
    *("trigger_source", "reference", "status", "accepted_at", "completed_at", "id"),
)
"""The fields that have columns of their own and are left out of the body."""
COLUMNS = (
    *_IN_COLUMNS[:-1],
    *("body", "callback_url", "output", "variables", "steps", "packed", "id"),
)
WHOLE = {"variables": _start, "steps": _steps.format(cells=_cells)}
HEAD = {
    "variables": _start,
    "steps": _steps.replace("{cells}", _head_cells),
    "output": _head_output,
}
"""
The columns of a head. Large values are left out, so that the cost of a head does not depend on
them. ST-7.
"""
LISTED = {
    "output": "NULL",
    "variables": f"CASE WHEN r.masked = 1 THEN coalesce({_variables}, '{{}}') END",
    "steps": _steps.format(cells="s.body"),
}


def _select(computed: Mapping[str, str]) -> str:
    columns = (computed.get(name, f"r.{name}") for name in COLUMNS)
    return f"SELECT {', '.join(columns)} FROM executions r WHERE "


SELECT, SELECT_HEAD = _select(WHOLE), _select(HEAD)

_PLACE = ("status", "completed_at", "due_at", "worker", "owner_id", "workflow_id", "accepted_at")
_HEAD = ("fence", "version", "body", "callback_url", "output")
_BORN = (
    *("revision", "concurrency_group", "trigger_source", "reference", "redrive_of"),
    "capabilities",
)
INSERT = insert("executions", (*_PLACE, "masked", "cost", *_HEAD, "id", *_BORN))
MOVE = update(
    "executions",
    (*_PLACE, "masked", "cost", *_HEAD),
    ("id", "version"),
    {"holder": "worker"},
    lease_until="CASE WHEN executions.worker = {holder} THEN lease_until END",
)
STAY = update("executions", _HEAD, ("id", "version"))
"""The update of a head that changes no column of an index, so that no index is touched."""

PUT_VARIABLES = insert(
    "execution_variables",
    ("execution_id", "body", "cause"),
    " ON CONFLICT (execution_id) DO UPDATE SET body = excluded.body, cause = excluded.cause",
)
GROUP_OPEN = "concurrency_group = {} AND status NOT IN ('COMPLETED', 'FAILED', 'CANCELLED')"
QUEUE_UP = f"""UPDATE executions SET queued = 1 WHERE id = ? AND (
    EXISTS (SELECT 1 FROM executions WHERE {GROUP_OPEN.format("?")} AND queued = 1)
    OR (SELECT count(*) FROM executions WHERE {GROUP_OPEN.format("?")} AND queued = 0)
        > (SELECT at_once FROM group_limits WHERE workflow_id = ?))"""
"""
The update that queues an execution if other executions of the group are queued already, or if the
group has one execution more than its limit.
"""
MARK_BUSY_GROUP = f"""INSERT INTO group_checks (concurrency_group)
    SELECT CAST(? AS TEXT) WHERE EXISTS (
        SELECT 1 FROM executions WHERE {GROUP_OPEN.format("?")} AND queued = 1)
    ON CONFLICT (concurrency_group) DO NOTHING"""
"""
The insertion that marks a group in which executions are queued; the next claim counts the group.
"""
ADD_EVENT = {
    table: insert(table, ("execution_id", "number", "at", "kind", "data"))
    for table in ("events", "logs")
}
_IS_NEW = f"""SELECT 1 WHERE NOT EXISTS (SELECT 1 FROM executions
    WHERE id = ? AND packed IS NOT NULL AND {LAST_OF_CELL.format("packed")} >= ?)"""
"""The condition that no packed event has the number of this event or a later number."""
DROP_VARIABLES = "DELETE FROM execution_variables WHERE execution_id = ?"

_ENDED = (ExecutionStatus.COMPLETED, ExecutionStatus.FAILED, ExecutionStatus.CANCELLED)
_APART = (
    *_IN_COLUMNS,
    "variables",
    "trigger",
    "step_results",
    "put_aside",
    *SEALED["executions"].columns,
)
write_head = writer_of(Execution, _APART)
_read_execution = reader_of(Execution)


def decode(row: Row, cells: Cells) -> Execution:
    """The execution in a row of `COLUMNS`."""
    return _read(row, *(_in_rows(row, cells) if row[_BODY] else _in_cell(row, cells)))


def decode_listed(row: Row, cells: Cells) -> Execution:
    """The execution in a row of a list, see `LISTED`."""
    if row[_BODY]:
        return _read(row, *_in_rows(row, cells))
    return _read(row, *_in_cell(row, cells, listed=True))


_BODY = COLUMNS.index("body")
Found: TypeAlias = tuple[dict[str, Any], dict[str, Any]]
"""The fields that have no columns, and the results by name."""


def _in_rows(row: Row, cells: Cells) -> Found:
    body, url, output, variables, steps = row[_BODY : _BODY + 5]
    data: dict[str, Any] = value_of(body)
    data["callback_url"] = None if url is None else value_of(cells.opened(url, "callback_url"))
    apart = data.pop("apart", {})
    if output == _NOT_READ:
        data["output"] = Unread(row[-1], None, 0, apart["output"])
    else:
        data["output"] = None if output is None else value_of(cells.opened(output, "output"))
    given, _, cause = (variables or "{}").partition("\n")
    data["variables"] = value_of(cells.opened(given, "body", "execution_variables"))
    if cause:
        data["trigger"] = value_of(cells.opened(cause, "cause", "execution_variables"))
    return data, {} if steps is None else dict(_results(row[-1], steps, cells))


def _in_cell(row: Row, cells: Cells, *, listed: bool = False) -> Found:
    """
    The fields and results of a packed execution. In lists, as with rows, an execution has its
    variables only if some variables are masked.
    """
    *_, variables, _, packed, id = row
    data, steps, output, apart = unpacked(packed, cells, id, listed=listed)
    if listed:
        data.pop("trigger", None)
        if variables is None:
            data.pop("variables", None)
    data["output"] = output
    data.pop("apart", None)
    for step, shown in zip(steps, apart, strict=False):
        step.update(zip(STEP_APART, shown, strict=True))
    for step in steps:
        step.pop("apart", None)
    return data, {step.pop("name"): step for step in steps}


def _read(row: Row, data: dict[str, Any], found: dict[str, Any]) -> Execution:
    data.update(zip(_IN_COLUMNS, (*row[:_BODY], row[-1]), strict=True))
    data["step_results"] = found
    if any(map(is_aside, found)):
        data["step_results"] = {name: one for name, one in found.items() if not is_aside(name)}
        data["put_aside"] = {name: one for name, one in found.items() if is_aside(name)}
    output = _taken_out(data, ("output",))
    missing = {name: _taken_out(body, STEP_APART) for name, body in found.items()}
    run = leaving_out(_read_execution(data), **output)
    if not any(missing.values()):
        return run
    return evolve(
        run,
        step_results={n: leaving_out(one, **missing[n]) for n, one in run.step_results.items()},
        put_aside={n: leaving_out(one, **missing[n]) for n, one in run.put_aside.items()},
    )


def _taken_out(data: dict[str, Any], names: Sequence[str]) -> dict[str, Unread]:
    """Remove the unread values from *data*, and return them."""
    return {name: data.pop(name) for name in names if isinstance(data.get(name), Unread)}


def _results(id: str, steps: str, cells: Cells) -> Iterator[tuple[str, Any]]:
    """The names and results in the order of their positions."""
    for position, body, *found in sorted(value_of(f"[{steps}]"), key=lambda step: step[0]):
        name, apart = body.pop("name"), body.pop("apart", {})
        for column, cell in zip(STEP_APART, found, strict=False):
            if isinstance(cell, str):
                body[column] = value_of(cells.opened(cell, column, "step_results", position))
            elif isinstance(cell, int):
                if size := apart.get(column):
                    body[column] = Unread(id, name, position, size)
            elif cell:
                if cell[0] is not None and cell[0] != {}:
                    cells.require_no_key()
                body[column] = cell[0]
        yield name, body


FETCH = Fetch(
    "executions", SELECT_HEAD + "r.id = ?", decode, "SELECT version FROM executions WHERE id = ?"
)


def put(unit: SqlUnitOfWork, record: Execution) -> None:
    """
    Collect the writes of an execution: a compare-and-set of the head, and the other rows that
    change. Raises `NotRead` if a row has to be written but one of its values was not read.
    """
    base = known_of(unit, record)
    found, kept = writes(record, base, unit.sealer, partial(_version_of, unit))
    unit.write("executions", *found)
    if len(found) > 1:
        unit.changed.add("step_results")
    unit.stored_at.setdefault(record.id, record.version)
    unit.pend("executions", (record.id,), kept.record, kept)


def known_of(unit: SqlUnitOfWork, record: Execution) -> KnownRecord | None:
    """
    The stored record at the version of *record*, if the unit has put or read it, or if the cache
    has it; otherwise None.
    """
    key = (record.id,)
    _, draft = unit.pending.get(("executions", key), (None, None))
    for known in (draft, unit.read.get(record.id), unit.reads.cache.get("executions", key)):
        if known is not None and known.version == record.version:
            return known
    return None


def _version_of(unit: SqlUnitOfWork, id: str) -> int | None:
    """The version of the execution *id*, if this unit has read or put it."""
    _, draft = unit.pending.get(("executions", (id,)), (None, None))
    known = draft or unit.read.get(id)
    return None if known is None else known.version


def writes(
    run: Execution,
    base: KnownRecord | None,
    sealer: Sealer | None,
    version_of: VersionOf = lambda _: None,
) -> tuple[list[Write], KnownRecord]:
    """
    The writes that store *run* over *base*, and the record that is known after the writes. *base*:
    the record stored at the version of *run*; None: unknown. If the stored execution has ended, all
    rows are written, because its rows may have been packed since. *version_of*: gives the version
    of another execution whose values are copied unread.
    """
    has_ended = base is not None and base.record.status in _ENDED
    base = None if has_ended else base
    old = None if base is None else base.record
    output = None if run.output is None else text_of(run.output)
    apart = {"output": len(output)} if output is not None and len(output) > LARGE else {}
    body = body_of(apart, write_head(run))
    steps = step_writes(run, base, sealer, version_of, keeps=run.version > 0 and not has_ended)
    found = [_head(run, old, body, output, sealer), *steps.in_order]
    grown = 0
    if _has_new_variables(run, old):
        found.append(_variables_write(run, sealer))
        grown = _cost_of_start(run) - (_cost_of_start(old) if old else 0)
    found += _group_writes(run)
    head = cost_of(body)
    rest, bare_rest = (base.rest, base.bare_rest) if base else (ENTRY_BYTES, ENTRY_BYTES)
    version = run.version + 1
    stored = evolve(run, version=version, **divided(run, steps.results))
    size = head + cost_of(output or "") + rest + steps.grown + grown
    known = KnownRecord(version, stored, size, head=head + cost_of(output or ""))
    if apart or any(map(left_out, steps.bare.values())):
        bare = evolve(run, version=version, **divided(run, steps.bare))
        known.bare = leaving_out(bare, **unread(run.id, None, 0, apart))
        known.bare_head = head + (0 if apart else cost_of(output or ""))
        known.bare_size = known.bare_head + bare_rest + steps.bare_grown + grown
    return found, known


def _has_new_variables(run: Execution, base: Execution | None) -> bool:
    """
    Whether the stored variables may differ; `trigger` never changes. An execution without both has
    no row of variables.
    """
    if base is None:
        return bool(run.variables or run.trigger or run.version)
    return base.variables is not run.variables and bool(base.variables or run.variables)


def _variables_write(run: Execution, sealer: Sealer | None) -> Write:
    if not (run.variables or run.trigger):
        return DROP_VARIABLES, (run.id,), None
    given = sealed(sealer, text_of(run.variables), "execution_variables", "body", run.id)
    cause = None
    if run.trigger:
        cause = sealed(sealer, text_of(run.trigger), "execution_variables", "cause", run.id)
    return PUT_VARIABLES, (run.id, given, cause), None


def _cost_of_start(run: Execution) -> int:
    return cost_of(text_of(run.variables)) + (cost_of(text_of(run.trigger)) if run.trigger else 0)


def _head(
    run: Execution, base: Execution | None, body: str, output: str | None, sealer: Sealer | None
) -> Write:
    url = None if run.callback_url is None else text_of(run.callback_url)
    apart = zip(SEALED["executions"].columns, (url, output), strict=True)
    cells = (
        None if text is None else sealed_later(sealer, text, "executions", column, run.id)
        for column, text in apart
    )
    last = (run.fence, run.version + 1, body, *cells, run.id)
    stale = ("executions", run.id)
    ended = run.status in _ENDED  # a later usage changes the cost
    if run.version and base is not None and not ended and _place(base) == _place(run):
        return STAY, (*last, run.version), stale
    status, *place, secrets = _place(run)
    cost = ended_cost(run) if ended else None
    values = (status.value, *place, 1 if secrets else 0, cost, *last)
    if run.version:
        return MOVE, (*values[:-1], run.worker, run.id, run.version), stale
    source = run.trigger_source.value
    born = run.revision, run.concurrency_group, source, run.reference, run.redrive_of
    return INSERT, (*values, *born, text_of(list(run.capabilities))), stale


def changes_group(run: Execution) -> bool:
    """Whether *run* has a group in which it begins or ends."""
    return run.concurrency_group is not None and (not run.version or run.status in _ENDED)


def _group_writes(run: Execution) -> Iterator[Write]:
    """
    The writes about the group of *run*: a new execution is queued if the group is full; a group
    with queued executions is marked, so that the next claim may admit some.
    """
    if not changes_group(run):
        return
    if not run.version and run.fence == 0:
        group = run.concurrency_group
        yield QUEUE_UP, (run.id, group, group, run.workflow_id), None
    yield MARK_BUSY_GROUP, (run.concurrency_group,) * 2, None


_place = attrgetter(*_PLACE, "secrets")
"""Gives the value of every column that an index or a filter reads."""


def add_event(unit: SqlUnitOfWork, event: Event) -> None:
    """
    Collect an event. Its number must be new: if the unit puts the execution, the version ensures
    that; otherwise the packed events are checked, too.
    """
    if ("executions", (event.execution_id,)) not in unit.pending:
        values = (event.execution_id, number_bytes(event.number))
        unit.require((_IS_NEW, values, ("events", event.execution_id)))
    _add(unit, "events", event)


def add_lines(unit: SqlUnitOfWork, line: Event) -> None:
    """Collect output lines."""
    _add(unit, "logs", line)


def _add(unit: SqlUnitOfWork, table: str, event: Event) -> None:
    about = text_of(event.data) if event.data else "{}"
    data = sealed(unit.sealer, about, table, "data", event.execution_id, event.number)
    values = (event.execution_id, event.number, event.at, event.kind.value, data)
    unit.write(table, (ADD_EVENT[table], values, None))
