"""Operations on approvals. An operator may decide every approval."""

from collections.abc import Mapping, Sequence
from typing import Any

from wfcore.errors import InvalidInput, NotFound
from wfcore.model.access import OPERATOR, Caller, Guest, Principal
from wfcore.model.approval import ApprovalStatus, DecisionSource
from wfcore.model.json import JsonObject
from wfcore.model.page import PageRequest
from wfcore.ports.records import ApprovalFilter
from wfcore.rules.approval.machine import Approve, Choice, Reject, Revise
from wfcore.rules.mailbox import same_name
from wfcore.time import EpochMs
from wfcore.usecases.administration import lookup
from wfcore.usecases.administration.operator import Answer, Operator, checked_size, shown
from wfcore.usecases.approvals import approvals, deciding
from wfcore.usecases.approvals.deciding import Decide
from wfcore.usecases.approvals.delegating import delegate_approval
from wfcore.usecases.services import Services
from wfcore.wire.approvals import approval_detail, approval_view
from wfcore.wire.converter import plain


async def list_approvals(
    at: Operator,
    status: Sequence[ApprovalStatus] = (),
    workflow: str | None = None,
    execution: str | None = None,
    since: int | None = None,
    until: int | None = None,
    oldest: bool = False,
    limit: int = 50,
) -> Answer:
    """Approvals, newest first; `since` and `until` in milliseconds since 1970."""
    id = (await lookup.workflow(at.services, workflow)).workflow.id if workflow else None
    where = ApprovalFilter(
        statuses=tuple(status),
        workflow_id=id,
        execution_id=execution,
        since=None if since is None else EpochMs(since),
        until=None if until is None else EpochMs(until),
        oldest_first=oldest,
    )
    page = PageRequest(1, checked_size(limit))
    found = await approvals.list_approvals(at.services, OPERATOR, page, where)
    names = await lookup.workflow_names(at.services, [one.workflow_id for one in found.rows])
    rows = [
        {**plain(approval_view(one)), "workflowName": names.get(one.workflow_id)}
        for one in found.rows
    ]
    return {"items": rows, "total": found.total}


async def read_approval(at: Operator, id: str) -> Answer:
    """One approval with its rows."""
    return shown(approval_detail(await approvals.read_approval(at.services, OPERATOR, id)))


async def approve(
    at: Operator,
    id: str,
    comment: str | None = None,
    expect: str | None = None,
    alone: bool = False,
    rows: Mapping[str, Sequence[JsonObject]] | None = None,
    answers: Mapping[str, Any] | None = None,
) -> Answer:
    """
    Release the rows, as they are or these `rows` by group, if they still have the hash `expect`;
    `alone`: that is enough, however many approvals are required.
    """
    return await _decide(at, id, Approve(rows, answers), comment, expect, alone)


async def reject(at: Operator, id: str, comment: str | None = None) -> Answer:
    """Stop the execution; no later step runs."""
    return await _decide(at, id, Reject(), comment)


async def revise(at: Operator, id: str, comment: str) -> Answer:
    """Ask for changes; the execution goes back to the step that `onRevise` names."""
    return await _decide(at, id, Revise(), comment)


async def _decide(
    at: Operator,
    id: str,
    choice: Choice,
    comment: str | None,
    expect: str | None = None,
    alone: bool = False,
) -> Answer:
    asked = Decide(id, choice, DecisionSource.CONSOLE, comment, expect, alone)
    return shown(
        approval_detail(
            await deciding.decide_approval(at.services, OPERATOR, asked, origin=at.origin)
        )
    )


async def delegate(at: Operator, id: str, by: str, to: str, until: int | None = None) -> Answer:
    """Let `to` decide in the place of the approver `by`, where the step is delegable."""
    await approvals.read_approval(at.services, OPERATOR, id)
    who, source = await _approver(at.services, by, id), DecisionSource.CONSOLE
    end = None if until is None else EpochMs(until)
    try:
        done = await delegate_approval(at.services, who, id, to, end, source, at.origin)
    except NotFound:
        raise InvalidInput("by", f"{by} is not an approver of {id}") from None
    return shown(approval_detail(done))


async def _approver(services: Services, email: str, approval_id: str) -> Caller:
    """The account with that email, or the guest whom a personal link addresses by it."""
    async with services.store.view() as view:
        account = await view.accounts.by_email(same_name(email))
    return Principal(account) if account else Guest(same_name(email), approval_id)
