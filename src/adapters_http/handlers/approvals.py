"""Approvals: reading and deciding. Spec: v1 approvals, approval-response endpoint."""

from functools import partial

from adapters_http.handlers.artifacts import attachment_url
from adapters_http.json_text import dump_json
from adapters_http.params import enum_values, flag, oldest_first, page, span
from adapters_http.request import Request
from wfcore.model.approval import Approval, ApprovalStatus, DecisionSource
from wfcore.ports.records import ApprovalFilter
from wfcore.rules.approval.machine import Approve, Choice, Reject, Revise
from wfcore.rules.limits import APPROVAL_PAGE
from wfcore.time import EpochMs
from wfcore.usecases.approvals import approvals, deciding, several
from wfcore.usecases.approvals.deciding import Decide, has_many_rows
from wfcore.usecases.approvals.delegating import delegate_approval
from wfcore.usecases.signing import signing_keys
from wfcore.wire.approvals import (
    ApprovalDetail,
    ApprovalPage,
    ExecutionApprovals,
    approval_detail,
    approval_page,
    execution_approvals,
)
from wfcore.wire.common import APPROVALS
from wfcore.wire.converter import plain
from wfcore.wire.decisions import (
    DecisionResults,
    DecisionView,
    command,
    decision_results,
    decision_view,
)


async def list_all(request: Request) -> ApprovalPage:
    """The approvals that the caller may see, newest first by default, without their rows."""
    since, until = span(request)
    soonest = request.query("sort") == "expiresAt"
    where = ApprovalFilter(
        statuses=enum_values(request, "status", ApprovalStatus),
        workflow_id=request.query("workflowId") or None,
        execution_id=request.query("executionId") or None,
        since=since,
        until=until,
        waiting=flag(request, "waitingForMe"),
        oldest_first=not soonest and oldest_first(request, "createdAt"),
        soonest=soonest,
    )
    wanted = page(request, APPROVAL_PAGE, APPROVALS)
    found = await approvals.list_approvals(request.services, request.who, wanted, where)
    known = await approvals.standings(request.services, request.who, found.rows)
    return approval_page(found, known)


async def read(request: Request) -> ApprovalDetail | bytes:
    """One approval with rows, columns and history."""
    found = await approvals.read_approval(request.services, request.who, request.params["id"])
    return await _detail(request, found)


async def _detail(request: Request, approval: Approval) -> ApprovalDetail | bytes:
    """The detail; with many rows it is encoded outside of the event loop."""
    known = await approvals.standings(request.services, request.who, (approval,))
    link = partial(attachment_url, request, await signing_keys(request.services))
    show = partial(approval_detail, approval, link, known[approval.id])
    if not has_many_rows(approval):
        return show()
    return await request.services.offload(lambda: dump_json(plain(show())))


async def of_execution(request: Request) -> ExecutionApprovals:
    """All approvals of one execution, without their rows."""
    id = request.params["executionId"]
    found = await approvals.approvals_of(request.services, request.who, id)
    known = await approvals.standings(request.services, request.who, found)
    return execution_approvals(found, known)


async def approve(request: Request) -> ApprovalDetail | bytes:
    """Release the rows, edited or as they are."""
    body = request.body
    decision = Approve(body.edited_items, body.answers)
    return await _decided(request, decision, body.expected_items_hash)


async def reject(request: Request) -> ApprovalDetail | bytes:
    """Stop the execution."""
    return await _decided(request, Reject())


async def revise(request: Request) -> ApprovalDetail | bytes:
    """Ask for changes: the execution goes back."""
    return await _decided(request, Revise())


async def delegate(request: Request) -> ApprovalDetail | bytes:
    """Let somebody else decide."""
    body = request.body
    until = None if body.until is None else EpochMs(body.until)
    id, source = request.params["id"], DecisionSource.API
    found = await delegate_approval(
        request.services, request.who, id, body.to, until, source, request.origin
    )
    return await _detail(request, found)


async def decide_several(request: Request) -> DecisionResults:
    """Decide several, each by itself."""
    body = request.body
    decisions = [
        Decide(
            one.approval_id,
            command(one.decision),
            DecisionSource.API,
            body.comment,
            one.expected_items_hash,
        )
        for one in body.decisions
    ]
    results = await several.decide_several(request.services, request.who, decisions, request.origin)
    return decision_results(results)


async def _decided(
    request: Request, decision: Choice, items_hash: str | None = None
) -> ApprovalDetail | bytes:
    decide = Decide(
        request.params["id"], decision, DecisionSource.API, request.body.comment, items_hash
    )
    return await _detail(request, await _decide(request, decide))


async def respond(request: Request) -> DecisionView:
    """The decision of an external system."""
    body = request.body
    decision = command(body.decision, answers=body.answers)
    decide = Decide(
        body.approval_id, decision, DecisionSource.WEBHOOK, body.comment, body.expected_items_hash
    )
    return decision_view(await _decide(request, decide), body.decision)


async def _decide(request: Request, decide: Decide) -> Approval:
    return await deciding.decide_approval(request.services, request.who, decide, request.origin)
