"""Approvals: reading and deciding. Spec: v1 approvals, approval-response endpoint."""

from adapters_http.json import dump_json
from adapters_http.params import flag, members, oldest_first, page, span
from adapters_http.request import Ask
from wfcore.model.approval import Approval, ApprovalStatus, DecisionSource, Verdict
from wfcore.ports.records import ApprovalFilter
from wfcore.rules.approval.machine import Approve, Reject
from wfcore.rules.limits import APPROVAL_PAGE
from wfcore.usecases.approvals import approvals
from wfcore.usecases.approvals.approvals import Decide, has_many_rows
from wfcore.wire.converter import plain
from wfcore.wire.shapes import ApprovalDetail, ApprovalPage, DecisionView, ExecutionApprovals
from wfcore.wire.views import (
    APPROVALS,
    approval_detail,
    approval_page,
    decision_view,
    execution_approvals,
)


async def list_all(ask: Ask) -> ApprovalPage:
    """The approvals that the caller may see, newest first, without their rows."""
    since, until = span(ask)
    where = ApprovalFilter(
        statuses=members(ask, "status", ApprovalStatus),
        workflow_id=ask.query("workflowId") or None,
        execution_id=ask.query("executionId") or None,
        since=since,
        until=until,
        waiting=flag(ask, "waitingForMe"),
        oldest_first=oldest_first(ask, "createdAt"),
    )
    wanted = page(ask, APPROVAL_PAGE, APPROVALS)
    found = await approvals.list_approvals(ask.services, ask.who, wanted, where)
    return approval_page(found)


async def read(ask: Ask) -> ApprovalDetail | bytes:
    """One approval with rows, columns and history."""
    found = await approvals.read_approval(ask.services, ask.who, ask.params["id"])
    return await _detail(ask, found)


async def _detail(ask: Ask, approval: Approval) -> ApprovalDetail | bytes:
    """The detail; that of many rows encoded already, aside of the event loop."""
    if not has_many_rows(approval):
        return approval_detail(approval)
    return await ask.services.offload(lambda: dump_json(plain(approval_detail(approval))))


async def of_execution(ask: Ask) -> ExecutionApprovals:
    """All approvals of one execution, without their rows."""
    id = ask.params["executionId"]
    return execution_approvals(await approvals.approvals_of(ask.services, ask.who, id))


async def approve(ask: Ask) -> ApprovalDetail | bytes:
    """Release the rows, edited or as they are."""
    body = ask.body
    return await _decided(ask, Approve(body.edited_items), body.expected_items_hash)


async def reject(ask: Ask) -> ApprovalDetail | bytes:
    """Stop the execution."""
    return await _decided(ask, Reject())


async def _decided(
    ask: Ask, decision: Approve | Reject, items_hash: str | None = None
) -> ApprovalDetail | bytes:
    asked = Decide(ask.params["id"], decision, DecisionSource.API, ask.body.comment, items_hash)
    return await _detail(ask, await _decide(ask, asked))


async def respond(ask: Ask) -> DecisionView:
    """The decision of an external system."""
    decision = Approve() if ask.body.decision is Verdict.APPROVE else Reject()
    body = ask.body
    asked = Decide(
        body.approval_id, decision, DecisionSource.WEBHOOK, body.comment, body.expected_items_hash
    )
    return decision_view(await _decide(ask, asked), body.decision)


async def _decide(ask: Ask, asked: Decide) -> Approval:
    return await approvals.decide_approval(ask.services, ask.who, asked, ask.origin)
