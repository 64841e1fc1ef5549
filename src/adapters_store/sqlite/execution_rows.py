"""
An execution as rows: a head, its variables, and one row for each step result.

A transition of a long execution changes the head and one step; only those rows are written. Changes
are found by comparing with the record that was loaded at the same version.
"""

# ruff: noqa: S608 - only constant text of this package is put together

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from operator import attrgetter, eq
from typing import Any, TypeAlias

from adapters_store.sqlite.kinds import (
    SEALED,
    Cells,
    Fetch,
    Row,
    cost_of,
    sealed,
    text_of,
    value_of,
)
from adapters_store.sqlite.packing import LAST_OF_CELL, number_bytes, unpacked
from adapters_store.sqlite.read_cache import ENTRY_BYTES
from adapters_store.sqlite.statements import Size, Write, insert, update
from adapters_store.sqlite.unit_of_work import UnitOfWork
from wfcore.model.event import Event
from wfcore.model.execution import Execution, ExecutionStatus, StepResult, evolve
from wfcore.ports.system import Sealer
from wfcore.rules.execution.budget import ended_cost
from wfcore.wire.records import reader_of, writer_of

_steps = """(SELECT group_concat('[' || s.position || ',' || {cells} || ']', ',')
    FROM step_results s WHERE s.execution_id = r.id)"""
_cell = (
    """CASE substr(s.{0}, 1, 1) WHEN '~' THEN '"' || s.{0} || '"' ELSE '[' || s.{0} || ']' END"""
)
"""A sealed cell becomes a string, any other a list of its value: no value can look sealed."""
_cells = (
    f"s.body || ',' || {_cell.format('output')} || ',' || coalesce({_cell.format('items')}, '[]')"
)
_variables = "(SELECT v.body FROM execution_variables v WHERE v.execution_id = r.id)"

_IN_COLUMNS = (
    *("version", "worker", "fence", "due_at", "owner_id", "workflow_id"),
    *("trigger_source", "status", "accepted_at", "completed_at", "id"),
)
"""Fields that have columns of their own, and are not in the body as well."""
COLUMNS = (
    *_IN_COLUMNS[:-1],
    *("body", "callback_url", "output", "variables", "steps", "packed", "id"),
)
WHOLE = {"variables": _variables, "steps": _steps.format(cells=_cells)}
LISTED = {
    "output": "NULL",
    "variables": f"CASE WHEN r.masked = 1 THEN coalesce({_variables}, '{{}}') END",
    "steps": _steps.format(cells="s.body"),
}

SELECT = "SELECT " + ", ".join(WHOLE.get(name, f"r.{name}") for name in COLUMNS)
SELECT += " FROM executions r WHERE "

_PLACE = ("status", "completed_at", "due_at", "worker", "owner_id", "workflow_id", "accepted_at")
_HEAD = ("fence", "version", "body", "callback_url", "output")
_BORN = ("lane", "trigger_source", "redrive_of", "capabilities")
INSERT = insert("executions", (*_PLACE, "masked", "cost", *_HEAD, "id", *_BORN))
MOVE = update(
    "executions",
    (*_PLACE, "masked", "cost", *_HEAD),
    ("id", "version"),
    lease_until="CASE WHEN executions.worker = {worker} THEN lease_until END",
)
STAY = update("executions", _HEAD, ("id", "version"))
"""For a head whose place in every index is the same as before: no index is touched."""

PUT_VARIABLES = insert(
    "execution_variables",
    ("execution_id", "body"),
    " ON CONFLICT (execution_id) DO UPDATE SET body = excluded.body",
)
PUT_STEP = insert(
    "step_results",
    ("execution_id", "position", "body", "output", "items"),
    """ ON CONFLICT (execution_id, position) DO UPDATE
    SET body = excluded.body, output = excluded.output, items = excluded.items""",
)
GROUP_OPEN = "lane = {} AND status NOT IN ('COMPLETED', 'FAILED', 'CANCELLED')"
QUEUE_UP = f"""UPDATE executions SET queued = 1 WHERE id = ?1 AND (
    EXISTS (SELECT 1 FROM executions WHERE {GROUP_OPEN.format("?2")} AND queued = 1)
    OR (SELECT count(*) FROM executions WHERE {GROUP_OPEN.format("?2")} AND queued = 0)
        > (SELECT at_once FROM lane_limits WHERE workflow_id = ?3))"""
"""Where others wait already, or where one more than the limit would be in the group."""
MARK_BUSY_GROUP = f"""INSERT INTO lane_checks (lane) SELECT ?1 WHERE EXISTS
    (SELECT 1 FROM executions WHERE {GROUP_OPEN.format("?1")} AND queued = 1)
    ON CONFLICT (lane) DO NOTHING"""
"""The next claim counts the group. The tables call it a lane."""
ADD_EVENT = {
    table: insert(table, ("execution_id", "number", "at", "kind", "data"))
    for table in ("events", "logs")
}
_IS_NEW = f"""SELECT 1 WHERE NOT EXISTS (SELECT 1 FROM executions
    WHERE id = ? AND packed IS NOT NULL AND {LAST_OF_CELL.format("packed")} >= ?)"""
"""Whether an event may have this number, as far as packed ones are concerned."""
DROP_STEPS = "DELETE FROM step_results WHERE execution_id = ?"
DROP_VARIABLES = "DELETE FROM execution_variables WHERE execution_id = ?"

_ENDED = (ExecutionStatus.COMPLETED, ExecutionStatus.FAILED, ExecutionStatus.CANCELLED)
_APART = (*_IN_COLUMNS, "variables", "step_results", "put_aside", *SEALED["executions"].columns)
write_head = writer_of(Execution, _APART)
_STEP_APART = SEALED["step_results"].columns
_write_step = writer_of(StepResult, _STEP_APART)
_read_execution = reader_of(Execution)


def decode(row: Row, cells: Cells) -> Execution:
    """The execution in a row of `COLUMNS`."""
    return _read(row, *(_in_rows(row, cells) if row[_BODY] else _in_cell(row, cells)))


def decode_listed(row: Row, cells: Cells) -> Execution:
    """The same of a row of a list, see `LISTED`."""
    if row[_BODY]:
        return _read(row, *_in_rows(row, cells))
    return _read(row, *_in_cell(row, cells, listed=True))


_BODY = COLUMNS.index("body")
Found: TypeAlias = tuple[dict[str, Any], dict[str, Any]]
"""What is not in columns, and the results by their names."""


def _in_rows(row: Row, cells: Cells) -> Found:
    body, url, output, variables, steps = row[_BODY : _BODY + 5]
    data: dict[str, Any] = value_of(body)
    data["callback_url"] = None if url is None else value_of(cells.opened(url, "callback_url"))
    data["output"] = None if output is None else value_of(cells.opened(output, "output"))
    if variables is not None:
        variables = value_of(cells.opened(variables, "body", "execution_variables"))
    data["variables"] = variables or {}
    return data, {} if steps is None else dict(_results(steps, cells))


def _in_cell(row: Row, cells: Cells, *, listed: bool = False) -> Found:
    """Of a packed execution. Lists show variables where some are masked, as in rows."""
    *_, variables, _, packed, id = row
    data, steps, output, apart = unpacked(packed, cells, id, listed=listed)
    if listed and variables is None:
        data.pop("variables", None)
    data["output"] = output
    for step, shown in zip(steps, apart, strict=False):
        step.update(zip(_STEP_APART, shown, strict=True))
    return data, {step.pop("name"): step for step in steps}


def _read(row: Row, data: dict[str, Any], found: dict[str, Any]) -> Execution:
    data.update(zip(_IN_COLUMNS, (*row[:_BODY], row[-1]), strict=True))
    data["step_results"] = found
    if any(_is_aside(name) for name in found):
        data["step_results"] = {name: one for name, one in found.items() if not _is_aside(name)}
        data["put_aside"] = {name: one for name, one in found.items() if _is_aside(name)}
    return _read_execution(data)


def _results(steps: str, cells: Cells) -> Iterator[tuple[str, Any]]:
    """Names and results in the order of their positions."""
    for position, body, *apart in sorted(value_of(f"[{steps}]"), key=lambda step: step[0]):
        name = body.pop("name")
        for column, cell in zip(_STEP_APART, apart, strict=False):
            if isinstance(cell, str):
                body[column] = value_of(cells.opened(cell, column, "step_results", position))
            elif cell:
                if cell[0] is not None and cell[0] != {}:
                    cells.require_no_key()
                body[column] = cell[0]
        yield name, body


def _is_aside(name: str) -> bool:
    """Whether the row is of an earlier round; the keys of steps have no slash."""
    return "/" in name


def _all_results(run: Execution) -> Mapping[str, StepResult]:
    """What has a row: the results of earlier rounds first, which do not change."""
    return {**run.put_aside, **run.step_results} if run.put_aside else run.step_results


FETCH = Fetch(
    "executions", SELECT + "r.id = ?", decode, "SELECT version FROM executions WHERE id = ?"
)


def put(unit: UnitOfWork, record: Execution) -> None:
    """Collect the compare-and-set of an execution: the rows that change."""
    base, rest = _known(unit, record)
    found, size = writes(record, base, unit.sealer)
    unit.write("executions", *found)
    if len(found) > 1:
        unit.changed.add("step_results")
    stored = evolve(record, version=record.version + 1)
    unit.pend("executions", (record.id,), stored, Size(size.head, size.rest + rest))


def _known(unit: UnitOfWork, record: Execution) -> tuple[Execution | None, int]:
    """
    What is stored at the record's version, if known, and the approximate bytes of all but its head.
    Of what has ended it is not: its rows may have been packed since, so all of them are written.
    """
    key = (record.id,)
    base, size = unit.pending.get(("executions", key), (None, None))
    rest = size.rest if size is not None else 0
    if base is None and (known := unit.reads.cache.get("executions", key)):
        base, rest = known.record, known.size - known.head
    if base is None or base.version != record.version or base.status in _ENDED:
        return None, ENTRY_BYTES
    return base, rest


def writes(
    run: Execution, base: Execution | None, sealer: Sealer | None
) -> tuple[list[Write], Size]:
    """
    The writes that store *run* over *base* (what is stored at its version; None: unknown), and its
    size, where `rest` is the growth of everything but the head.
    """
    body = text_of(write_head(run))
    output = None if run.output is None else text_of(run.output)
    found, more = _step_writes(run, base, sealer)
    found.insert(0, _head(run, base, body, output, sealer))
    if _has_new_variables(run, base):
        variables = text_of(run.variables)
        if run.variables:
            cell = sealed(sealer, variables, "execution_variables", "body", run.id)
            found.append((PUT_VARIABLES, (run.id, cell), None))
        else:
            found.append((DROP_VARIABLES, (run.id,), None))
        more += cost_of(variables) - (cost_of(text_of(base.variables)) if base else 0)
    found += _group_writes(run)
    return found, Size(cost_of(body) + cost_of(output or ""), more)


def _has_new_variables(run: Execution, base: Execution | None) -> bool:
    """Whether the stored variables may differ; one that has none has no row of them."""
    if base is None:
        return bool(run.variables or run.version)
    return base.variables is not run.variables and bool(base.variables or run.variables)


def _head(
    run: Execution, base: Execution | None, body: str, output: str | None, sealer: Sealer | None
) -> Write:
    url = None if run.callback_url is None else text_of(run.callback_url)
    apart = zip(SEALED["executions"].columns, (url, output), strict=True)
    cells = (
        None if text is None else sealed(sealer, text, "executions", column, run.id)
        for column, text in apart
    )
    last = (run.fence, run.version + 1, body, *cells, run.id)
    stale = ("executions", run.id)
    ended = run.status in _ENDED  # what is recorded later changes the cost
    if run.version and base is not None and not ended and _place(base) == _place(run):
        return STAY, (*last, run.version), stale
    status, *place, secrets = _place(run)
    cost = ended_cost(run) if ended else None
    values = (status.value, *place, 1 if secrets else 0, cost, *last)
    if run.version:
        return MOVE, (*values, run.version), stale
    born = run.concurrency_group, run.trigger_source.value, run.redrive_of
    return INSERT, (*values, *born, text_of(list(run.capabilities))), stale


def _group_writes(run: Execution) -> Iterator[Write]:
    """A new execution is queued if its group is full; an end may admit another one."""
    if run.concurrency_group is None:
        return
    if not run.version and run.fence == 0:
        yield QUEUE_UP, (run.id, run.concurrency_group, run.workflow_id), None
    if not run.version or run.status in _ENDED:
        yield MARK_BUSY_GROUP, (run.concurrency_group,), None


_place = attrgetter(*_PLACE, "secrets")
"""Every column that an index or a filter looks at."""


def _step_writes(
    run: Execution, base: Execution | None, sealer: Sealer | None
) -> tuple[list[Write], int]:
    """
    Write the changed step results; all of them if their order does not continue. Also returns how
    many bytes they grew.
    """
    before: Mapping[str, StepResult] = {} if base is None else _all_results(base)
    after = _all_results(run)
    known = before
    found: list[Write] = []
    if run.version and (base is None or not _goes_on(known, after)):
        found.append((DROP_STEPS, (run.id,), None))
        known = {}
    gone = (
        _texts(name, old)
        for name, old in before.items()
        if known.get(name) is not old or after.get(name) is not old
    )
    more = -sum(map(cost_of, chain.from_iterable(gone)))
    for position, (name, result) in enumerate(after.items()):
        if known.get(name) is not result:
            texts = _texts(name, result)
            found.append((PUT_STEP, _step_values(run.id, position, texts, sealer), None))
            more += sum(map(cost_of, texts))
    return found, more


def _texts(name: str, result: StepResult) -> tuple[str, ...]:
    """A step result as body and separate cells."""
    body = text_of({"name": name, **_write_step(result)})
    return body, *(text_of(getattr(result, column)) for column in _STEP_APART)


def _step_values(
    id: str, position: int, texts: Sequence[str], sealer: Sealer | None
) -> tuple[Any, ...]:
    body, *apart = texts
    cells = (
        sealed(sealer, text, "step_results", column, id, position)
        for column, text in zip(_STEP_APART, apart, strict=True)
    )
    return id, position, body, *cells


def _goes_on(known: Mapping[str, StepResult], results: Mapping[str, StepResult]) -> bool:
    """Whether *results* begins with the names of *known*."""
    return len(known) <= len(results) and all(map(eq, known, results))


def add_event(unit: UnitOfWork, event: Event) -> None:
    """
    Collect an event, whose number must be new. If the unit puts the execution, its version says so;
    otherwise its cell is asked, too.
    """
    if ("executions", (event.execution_id,)) not in unit.pending:
        values = (event.execution_id, number_bytes(event.number))
        unit.write("events", (_IS_NEW, values, ("events", event.execution_id)))
    _add(unit, "events", event)


def add_lines(unit: UnitOfWork, line: Event) -> None:
    """Collect output lines."""
    _add(unit, "logs", line)


def _add(unit: UnitOfWork, table: str, event: Event) -> None:
    about = text_of(event.data) if event.data else "{}"
    data = sealed(unit.sealer, about, table, "data", event.execution_id, event.number)
    values = (event.execution_id, event.number, event.at, event.kind.value, data)
    unit.write(table, (ADD_EVENT[table], values, None))
