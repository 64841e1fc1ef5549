"""
An execution as rows: a head, its variables, one row for each step result.

One transition of a long execution changes the head and one step; only those rows are written.
What has changed is seen by comparing with the record that was loaded at the same version.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from adapters_store.sql.bodies import reader_of, text_of, value_of, writer_of
from adapters_store.sql.kinds import Fetch, Row, Write
from wfcore.model.execution import Execution, StepResult

_steps = """(SELECT group_concat('[' || s.position || ',' || s.body {output} || ']')
    FROM step_results s WHERE s.execution_id = r.id)"""
_variables = "(SELECT v.body FROM execution_variables v WHERE v.execution_id = r.id)"

COLUMNS = ("version", "worker", "fence", "due_at", "body", "output", "variables", "steps")
WHOLE = {"variables": _variables, "steps": _steps.format(output="|| ',' || s.output")}
LISTED = {
    "output": "NULL",
    "variables": f"CASE WHEN r.masked THEN {_variables} END",
    "steps": _steps.format(output=""),
}

SELECT = "SELECT " + ", ".join(WHOLE.get(name, f"r.{name}") for name in COLUMNS)
SELECT += " FROM executions r WHERE "

INSERT = """INSERT INTO executions (status, completed_at, due_at, worker, owner_id, workflow_id,
    accepted_at, masked, fence, version, body, output, id)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"""
MOVE = """UPDATE executions SET lease_until = CASE WHEN worker = ?4 THEN lease_until END,
    status = ?1, completed_at = ?2, due_at = ?3, worker = ?4, owner_id = ?5, workflow_id = ?6,
    accepted_at = ?7, masked = ?8, fence = ?9, version = ?10, body = ?11, output = ?12
    WHERE id = ?13 AND version = ?14"""
STAY = """UPDATE executions SET fence = ?, version = ?, body = ?, output = ?
    WHERE id = ? AND version = ?"""
"""For a head whose place in every index is the same as before: no index is touched."""

PUT_VARIABLES = """INSERT INTO execution_variables (execution_id, body) VALUES (?, ?)
    ON CONFLICT (execution_id) DO UPDATE SET body = excluded.body"""
PUT_STEP = """INSERT INTO step_results (execution_id, position, body, output) VALUES (?, ?, ?, ?)
    ON CONFLICT (execution_id, position) DO UPDATE
    SET body = excluded.body, output = excluded.output"""
DROP_STEPS = "DELETE FROM step_results WHERE execution_id = ?"

_OWN_ROWS = ("version", "worker", "fence", "due_at", "variables", "step_results", "output")
_write_head = writer_of(Execution, _OWN_ROWS)
_write_step = writer_of(StepResult, ["output"])
_read_execution = reader_of(Execution)
_read_step = reader_of(StepResult)


def decode(row: Row) -> Execution:
    """The execution in a row of `COLUMNS`."""
    version, worker, fence, due_at, body, output, variables, steps = row
    data: dict[str, Any] = value_of(body)
    data.update(version=version, worker=worker, fence=fence, due_at=due_at)
    data["output"] = None if output is None else value_of(output)
    data["variables"] = {} if variables is None else value_of(variables)
    data["step_results"] = {}
    run = _read_execution(data)
    if steps is not None:
        object.__setattr__(run, "step_results", dict(_results(steps)))
    return run


def _results(steps: str) -> Iterator[tuple[str, StepResult]]:
    """Name and result in the order of their positions."""
    for _, body, *output in sorted(value_of(f"[{steps}]"), key=lambda step: step[0]):
        name = body.pop("name")
        body["output"] = output[0] if output else None
        yield name, _read_step(body)


FETCH = Fetch(
    "executions", SELECT + "r.id = ?", decode, "SELECT version FROM executions WHERE id = ?"
)


def writes(run: Execution, base: Execution | None) -> tuple[list[Write], int]:
    """
    The writes that store *run* over *base* (what is stored at its version, None: unknown), and
    how much text that is.
    """
    found = [_head(run, base)]
    if base is None or base.variables is not run.variables:
        found.append((PUT_VARIABLES, (run.id, text_of(run.variables)), None))
    found.extend(_steps_writes(run, base))
    return found, sum(len(text) for _, values, _ in found for text in values if type(text) is str)


def _head(run: Execution, base: Execution | None) -> Write:
    output = None if run.output is None else text_of(run.output)
    last = (run.fence, run.version + 1, text_of(_write_head(run)), output, run.id)
    stale = ("executions", run.id)
    if run.version and base is not None and _place(base) == _place(run):
        return STAY, (*last, run.version), stale
    if run.version:
        return MOVE, (*_place(run), *last, run.version), stale
    return INSERT, (*_place(run), *last), stale


def _place(run: Execution) -> tuple[Any, ...]:
    """Every column that an index or a filter looks at."""
    return (
        run.status.value,
        run.completed_at,
        run.due_at,
        run.worker,
        run.owner_id,
        run.workflow_id,
        run.accepted_at,
        1 if run.secrets else 0,
    )


def _steps_writes(run: Execution, base: Execution | None) -> Iterator[Write]:
    known: Mapping[str, StepResult] = {} if base is None else base.step_results
    if run.version and (base is None or list(run.step_results)[: len(known)] != list(known)):
        yield DROP_STEPS, (run.id,), None
        known = {}
    for position, (name, result) in enumerate(run.step_results.items()):
        stored = known.get(name)
        if stored is result or (stored is not None and stored == result):
            continue
        body = {"name": name, **_write_step(result)}
        values = (run.id, position, text_of(body), text_of(result.output))
        yield PUT_STEP, values, None
