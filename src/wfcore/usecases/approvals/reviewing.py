"""What a person at the pages is shown of approvals: the inbox, and one approval to review."""

from collections.abc import Mapping
from enum import StrEnum

from attrs import evolve, frozen

from wfcore.errors import Forbidden
from wfcore.model.access import Caller, Principal
from wfcore.model.approval import Approval, ApprovalStatus
from wfcore.model.execution import Execution
from wfcore.model.page import Page, PageRequest
from wfcore.model.workflow import Workflow
from wfcore.ports.records import ApprovalFilter
from wfcore.rules.approval.machine import Approve, Choice, Reject
from wfcore.usecases.approvals.approvals import list_approvals, read_approval, require_may
from wfcore.usecases.services import Services
from wfcore.usecases.unit_of_work import approval_for


class Tab(StrEnum):
    """The three parts of an inbox."""

    WAITING = "waiting"
    AGREED = "agreed"
    DECIDED = "decided"


_SHOWN: Mapping[Tab, ApprovalFilter] = {
    Tab.WAITING: ApprovalFilter(waiting=True, soonest=True),
    Tab.AGREED: ApprovalFilter(agreed=True, soonest=True),
    Tab.DECIDED: ApprovalFilter(
        statuses=(ApprovalStatus.APPROVED, ApprovalStatus.REJECTED, ApprovalStatus.CANCELLED)
    ),
}


@frozen
class Inbox:
    """A page of one tab; the names of its workflows by id; how many wait in all."""

    found: Page[Approval]
    names: Mapping[str, str]
    waiting: int


async def read_inbox(
    services: Services, who: Principal, tab: Tab, page: PageRequest, workflow_id: str | None = None
) -> Inbox:
    """What is in the inbox of *who*: open approvals by their expiry, decided ones by age. AC-5."""
    where = evolve(_SHOWN[tab], workflow_id=workflow_id)
    found = await list_approvals(services, who, page, where)
    async with services.store.view() as view:
        ids = {one.workflow_id for one in found.rows}
        names = {one.id: one.name for one in await view.some(Workflow, ids)}
        waiting = found.total if tab is Tab.WAITING and workflow_id is None else None
        if waiting is None:
            mine = evolve(_SHOWN[Tab.WAITING], account_id=who.account.id, email=who.account.email)
            waiting = (await view.approvals.list(mine, PageRequest(1, 1))).total
    return Inbox(found, names, waiting or 0)


@frozen
class Review:
    """
    One approval as somebody sees it who may see it. `barred`: why that person may not approve;
    None: nothing is in the way. `rejects`: whether the person may reject, or ask for changes where
    the step takes them.
    """

    approval: Approval
    workflow_name: str
    barred: str | None
    rejects: bool


async def review_for(services: Services, who: Caller, approval_id: str) -> Review:
    """
    One approval, open or not, and what *who* may do with it. AP-10, AP-18, PL-4.

    Raises `NotFound`, `SignInFirst`.
    """
    approval = await read_approval(services, who, approval_id)
    async with services.store.view() as view:
        _, share = await approval_for(view, who, approval_id)
        run = await view.get(Execution, approval.execution_id)

    def barred(decision: Choice) -> str | None:
        try:
            require_may(approval, who, share, decision, services.clock.deadline_now())
        except Forbidden as refused:
            return refused.message
        return None

    name = run.workflow_name if run else ""
    return Review(approval, name, barred(Approve()), barred(Reject()) is None)
