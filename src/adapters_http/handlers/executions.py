"""Executions: reading and cancelling. Spec: v1 endpoints, executions."""

from adapters_http.ask import Ask
from adapters_http.asked import member, page, rested, wait_ms
from wfcore.model.execution import ExecutionStatus
from wfcore.rules.limits import WORKFLOW_PAGE
from wfcore.usecases import executions
from wfcore.usecases.explaining import explain_execution
from wfcore.wire.explanation import ExplanationView, explanation_view
from wfcore.wire.shapes import ExecutionPage, ResultView, StatusView
from wfcore.wire.views import execution_page, result_view, status_view


async def list_all(ask: Ask) -> ExecutionPage:
    """The caller's executions, newest first."""
    found = await executions.list_executions(
        ask.services,
        ask.who,
        page(ask, WORKFLOW_PAGE),
        ask.query("workflowId") or None,
        member(ask, "status", ExecutionStatus),
    )
    return execution_page(found)


async def read(ask: Ask) -> bytes:
    """The status view; with `wait`, as soon as the execution rests."""
    wait = wait_ms(ask)
    if wait is None:
        run = await executions.read_execution(ask.services, ask.who, ask.params["id"])
    else:
        run = await rested(ask, ask.params["id"], wait)
    return ask.context.answers.of(run.id, run.version, lambda: status_view(run))


async def result(ask: Ask) -> ResultView:
    """The result of an ended execution; with `wait`, as soon as there is one."""
    wait = wait_ms(ask)
    if wait is not None:
        await rested(ask, ask.params["id"], wait)
    return result_view(await executions.read_result(ask.services, ask.who, ask.params["id"]))


async def explain(ask: Ask) -> ExplanationView:
    """Why nothing is happening, or what happens next."""
    found = await explain_execution(ask.services, ask.who, ask.params["id"])
    return explanation_view(found.run, found.at, found.lines)


async def cancel(ask: Ask) -> StatusView:
    """End an execution at once."""
    id = ask.params["id"]
    return status_view(await executions.cancel_execution(ask.services, ask.who, id, ask.origin))
