"""
An execution as rows: a head, its variables, one row for each step result.

One transition of a long execution changes the head and one step; only those rows are written.
What has changed is seen by comparing with the record that was loaded at the same version.
"""

# ruff: noqa: S608 - only constant text of this package is put together

from collections.abc import Iterator, Mapping
from operator import attrgetter, eq
from typing import Any

from adapters_store.sql.bodies import Size, cost_of, reader_of, text_of, value_of, writer_of
from adapters_store.sql.kinds import Fetch, Row
from adapters_store.sql.statements import Write, insert, update
from wfcore.model.evolving import evolve
from wfcore.model.execution import Execution, ExecutionStatus, StepResult

_steps = """(SELECT group_concat('[' || s.position || ',' || {body} || ']')
    FROM step_results s WHERE s.execution_id = r.id)"""
_bare = """CASE WHEN instr(s.body, '"items":') AND json_valid(s.body)
    THEN json_remove(s.body, '$.items') ELSE s.body END"""
_variables = "(SELECT v.body FROM execution_variables v WHERE v.execution_id = r.id)"

COLUMNS = ("version", "worker", "fence", "due_at", "body", "output", "variables", "steps", "id")
WHOLE = {"variables": _variables, "steps": _steps.format(body="s.body || ',' || s.output")}
LISTED = {
    "output": "NULL",
    "variables": f"CASE WHEN r.masked THEN {_variables} END",
    "steps": _steps.format(body=_bare),
}

SELECT = "SELECT " + ", ".join(WHOLE.get(name, f"r.{name}") for name in COLUMNS)
SELECT += " FROM executions r WHERE "

_PLACE = ("status", "completed_at", "due_at", "worker", "owner_id", "workflow_id", "accepted_at")
_HEAD = ("fence", "version", "body", "output")
_BORN = ("lane", "trigger_source", "redrive_of")
INSERT = insert("executions", (*_PLACE, "masked", *_HEAD, "id", *_BORN))
MOVE = update(
    "executions",
    (*_PLACE, "masked", *_HEAD),
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
    ("execution_id", "position", "body", "output"),
    """ ON CONFLICT (execution_id, position) DO UPDATE
    SET body = excluded.body, output = excluded.output""",
)
LANE_OPEN = "lane = {} AND status NOT IN ('COMPLETED', 'FAILED', 'CANCELLED')"
QUEUE_UP = f"""UPDATE executions SET queued = 1 WHERE id = ?1 AND (
    EXISTS (SELECT 1 FROM executions WHERE {LANE_OPEN.format("?2")} AND queued = 1)
    OR (SELECT count(*) FROM executions WHERE {LANE_OPEN.format("?2")} AND queued = 0)
        > (SELECT at_once FROM lane_limits WHERE workflow_id = ?3))"""
"""Where others wait already, or where one more than the limit would be in the lane."""
MARK_BUSY_LANE = f"""INSERT INTO lane_checks (lane) SELECT ?1 WHERE EXISTS
    (SELECT 1 FROM executions WHERE {LANE_OPEN.format("?1")} AND queued = 1)
    ON CONFLICT (lane) DO NOTHING"""
"""The next claim counts the lane."""
DROP_STEPS = "DELETE FROM step_results WHERE execution_id = ?"

_ENDED = (ExecutionStatus.COMPLETED, ExecutionStatus.FAILED, ExecutionStatus.CANCELLED)
_OWN_ROWS = ("version", "worker", "fence", "due_at", "variables", "step_results", "output")
write_head = writer_of(Execution, _OWN_ROWS)
_write_step = writer_of(StepResult, ["output"])
_read_execution = reader_of(Execution)


def decode(row: Row) -> Execution:
    """The execution in a row of `COLUMNS`."""
    version, worker, fence, due_at, body, output, variables, steps, _ = row
    data: dict[str, Any] = value_of(body)
    data.update(version=version, worker=worker, fence=fence, due_at=due_at)
    data["output"] = None if output is None else value_of(output)
    data["variables"] = {} if variables is None else value_of(variables)
    data["step_results"] = {} if steps is None else dict(_results(steps))
    return _read_execution(data)


def _results(steps: str) -> Iterator[tuple[str, Any]]:
    """Name and result in the order of their positions."""
    for _, body, *output in sorted(value_of(f"[{steps}]"), key=lambda step: step[0]):
        name = body.pop("name")
        body["output"] = output[0] if output else None
        yield name, body


FETCH = Fetch(
    "executions", SELECT + "r.id = ?", decode, "SELECT version FROM executions WHERE id = ?"
)


def bumped(run: Execution) -> Execution:
    """The record as it is once it is stored."""
    return evolve(run, version=run.version + 1)


def writes(run: Execution, base: Execution | None) -> tuple[list[Write], Size]:
    """
    The writes that store *run* over *base* (what is stored at its version, None: unknown), and
    its size, of which `rest` is how much more that is than the rest of *base*.
    """
    body = text_of(write_head(run))
    output = None if run.output is None else text_of(run.output)
    found, more = _step_writes(run, base)
    found.insert(0, _head(run, base, body, output))
    if _has_new_variables(run, base):
        variables = text_of(run.variables)
        found.append((PUT_VARIABLES, (run.id, variables), None))
        more += cost_of(variables) - (cost_of(text_of(base.variables)) if base else 0)
    found += _lane_writes(run)
    return found, Size(cost_of(body) + cost_of(output or ""), more)


def _has_new_variables(run: Execution, base: Execution | None) -> bool:
    """Whether the stored variables differ; a new execution without any has no row of them."""
    if base is None:
        return bool(run.variables or run.version)
    return base.variables is not run.variables


def _head(run: Execution, base: Execution | None, body: str, output: str | None) -> Write:
    last = (run.fence, run.version + 1, body, output, run.id)
    stale = ("executions", run.id)
    if run.version and base is not None and _place(base) == _place(run):
        return STAY, (*last, run.version), stale
    status, *place, secrets = _place(run)
    values = (status.value, *place, 1 if secrets else 0, *last)
    if run.version:
        return MOVE, (*values, run.version), stale
    return INSERT, (*values, run.lane, run.trigger_source.value, run.redrive_of), stale


def _lane_writes(run: Execution) -> Iterator[Write]:
    """A new execution queues up where its lane is full; an end may let another one in."""
    if run.lane is None:
        return
    if not run.version and run.fence == 0:
        yield QUEUE_UP, (run.id, run.lane, run.workflow_id), None
    if not run.version or run.status in _ENDED:
        yield MARK_BUSY_LANE, (run.lane,), None


_place = attrgetter(*_PLACE, "secrets")
"""Every column that an index or a filter looks at."""


def _step_writes(run: Execution, base: Execution | None) -> tuple[list[Write], int]:
    """
    Write the step results that differ; all anew where the order does not go on. With how many
    bytes more they take up than those of *base*.
    """
    before: Mapping[str, StepResult] = {} if base is None else base.step_results
    known = before
    found: list[Write] = []
    if run.version and (base is None or not _goes_on(known, run.step_results)):
        found.append((DROP_STEPS, (run.id,), None))
        known = {}
    gone = (
        _texts(name, old)
        for name, old in before.items()
        if known.get(name) is not old or run.step_results.get(name) is not old
    )
    more = -sum(cost_of(body) + cost_of(output) for body, output in gone)
    for position, (name, result) in enumerate(run.step_results.items()):
        if known.get(name) is not result:
            body, output = _texts(name, result)
            found.append((PUT_STEP, (run.id, position, body, output), None))
            more += cost_of(body) + cost_of(output)
    return found, more


def _texts(name: str, result: StepResult) -> tuple[str, str]:
    """A step result as body and output."""
    return text_of({"name": name, **_write_step(result)}), text_of(result.output)


def _goes_on(known: Mapping[str, StepResult], results: Mapping[str, StepResult]) -> bool:
    """Whether *results* begins with the names of *known*."""
    return len(known) <= len(results) and all(map(eq, known, results))
