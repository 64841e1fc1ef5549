"""Listing and reading approvals. AC-5, AP-10."""

from collections.abc import Mapping, Sequence

from attrs import evolve, frozen

from wfcore.errors import Forbidden
from wfcore.model.access import OPERATOR, Caller, Principal, Share, Unrestricted
from wfcore.model.approval import (
    Approval,
    ApprovalHead,
    ApprovalStatus,
)
from wfcore.model.page import Page, PageRequest
from wfcore.model.workflow import Workflow
from wfcore.ports.records import ApprovalFilter
from wfcore.ports.store import View
from wfcore.rules.approval.machine import (
    Approve,
    Choice,
    expired,
    has_assented,
)
from wfcore.rules.auth.access import (
    sees_approval,
    shown_to,
)
from wfcore.time import EpochMs
from wfcore.usecases.approvals.deciding import require_may
from wfcore.usecases.approvals.expiry import expire_all_due, expire_if_due
from wfcore.usecases.reading import execution_of
from wfcore.usecases.services import Services
from wfcore.usecases.unit_of_work import (
    approval_for,
    execution_for,
)
from wfcore.wire.approvals import Standing

EVERY_APPROVAL = ApprovalFilter()


async def list_approvals(
    services: Services,
    who: Principal | Unrestricted,
    page: PageRequest,
    where: ApprovalFilter = EVERY_APPROVAL,
) -> Page[ApprovalHead]:
    """The approvals that the caller may see; the account in *where* is ignored. AC-5."""
    await expire_all_due(services)
    if who is not OPERATOR:
        where = evolve(where, account_id=who.account.id, email=who.account.email)
    async with services.store.view() as view:
        return await view.approvals.list(where, page)


async def read_approval(
    services: Services, who: Caller | Unrestricted, approval_id: str
) -> Approval:
    """The approval, with the parts that *who* may see. Raises `NotFound`. PL-4."""
    async with services.store.view() as view:
        approval, _ = await approval_for(view, who, approval_id)
    if await expire_if_due(services, approval):
        async with services.store.view() as view:
            approval, _ = await approval_for(view, who, approval_id)
    return shown_to(approval, who)


@frozen
class Question:
    """An approval for a person to decide, with the name of its workflow."""

    approval: Approval
    workflow_name: str


async def question_for(
    services: Services, who: Principal, approval_id: str, decision: Choice
) -> Question:
    """
    An approval, open or not, for a caller who may make *decision*. AP-10, AP-18.

    Raises `NotFound`; `Forbidden` if the caller sees the approval but is not an approver, or
    started the execution.
    """
    approval = await read_approval(services, who, approval_id)
    async with services.store.view() as view:
        _, share = await approval_for(view, who, approval_id)
        run = await execution_of(view, approval.execution_id)
    require_may(approval, who, share, decision, services.clock.deadline_now())
    return Question(approval, run.workflow_name if run else "")


async def standings(
    services: Services, who: Principal, found: Sequence[Approval]
) -> Mapping[str, Standing]:
    """
    Whether *who* can approve each approval of *found* now, by the approval's id. AP-10, AP-16.
    """
    now = services.clock.deadline_now()
    ids = {one.workflow_id for one in found}
    async with services.store.view() as view:
        names = {one.id: one.name for one in await view.some(Workflow, ids)}
        shares = {id: await view.get(Share, id, who.account.id) for id in ids}
    return {
        one.id: Standing(
            names.get(one.workflow_id, ""), why_not(one, who, shares[one.workflow_id], now)
        )
        for one in found
    }


def why_not(approval: Approval, who: Caller, share: Share | None, now: EpochMs) -> str | None:
    """The reason, in words, for which *who* may not approve now; None if *who* may approve."""
    if approval.status is not ApprovalStatus.PENDING or expired(approval, now):
        return "The approval has already been decided"
    try:
        require_may(approval, who, share, Approve(), now)
    except Forbidden as refused:
        return refused.message
    return "You have approved this already" if has_assented(approval, who) else None


async def approvals_of(
    services: Services, who: Principal | Unrestricted, execution_id: str
) -> Sequence[Approval]:
    """
    The approvals of one execution that the caller may see, newest first. AC-5.

    Raises `NotFound` if the caller sees neither the execution nor any of its approvals.
    """
    async with services.store.view() as view:
        found = list(await view.approvals.of_execution(execution_id))
        visible = [one for one in found if await _sees(view, who, one)]
        if not visible:
            await execution_for(view, who, execution_id)
    if any([await expire_if_due(services, one) for one in visible]):
        return [await read_approval(services, who, one.id) for one in visible]
    return visible


async def _sees(view: View, who: Principal | Unrestricted, approval: Approval) -> bool:
    if who is OPERATOR:
        return True
    share = await view.get(Share, approval.workflow_id, who.account.id)
    return sees_approval(approval, who, share)
