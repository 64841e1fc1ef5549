"""Executions: reading and cancelling. Spec: v1 endpoints, executions."""

from typing import Any

from starlette.responses import Response

from adapters_http.downloads import output_response
from adapters_http.params import (
    event_number,
    members,
    oldest_first,
    page,
    rested,
    span,
    wait_ms,
    with_outputs,
)
from adapters_http.request import Ask
from wfcore.model.execution import Execution, ExecutionStatus, TriggerSource
from wfcore.ports.records import ExecutionFilter
from wfcore.rules.limits import WORKFLOW_PAGE
from wfcore.usecases.executions import executions
from wfcore.usecases.executions.explaining import explain_execution
from wfcore.wire.converter import plain
from wfcore.wire.explanation import ExplanationView, explanation_view
from wfcore.wire.results import StepView
from wfcore.wire.shapes import DefinitionView, ExecutionPage, LogPage, ResultView, StatusView
from wfcore.wire.views import (
    EXECUTIONS,
    definition_view,
    execution_page,
    log_view,
    result_view,
    status_view,
    step_view,
)


async def list_all(ask: Ask) -> ExecutionPage:
    """The caller's executions, newest first."""
    found = await executions.list_executions(
        ask.services,
        ask.who,
        page(ask, WORKFLOW_PAGE, EXECUTIONS),
        _filter(ask),
    )
    return execution_page(found, await executions.starter_names(ask.services, found.rows))


def _filter(ask: Ask) -> ExecutionFilter:
    since, until = span(ask)
    return ExecutionFilter(
        workflow_id=ask.query("workflowId") or None,
        statuses=members(ask, "status", ExecutionStatus),
        sources=members(ask, "triggerSource", TriggerSource),
        since=since,
        until=until,
        oldest_first=oldest_first(ask, "startedAt"),
    )


async def read(ask: Ask) -> object:
    """The status view; with `wait`, as soon as the execution rests."""
    wait, outputs = wait_ms(ask), with_outputs(ask)
    if wait is None:
        run = await executions.read_execution(ask.services, ask.who, ask.params["id"])
    else:
        run = await rested(ask, ask.params["id"], wait)
    if not outputs:
        return _without_outputs(await _status(ask, run))
    answers, state = ask.context.answers, (run.version, await _redriven_as(ask, run))
    if (known := answers.known(run.id, state)) is not None:
        return known
    return answers.keep(run.id, state, await _status(ask, run))


async def _status(ask: Ask, run: Execution) -> StatusView:
    names = await executions.starter_names(ask.services, [run])
    return status_view(run, names, await _redriven_as(ask, run))


async def _redriven_as(ask: Ask, run: Execution) -> str | None:
    return await executions.redriven_as(ask.services, run)


async def definition(ask: Ask) -> DefinitionView:
    """The definition that an execution runs by."""
    found = await executions.read_definition(ask.services, ask.who, ask.params["id"])
    return definition_view(*found)


async def result(ask: Ask) -> object:
    """The result of an ended execution; with `wait`, as soon as there is one."""
    wait, outputs = wait_ms(ask), with_outputs(ask)
    if wait is not None:
        await rested(ask, ask.params["id"], wait)
    run = await executions.read_result(ask.services, ask.who, ask.params["id"])
    return result_view(run) if outputs else _without_outputs(result_view(run))


def _without_outputs(view: StatusView | ResultView) -> Any:
    """The same without the outputs of steps, which may be most of it."""
    answer: Any = plain(view)
    for step in answer["stepResults"].values():
        del step["output"]
    return answer


async def step(ask: Ask) -> StepView | Response:
    """The result of one step; with `download` its output as a file."""
    run = await executions.read_execution(ask.services, ask.who, ask.params["id"])
    found = step_view(run, ask.params["key"])
    if ask.query("download") is None:
        return found
    return output_response(ask.params["key"], found.output)


async def logs(ask: Ask) -> LogPage:
    """Output lines of an execution, whoever started it."""
    id, step = ask.params["id"], ask.query("step") or None
    _, found, next = await executions.read_logs(
        ask.services, ask.who, id, event_number("after", ask.query("after")), step
    )
    return LogPage([log_view(event) for event in found], next)


async def explain(ask: Ask) -> ExplanationView:
    """Why nothing is happening, or what happens next."""
    found = await explain_execution(ask.services, ask.who, ask.params["id"])
    return explanation_view(found.run, found.at, found.lines)


async def cancel(ask: Ask) -> StatusView:
    """End an execution at once."""
    id = ask.params["id"]
    run = await executions.cancel_execution(ask.services, ask.who, id, ask.origin)
    return await _status(ask, run)
