"""Approvals for the pages: the inbox, and the review of one approval."""

from collections.abc import Mapping, Sequence
from enum import StrEnum

from attrs import evolve, frozen

from wfcore.errors import Forbidden
from wfcore.model.access import Caller, Principal
from wfcore.model.approval import Approval, ApprovalHead, ApprovalStatus
from wfcore.model.page import NEWEST, Page, PageCursor, PageRequest
from wfcore.model.workflow import Workflow
from wfcore.ports.records import ApprovalFilter
from wfcore.rules.approval.machine import APPROVAL, Approve, Choice, Reject
from wfcore.rules.auth.access import is_approver, sees_execution
from wfcore.usecases.approvals.approvals import list_approvals, read_approval
from wfcore.usecases.approvals.confirming import require_passkey_for
from wfcore.usecases.approvals.deciding import require_may
from wfcore.usecases.reading import execution_of
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
    Tab.DECIDED: ApprovalFilter(statuses=tuple(sorted(APPROVAL.final))),
}


@frozen
class Inbox:
    """A page of one tab, and the names of its workflows by id."""

    found: Page[ApprovalHead]
    names: Mapping[str, str]


async def read_inbox(
    services: Services,
    who: Principal,
    tab: Tab,
    page: PageRequest,
    workflow_id: str | None = None,
    text: str = "",
) -> Inbox:
    """
    The inbox of *who*: open approvals by their expiry, decided approvals by age. AC-5.

    With *text*: the approvals that contain *text*, among the next `SEARCHED` approvals; `next`
    continues the search.
    """
    where = evolve(_SHOWN[tab], workflow_id=workflow_id)
    page = evolve(page, after=page.after or (_FIRST if where.soonest else NEWEST))
    if text:
        found = await _search(services, who, page, where, text.lower())
    else:
        found = await list_approvals(services, who, page, where)
    async with services.store.view() as view:
        ids = {one.workflow_id for one in found.rows}
        names = {one.id: one.name for one in await view.some(Workflow, ids)}
    return Inbox(found, names)


_FIRST = PageCursor(-1, "")
"""The cursor before every row of a list by expiry: the list's first page, without a count."""
MOST_WAITING = 1_000
"""The number up to which the approvals of a tab are counted."""


async def count_of(services: Services, who: Principal, tab: Tab) -> int:
    """The number of approvals in *tab* for *who*, up to one more than `MOST_WAITING`. AC-5."""
    mine = evolve(_SHOWN[tab], account_id=who.account.id, email=who.account.email)
    async with services.store.view() as view:
        return await view.approvals.count(mine, MOST_WAITING + 1)


SEARCHED, _AT_ONCE = 400, 200
"""The approvals that one search reads, and the approvals read at a time."""


async def _search(
    services: Services, who: Principal, page: PageRequest, where: ApprovalFilter, text: str
) -> Page[ApprovalHead]:
    """Search by reading each approval, because the store seals the texts of approvals."""
    found, at = list[ApprovalHead](), PageRequest(size=_AT_ONCE, after=page.after)
    for _ in range(SEARCHED // _AT_ONCE):
        part = await list_approvals(services, who, at, where)
        async with services.store.view() as view:
            ids = {one.workflow_id for one in part.rows}
            names = {one.id: one.name for one in await view.some(Workflow, ids)}
        found += [one for one in part.rows if text in _words(one, names)]
        if part.next is None or len(found) >= page.size:
            break
        at = PageRequest(size=_AT_ONCE, after=part.next)
    next = part.next
    if len(found) > page.size:
        last = found[page.size - 1]
        next = PageCursor(last.expires_at if where.soonest else last.created_at, last.id)
    return Page(tuple(found[: page.size]), None, 1, page.size, next)


def _words(approval: ApprovalHead, names: Mapping[str, str]) -> str:
    """The searchable text of an approval."""
    titles = [group.title or group.name for group in approval.groups]
    named = names.get(approval.workflow_id, "")
    return "\n".join([approval.message, approval.step_name, named, approval.id, *titles]).lower()


@frozen
class Review:
    """
    One approval for a person who may see it. `barred`: the reason for which the person may not
    approve; None: the person may approve. `rejects`: whether the person may reject, or request
    changes if the step allows changes. `execution_id`: the execution, if the person sees the
    execution. `delegates`: whether the person may delegate the decision. `released`: the number of
    rows of each group of an approved approval. Guests see only these numbers. PL-4.
    """

    approval: Approval
    workflow_name: str
    barred: str | None
    rejects: bool
    execution_id: str | None
    delegates: bool
    released: Sequence[tuple[str, int]] = ()


async def review_for(services: Services, who: Caller, approval_id: str) -> Review:
    """
    One approval, open or not, and the actions that *who* may take. AP-10, AP-18, PL-4.

    Raises `NotFound`, `SignInFirst`.
    """
    approval = await read_approval(services, who, approval_id)
    async with services.store.view() as view:
        whole, share = await approval_for(view, who, approval_id)
        run = await execution_of(view, approval.execution_id)

    def barred(decision: Choice) -> str | None:
        try:
            require_may(approval, who, share, decision, services.clock.deadline_now())
        except Forbidden as refused:
            return refused.message
        return None

    name = run.workflow_name if run else ""
    sees = run is not None and isinstance(who, Principal) and sees_execution(run, who.account.id)
    origin = approval.execution_id if sees else None
    delegates = approval.delegable and is_approver(approval, who, share)
    rejects = barred(Reject()) is None
    why = barred(Approve())
    if why is None and approval.status is ApprovalStatus.PENDING:
        try:
            await require_passkey_for(services, who, approval)
        except Forbidden as lacking:
            why = lacking.message
    return Review(approval, name, why, rejects, origin, delegates, _released(whole))


def _released(approval: Approval) -> Sequence[tuple[str, int]]:
    if approval.status is not ApprovalStatus.APPROVED:
        return ()
    return [(group.title or group.name, group.count) for group in approval.groups]
