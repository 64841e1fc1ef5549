"""
One approval: the page, its rows as JSON for the editor, and decisions. AP-2 to AP-19.

Without scripts a form decides the rows as they stand. The editor sends the same bodies that the
API takes; both are decisions of the source `console`, and bound to the rows that were seen.

The same page opens by a personal link, for a guest: decisions have the source `link` then. PL-1.
"""

from http import HTTPStatus
from itertools import islice
from typing import Any

from starlette.responses import Response

from adapters_http.body import dump_json
from adapters_http.console.forms import DecisionForm
from adapters_http.console.rendering import page, see_other
from adapters_http.console.words import _
from adapters_http.handlers.artifacts import attachment_url
from adapters_http.pages import columns_of
from adapters_http.request import Request
from wfcore.errors import AlreadyDecided, InvalidInput, ItemsChanged, NoMoreRevisions, SignInFirst
from wfcore.model.approval import Approval, ApprovalStatus, DecisionSource, Group, Verdict
from wfcore.model.workflow import Column
from wfcore.rules.approval.machine import (
    Approve,
    Choice,
    Reject,
    Revise,
    command,
    has_assented,
    items_hash,
)
from wfcore.rules.approval.review import ReviewRow, review_rows
from wfcore.rules.approval.typed import cell_text, choices, read_answers
from wfcore.usecases.approvals.approvals import Decide, decide_approval, has_many_rows
from wfcore.usecases.approvals.reviewing import Review, review_for
from wfcore.wire.approvals import column_view, field_view, stage_views
from wfcore.wire.converter import plain

ROWS_IN_PAGE = 100
"""Rows that are in the HTML; the editor fetches all, and shows as many at a time."""


async def show(request: Request) -> Response:
    """The page; a personal link ends with the approval, or only leads to signing in. PL-4, PL-5."""
    try:
        found = await review_for(request.services, request.caller, request.params["id"])
    except SignInFirst:
        return see_other(request, f"/approvals/{request.params['id']}")
    over = request.guest is not None and found.approval.status is not ApprovalStatus.PENDING
    return await _page(request, found, status=HTTPStatus.GONE if over else HTTPStatus.OK)


def _path(request: Request) -> str:
    """Where the page is: by a personal link it stays there."""
    if request.guest is not None:
        return f"/a/{request.params['token']}"
    return f"/approvals/{request.params['id']}"


async def _page(
    request: Request, found: Review, notice: str | None = None, comment: str = "", status: int = 200
) -> Response:
    approval = found.approval
    groups = [(group, _columns(group), _first_rows(approval, group)) for group in approval.groups]
    return page(
        request,
        "approval.html",
        status,
        approval=approval,
        path=_path(request),
        person=request.caller.identity,
        guest=request.guest,
        open=approval.status is ApprovalStatus.PENDING,
        workflow=found.workflow_name or approval.workflow_id,
        groups=groups,
        shown=ROWS_IN_PAGE,
        choices=choices,
        stages=stage_views(approval),
        files=[(one, attachment_url(request, one)) for one in approval.attachments],
        fields=[(one, _typed(request, approval, one)) for one in approval.fields],
        seen=items_hash(approval),
        barred=_barred(request, found),
        rejects=found.rejects,
        notice=notice,
        comment=comment,
        history=approval.history,
    )


def _typed(request: Request, approval: Approval, field: Column) -> str:
    """What stands in a field: what was typed before the page came again, else the answer."""
    typed = (isinstance(request.body, DecisionForm) and request.body.answers) or {}
    return (
        str(typed[field.key]) if field.key in typed else cell_text(approval.answers.get(field.key))
    )


def _barred(request: Request, found: Review) -> str | None:
    """Why the reader cannot approve; a yes that was given counts once. AP-16."""
    if found.barred is None and has_assented(found.approval, request.caller):
        return _(
            "You have agreed to these rows. Others must agree, too; changing rows starts anew."
        )
    return found.barred


def _columns(group: Group) -> tuple[Column, ...]:
    return group.columns or columns_of(group.items)


def _first_rows(approval: Approval, group: Group) -> list[ReviewRow]:
    return list(islice(review_rows(approval, group), ROWS_IN_PAGE))


async def rows(request: Request) -> bytes:
    """What the editor works on: every row as proposed and as it stands."""
    found = await review_for(request.services, request.caller, request.params["id"])
    if has_many_rows(found.approval):
        return await request.services.offload(lambda: _rows(found))
    return _rows(found)


def _rows(found: Review) -> bytes:
    approval = found.approval
    groups = [
        {
            "name": group.name,
            "title": group.title or group.name,
            "rowKey": group.row_key,
            "fixed": not group.columns,
            "columns": [plain(column_view(one)) for one in _columns(group)],
            "rows": [_row(one) for one in review_rows(approval, group)],
        }
        for group in approval.groups
    ]
    fields = [plain(field_view(one)) for one in approval.fields]
    return dump_json({**_state(approval), "groups": groups, "fields": fields})


def _row(row: ReviewRow) -> list[Any]:
    """One row in short: as proposed; where it stands differently, how, and by whose hand."""
    if row.proposed is row.standing or row.by is None:
        return [row.proposed]
    return [row.proposed, row.standing, row.by]


async def state(request: Request) -> bytes:
    """Whether there is something new, for pages that are open."""
    found = await review_for(request.services, request.caller, request.params["id"])
    return dump_json(_state(found.approval))


def _state(approval: Approval) -> dict[str, Any]:
    return {
        "id": approval.id,
        "status": approval.status,
        "version": approval.version,
        "itemsHash": items_hash(approval),
        "approvedBy": [one.by for one in approval.assents],
        "decidedBy": approval.decided_by,
    }


async def approve(request: Request) -> bytes:
    """Release the rows, edited or as they are."""
    body = request.body
    return await _decided(
        request,
        Approve(body.edited_items, body.answers),
        body.comment,
        body.expected_items_hash,
    )


async def reject(request: Request) -> bytes:
    """Stop the execution."""
    return await _decided(request, Reject(), request.body.comment, None)


async def revise(request: Request) -> bytes:
    """Ask for changes: the execution goes back."""
    return await _decided(request, Revise(), request.body.comment, None)


async def _decided(
    request: Request, decision: Choice, comment: str | None, seen: str | None
) -> bytes:
    source = DecisionSource.LINK if request.guest else DecisionSource.CONSOLE
    asked = Decide(request.params["id"], decision, source, comment or None, seen)
    approval = await decide_approval(request.services, request.caller, asked, request.origin)
    return dump_json(_state(approval))


async def decide_as_shown(request: Request) -> Response:
    """The form without scripts. What came between is told on the page, not as an error."""
    form = request.body
    try:
        verdict = Verdict(form.decision)
    except ValueError:
        raise InvalidInput("decision", "must be approve, reject or revise") from None
    try:
        found = await review_for(request.services, request.caller, request.params["id"])
        answers = read_answers(found.approval, form.answers or {})
        decision = command(verdict, answers=answers)
        await _decided(request, decision, form.comment, form.expected_items_hash or None)
    except InvalidInput as wrong:
        if not wrong.field.startswith(("answers.", "comment", "decision")):
            raise
        return await _again(request, f"{wrong.field.removeprefix('answers.')}: {wrong.fix}")
    except NoMoreRevisions as refused:
        return await _again(request, refused.message)
    except ItemsChanged:
        return await _again(
            request, _("The rows have changed since you saw them. Nothing was decided.")
        )
    except AlreadyDecided:
        return await _again(request, _("Somebody was faster, or you have agreed already."))
    return see_other(request, _path(request))


async def _again(request: Request, notice: str) -> Response:
    found = await review_for(request.services, request.caller, request.params["id"])
    comment = request.body.comment or ""
    return await _page(request, found, notice, comment, HTTPStatus.CONFLICT)
