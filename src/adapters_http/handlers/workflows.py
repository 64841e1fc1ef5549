"""Workflows, and starting them. Spec: v1 endpoints, workflows."""

from adapters_http.params import idempotency, page, rested, wait_ms
from adapters_http.request import Ask
from wfcore.model.execution import ExecutionStatus
from wfcore.rules.limits import WORKFLOW_PAGE
from wfcore.usecases.executions import starting
from wfcore.usecases.executions.starting import Started
from wfcore.usecases.workflows import workflows
from wfcore.usecases.workflows.workflows import Defined
from wfcore.wire.shapes import StartView, WorkflowPage, WorkflowView
from wfcore.wire.views import WORKFLOWS, shown_of, start_view, workflow_view

REPLAYED = (b"idempotent-replayed", b"true")


async def list_all(ask: Ask) -> WorkflowPage:
    """The workflows that the key's owner sees, by name."""
    wanted = page(ask, WORKFLOW_PAGE, WORKFLOWS)
    found = await workflows.list_workflows(ask.services, ask.who, wanted)
    rows = [_view(one) for one in found.rows]
    return WorkflowPage(items=rows, **shown_of(found, WORKFLOWS))


async def read(ask: Ask) -> WorkflowView:
    """One workflow with its definition."""
    return _view(await workflows.read_workflow(ask.services, ask.who, ask.params["id"]))


def _view(found: Defined) -> WorkflowView:
    return workflow_view(found.workflow, found.definition, found.triggers)


async def start(ask: Ask) -> StartView:
    """Accept an execution; with `wait`, answer when it rests."""
    wait = wait_ms(ask)
    started = await starting.start_execution(
        ask.services,
        ask.who,
        ask.params["id"],
        ask.body.inputs,
        monitored=ask.body.enable_monitoring,
        callback_url=ask.body.callback_url,
        idempotency=idempotency(ask),
        origin=ask.origin,
    )
    if started.replayed:
        ask.headers.append(REPLAYED)
    return await _started(ask, started, wait)


async def redrive(ask: Ask) -> StartView:
    """Accept a new execution that goes on where an old one stopped."""
    wait = wait_ms(ask)
    started = await starting.redrive(ask.services, ask.who, ask.params["id"], origin=ask.origin)
    return await _started(ask, started, wait)


async def _started(ask: Ask, started: Started, wait: int | None) -> StartView:
    status = ExecutionStatus.PENDING
    if wait is not None:
        run = await rested(ask, started.execution_id, wait)
        status = run.status
    return start_view(started.execution_id, started.workflow_id, started.started_at, status)
