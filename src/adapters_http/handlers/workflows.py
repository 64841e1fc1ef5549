"""Workflows, and starting them. Spec: v1 endpoints, workflows."""

from adapters_http.handlers.executions import rested
from adapters_http.json_text import dump_json
from adapters_http.params import idempotency, page, wait_ms
from adapters_http.request import Request
from wfcore.model.execution import ExecutionStatus
from wfcore.rules.limits import WORKFLOW_PAGE
from wfcore.usecases.approvals.deciding import has_many_rows
from wfcore.usecases.executions import gates, redriving, starting
from wfcore.usecases.executions.starting import StartReceipt
from wfcore.usecases.workflows import state, workflows
from wfcore.usecases.workflows.workflows import WorkflowRow
from wfcore.wire.common import WORKFLOWS, shown_of
from wfcore.wire.converter import plain
from wfcore.wire.decisions import GateView, gate_view
from wfcore.wire.executions import RedrivePlanView, StartView, redrive_plan_view
from wfcore.wire.requests import DefinitionChoice
from wfcore.wire.workflows import (
    WorkflowPage,
    WorkflowStateView,
    WorkflowView,
    state_view,
    workflow_view,
)

REPLAYED = (b"idempotent-replayed", b"true")


async def list_all(request: Request) -> WorkflowPage:
    """The workflows that the key's owner sees, by name."""
    wanted = page(request, WORKFLOW_PAGE, WORKFLOWS)
    found = await workflows.list_workflows(request.services, request.who, wanted)
    rows = [_view(one, whole=False) for one in found.rows]
    return WorkflowPage(items=rows, **shown_of(found, WORKFLOWS))


async def read(request: Request) -> WorkflowView:
    """One workflow with its definition."""
    return _view(await workflows.read_workflow(request.services, request.who, request.params["id"]))


def _view(found: WorkflowRow, *, whole: bool = True) -> WorkflowView:
    return workflow_view(found.workflow, found.definition, found.triggers, whole=whole)


async def read_state(request: Request) -> WorkflowStateView:
    """The workflow's state, of secret names without the values."""
    id = request.params["id"]
    return state_view(id, await state.read_state(request.services, request.who, id))


async def set_state(request: Request) -> WorkflowStateView:
    """Values for some names of the workflow's state."""
    id, changes = request.params["id"], request.body.state
    rows = await state.set_state(request.services, request.who, id, changes, request.origin)
    return state_view(id, rows)


async def start(request: Request) -> StartView:
    """Accept an execution; with `wait`, answer when it rests."""
    wait = wait_ms(request)
    started = await starting.start_execution(
        request.services,
        request.who,
        request.params["id"],
        request.body.inputs,
        monitored=request.body.enable_monitoring,
        callback_url=request.body.callback_url,
        idempotency=idempotency(request),
        like=request.body.like,
        reference=request.body.reference,
        origin=request.origin,
    )
    if started.replayed:
        request.headers.append(REPLAYED)
    return await _started(request, started, wait)


async def open_gate(request: Request) -> GateView | bytes:
    """Ask people; with `wait`, answer when they have decided."""
    wait = wait_ms(request)
    started = await gates.open_gate(
        request.services,
        request.who,
        request.json,
        idempotency=idempotency(request),
        origin=request.origin,
    )
    if started.replayed:
        request.headers.append(REPLAYED)
    return await _gate(request, started.execution_id, wait)


async def read_gate(request: Request) -> GateView | bytes:
    """What people have said so far; with `wait`, as soon as they have decided."""
    return await _gate(request, request.params["id"], wait_ms(request))


async def _gate(request: Request, id: str, wait: int | None) -> GateView | bytes:
    """The gate, encoded outside of the event loop if it has many rows."""
    config = request.context.config
    found = await gates.read_gate(
        request.services,
        request.who,
        id,
        wait or 0,
        leaving=lambda: config.ending,
        still=request.readmit,
    )
    url = f"{request.base_url}/approvals/{found.approval.id}" if config.console else None
    if not has_many_rows(found.approval):
        return gate_view(found.approval, url)
    return await request.services.offload(lambda: dump_json(plain(gate_view(found.approval, url))))


async def redrive(request: Request) -> StartView | RedrivePlanView:
    """Accept a new execution that goes on where an earlier one stopped, or say what it would do."""
    wait, body = wait_ms(request), request.body
    newest = body.definition is DefinitionChoice.NEWEST
    wanted = redriving.Redrive(body.from_, newest, body.inputs, body.digest)
    services, who, id = request.services, request.who, request.params["id"]
    if body.dry_run:
        found = await redriving.preview_redrive(services, who, id, wanted)
        return redrive_plan_view(found.plan, found.digest, newest, found.revision)
    started = await redriving.redrive(services, who, id, wanted, origin=request.origin)
    return await _started(request, started, wait)


async def _started(request: Request, started: StartReceipt, wait: int | None) -> StartView:
    status = ExecutionStatus.PENDING
    if wait is not None:
        run = await rested(request, started.execution_id, wait)
        status = run.status
    return StartView(started.execution_id, status, started.workflow_id, started.started_at)
