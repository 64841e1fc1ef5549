"""
The page of one approval. AP-2 to AP-19.

A personal link opens the same page for a guest. PL-1.
"""

from collections.abc import Sequence
from contextvars import copy_context
from functools import partial
from http import HTTPStatus

from attrs import frozen
from starlette.responses import Response

from adapters_http.console.formats import field_text, person
from adapters_http.console.forms import DecisionForm
from adapters_http.console.language import _
from adapters_http.console.paths import see_other
from adapters_http.console.rendering import page
from adapters_http.console.review_rows import columns_for, state_view
from adapters_http.console.words import APPROVALS
from adapters_http.handlers.artifacts import attachment_url
from adapters_http.json_text import dump_json
from adapters_http.request import Request
from wfcore.errors import NotFound, SignInFirst
from wfcore.model.access import Caller
from wfcore.model.approval import (
    Approval,
    ApprovalHead,
    ApprovalStatus,
    DecisionSource,
    HistoryEntry,
)
from wfcore.model.page import PageRequest
from wfcore.model.workflow import Assurance, Column
from wfcore.rules.approval.agreement import items_hash
from wfcore.rules.approval.machine import approvers_now, has_assented, voided_by
from wfcore.rules.approval.released_rows import original_rows
from wfcore.rules.approval.review import CellChange, Total, changes_of, review_rows, totals
from wfcore.rules.approval.typed import choices
from wfcore.rules.notices.facts import MAIL
from wfcore.usecases.accounts.accounts import find_account
from wfcore.usecases.approvals.deciding import has_many_rows
from wfcore.usecases.approvals.reviewing import Review, Tab, read_inbox, review_for
from wfcore.usecases.signing import signing_keys
from wfcore.wire.approvals import stage_views

ROWS_IN_PAGE = 100
"""The most rows in the HTML; the editor fetches all rows, and shows as many rows at a time."""


async def show(request: Request) -> Response:
    """The page. A personal link ends with the approval, or leads to the sign-in. PL-4, PL-5."""
    try:
        found = await review_for(request.services, request.caller, request.params["id"])
    except SignInFirst:
        return see_other(request, f"/approvals/{request.params['id']}")
    over = request.guest is not None and found.approval.status is not ApprovalStatus.PENDING
    return await approval_page(request, found, status=HTTPStatus.GONE if over else HTTPStatus.OK)


def approval_path(request: Request) -> str:
    """The path of the page; for a guest, the path of the personal link."""
    if request.guest is not None:
        return f"/a/{request.params['token']}"
    return f"/approvals/{request.params['id']}"


async def approval_page(
    request: Request,
    found: Review,
    notice: str | None = None,
    comment: str = "",
    status: int = 200,
    wrong: str | None = None,
) -> Response:
    """
    The page. *wrong*: the key of the answer that has the problem in *notice*. With `?print=1` in
    its address the page has all rows and whole texts, for paper.
    """
    approval = found.approval
    prints = request.query("print") == "1"
    keys = await signing_keys(request.services)
    groups, history = await request.services.offload(
        lambda: (
            [(one, columns_for(one), review_rows(approval, one)) for one in approval.groups],
            _history(approval),
        )
    )
    approvers = approvers_now(approval)
    made = partial(
        page,
        request,
        "approval.html",
        status,
        approval=approval,
        path=approval_path(request),
        person=request.caller.identity,
        guest=request.guest,
        open=approval.status is ApprovalStatus.PENDING,
        workflow=found.workflow_name or approval.workflow_id,
        groups=groups,
        prints=prints,
        first=_from(request),
        shown=ROWS_IN_PAGE,
        origin=found.execution_id,
        choices=choices,
        stages=stage_views(approval),
        files=[(one, attachment_url(request, keys, one)) for one in approval.attachments],
        fields=[(one, _typed(request, approval, one)) for one in approval.fields],
        state=dump_json(state_view(approval)).decode(),
        agreed=has_assented(approval, request.caller),
        seen=items_hash(approval),
        barred=barred_from(request, found),
        voided=voided_by(approval, request.caller),
        released=found.released,
        mine=_is_mine(approval, request.caller),
        deciders=approvers[:MOST_NAMES],
        more_deciders=len(approvers[MOST_NAMES:]),
        rejects=found.rejects,
        delegates=found.delegates,
        notice=notice,
        to_sign=_signs(request, found),
        wrong=wrong,
        delegation_notice=await _delegation_notice(request, approval),
        comment=comment,
        history=history,
        done=await _done(request, approval),
    )
    if not (prints and has_many_rows(approval)):
        return made()
    return await request.services.offload(partial(copy_context().run, made))


@frozen
class Done:
    """
    The reader's decision, for the page after it. `sentence`: the outcome. `totals`: the sums of the
    released rows. `next`: the approval that the reader may decide next, the first to expire.
    """

    sentence: str
    totals: Sequence[Total]
    next: ApprovalHead | None


async def _done(request: Request, approval: Approval) -> Done | None:
    """The decision that the address names, if the reader made it; the store knows what it was."""
    who = request.who if request.guest is None else None
    is_mine = _is_mine(approval, request.caller) or has_assented(approval, request.caller)
    if request.query(DECIDED) is None or who is None or not is_mine:
        return None
    released = approval.status is ApprovalStatus.APPROVED
    sums = await request.services.offload(partial(totals, approval)) if released else ()
    first = await read_inbox(request.services, who, Tab.WAITING, PageRequest(size=1))
    return Done(_outcome(approval), sums, next(iter(first.found.rows), None))


def _outcome(approval: Approval) -> str:
    if approval.status is ApprovalStatus.PENDING:
        given, required = len(approval.assents), approval.required_approvals
        return _("You have agreed: {given} of {required}").format(given=given, required=required)
    if approval.status is not ApprovalStatus.APPROVED:
        return APPROVALS[approval.status]
    first = original_rows(approval)
    proposed = sum(len(first[group.name]) for group in approval.groups)
    if not proposed:
        return _("Approved")
    released = sum(len(group.items) for group in approval.groups)
    return _("Released {released} of {proposed}").format(released=released, proposed=proposed)


DECIDED = "decided"
"""The query parameter of the page after a decision; its value does not matter."""


async def _delegation_notice(request: Request, approval: Approval) -> str | None:
    """
    The notice after a delegation: the person whom the reader named last, and any reason why that
    person gets no message. The address only asks for the notice; the content of the notice comes
    from the store.
    """
    caller = request.caller
    who = caller.account_id or caller.identity
    mine = [one.to for one in approval.delegations if one.account == who]
    if (
        request.query(DELEGATED) is None
        or not mine
        or approval.status is not ApprovalStatus.PENDING
    ):
        return None
    parts = [_("{who} may decide on your behalf now.").format(who=mine[-1])]
    offered = request.services.policy.channels if approval.notify is None else approval.notify
    mails = MAIL in offered and MAIL in request.services.policy.channels
    if request.guest is None and not await _has_account(request, mine[-1]):
        if not mails:
            parts.append(
                _("Nobody has an account of that name, and no mail goes out: tell the operator.")
            )
        elif "@" not in mine[-1]:
            parts.append(_("No account has that id: check it."))
    elif not mails:
        parts.append(_("No mail goes out, so tell them yourself; it is in their inbox."))
    return " ".join(parts)


DELEGATED = "delegated"


async def _has_account(request: Request, name: str) -> bool:
    try:
        await find_account(request.services, name)
    except NotFound:
        return False
    return True


def _typed(request: Request, approval: Approval, field: Column) -> str:
    """The text in a field: the text that was typed before an error, otherwise the stored answer."""
    typed = (isinstance(request.body, DecisionForm) and request.body.answers) or {}
    return (
        str(typed[field.key]) if field.key in typed else field_text(approval.answers.get(field.key))
    )


def barred_from(request: Request, found: Review) -> str | None:
    """The reason why the reader cannot approve, or None. A yes counts once. AP-16."""
    if has_assented(found.approval, request.caller):
        has_rows = any(group.items for group in found.approval.groups)
        if found.barred is not None or not has_rows:  # another stage's turn, or nothing but a text
            return _("You have agreed; others must agree, too.")
        return _(
            "You have agreed to these rows. Others must agree, too; changing rows starts anew."
        )
    return found.barred and _(found.barred)


def _signs(request: Request, found: Review) -> bool:
    """Whether the reader can approve here, and a passkey must confirm that. SR-1."""
    asks = found.approval.assurance is Assurance.PASSKEY
    is_open = found.approval.status is ApprovalStatus.PENDING
    return asks and is_open and barred_from(request, found) is None


def _is_mine(approval: Approval, who: Caller) -> bool:
    """Whether the approval is closed, and *who* made the decision or agreed to it."""
    closed = approval.status is not ApprovalStatus.PENDING
    return closed and (approval.decided_by == who.email or has_assented(approval, who))


def reason_too_late(approval: Approval, who: Caller) -> str:
    """
    The reason why a decision of *who* no longer counts: an earlier decision, a timeout or an end.
    AP-6, AP-16.
    """
    if approval.status is ApprovalStatus.PENDING:
        return _("You have agreed already; others must agree, too.")
    if approval.decided_by == who.email:
        return _("You have decided it already.")
    if approval.decided_by:
        return _("{who} was faster.").format(who=person(approval.decided_by))
    if approval.decision_source is DecisionSource.TIMEOUT:
        return _("Its time was over.")
    return _("Its execution has ended.")


def _from(request: Request) -> int:
    """The first row on a page without scripts; the editor turns pages by itself."""
    text = request.query("from") or ""
    first = int(text) if text.isascii() and text.isdigit() and len(text) < _DIGITS else 0
    return first - first % ROWS_IN_PAGE


_DIGITS = 7
MOST_NAMES = 10
"""The most approvers that the page names."""
MOST_CHANGES = 50
"""The most changes of one decision that the history shows."""


def _history(approval: Approval) -> list[tuple[HistoryEntry, list[CellChange], int]]:
    """The entries of the history, each with its first changes and the number of its changes."""
    found = [(entry, list(changes_of(approval, entry))) for entry in approval.history]
    return [(entry, all[:MOST_CHANGES], len(all)) for entry, all in found]
