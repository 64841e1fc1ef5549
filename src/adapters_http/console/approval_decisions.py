"""
Decisions on the page of one approval, by its form and by the editor of rows.

Without scripts a form decides the present rows. The editor sends the same bodies that the API
takes. Both ways make decisions of the source `console`, or `link` for a guest, which are bound to
the rows that were shown. AP-2 to AP-19, PL-1.
"""

from collections.abc import Mapping
from http import HTTPStatus

from starlette.responses import Response

from adapters_http.console.approval import (
    DECIDED,
    DELEGATED,
    approval_page,
    approval_path,
    reason_too_late,
)
from adapters_http.console.formats import field_text, read_date, read_decimal
from adapters_http.console.forms import ConfirmedBody
from adapters_http.console.language import _
from adapters_http.console.passkeys import (
    answer_in,
    confirmed_in,
    confirming_page,
    problem_of,
    source_of,
)
from adapters_http.console.paths import see_other
from adapters_http.console.review_rows import state_view
from adapters_http.json_text import dump_json
from adapters_http.request import Request
from wfcore.errors import (
    AlreadyDecided,
    Forbidden,
    InvalidInput,
    ItemsChanged,
    NoMoreRevisions,
    NotConfirmed,
)
from wfcore.model.approval import Approval, Verdict
from wfcore.model.json import Json
from wfcore.model.workflow import Assurance, ColumnType
from wfcore.rules.approval.machine import Approve, Choice, Reject, Revise
from wfcore.rules.approval.typed import cell_text, read_answers
from wfcore.rules.visible import visible
from wfcore.usecases.approvals.deciding import Decide, decide_approval
from wfcore.usecases.approvals.delegating import delegate_approval
from wfcore.usecases.approvals.reviewing import review_for
from wfcore.wire.decisions import command


async def approve(request: Request) -> bytes:
    """Release the rows, edited or unchanged."""
    body, answers = request.body, request.body.answers
    if answers:
        found = await review_for(request.services, request.caller, request.params["id"])
        answers = _as_stored(found.approval, answers)
    return await _decided(
        request,
        Approve(body.edited_items, answers),
        body.comment,
        body.expected_items_hash,
        body.passkey,
    )


async def reject(request: Request) -> bytes:
    """Stop the execution."""
    return await _decided(request, Reject(), request.body.comment, None)


async def revise(request: Request) -> bytes:
    """Ask for changes: the execution goes back to an earlier step."""
    return await _decided(request, Revise(), request.body.comment, None)


SEEN = "expectedItemsHash"


async def _decided(
    request: Request,
    decision: Choice,
    comment: str | None,
    seen: str | None,
    passkey: ConfirmedBody | None = None,
) -> bytes:
    """Decide. Raises `InvalidInput` for an approval without the hash of the rows. AP-44."""
    if isinstance(decision, Approve) and not seen:
        await review_for(
            request.services, request.caller, request.params["id"]
        )  # raises if the reader may not see it
        raise InvalidInput(SEEN, "is required: the itemsHash of what was shown")
    confirmed = await confirmed_in(request, passkey)
    id, source = request.params["id"], source_of(request)
    decide = Decide(id, decision, source, comment or None, seen, confirmed=confirmed)
    approval = await decide_approval(request.services, request.caller, decide, request.origin)
    return dump_json(state_view(approval))


async def decide_as_shown(request: Request) -> Response:
    """Decide by the form, without scripts. If the decision fails, the page shows the reason."""
    form = request.body
    try:
        verdict = Verdict(form.decision)
    except ValueError:
        raise InvalidInput("decision", "must be approve, reject or revise") from None
    found = await review_for(request.services, request.caller, request.params["id"])
    if not form.expected_items_hash:
        notice = _(
            "What was sent does not say which rows you saw. Nothing was decided; look again."
        )
        return await _again(request, notice)
    try:
        answers = _answers(found.approval, form.answers or {})
        decision = command(verdict, answers=answers)
        signs = verdict is Verdict.APPROVE and found.approval.assurance is Assurance.PASSKEY
        if signs and not form.passkey:
            return await _confirm(request, found.approval, decision)
        passkey = answer_in(form.passkey)
        await _decided(request, decision, form.comment, form.expected_items_hash, passkey)
    except InvalidInput as wrong:
        if not wrong.field.startswith(("answers.", "comment", "decision")):
            raise
        key = wrong.field.removeprefix("answers.")
        titles = {one.key: one.title for one in found.approval.fields}
        title = titles.get(key) or _("Comment")
        fix = _(wrong.fix.removesuffix(f": {title}"))
        return await _again(request, f"{title}: {fix}", key)
    except NotConfirmed as refused:
        return await _again(request, problem_of(refused))
    except NoMoreRevisions as refused:
        return await _again(request, refused.message)
    except ItemsChanged:
        return await _again(
            request, _("The rows have changed since you saw them. Nothing was decided.")
        )
    except AlreadyDecided:
        now = await review_for(request.services, request.caller, request.params["id"])
        return await _again(request, reason_too_late(now.approval, request.caller))
    return see_other(request, f"{approval_path(request)}?{DECIDED}=1")


async def _confirm(request: Request, approval: Approval, decision: Choice) -> Response:
    """The page that asks for the passkey of this decision."""
    form = request.body
    seen, comment = form.expected_items_hash, form.comment or None
    decide = Decide(approval.id, decision, source_of(request), comment, seen)
    answers = [(f"answers.{key}", str(value)) for key, value in (form.answers or {}).items()]
    fields = [("decision", "approve"), (SEEN, seen), ("comment", comment or ""), *answers]
    return await confirming_page(request, [decide], [approval], fields, approval_path(request))


def _answers(approval: Approval, typed: Mapping[str, Json]) -> Mapping[str, Json]:
    """
    The answers of the form, with numbers and dates in the reader's notation.

    Raises `InvalidInput`, also for an ambiguous number or date.
    """
    read = dict(typed)
    for one in approval.fields:
        text = typed.get(one.key)
        if one.type not in _READERS or not isinstance(text, str):
            continue
        standing = approval.answers.get(one.key)
        try:
            untouched = text == field_text(standing)
            read[one.key] = cell_text(standing) if untouched else _READERS[one.type](text)
        except InvalidInput as doubt:
            raise InvalidInput(f"answers.{one.key}", doubt.fix) from None
    return read_answers(approval, _as_stored(approval, read))


_READERS = {ColumnType.NUMBER: read_decimal, ColumnType.DATE: read_date}


def _as_stored(approval: Approval, answers: Mapping[str, Json]) -> Mapping[str, Json]:
    """*answers*; a text that the page shows for the stored answer counts as the stored answer."""

    def stored(key: str, value: Json) -> Json:
        before = approval.answers.get(key)
        if not isinstance(before, str) or not isinstance(value, str):
            return value
        return before if value.replace("\r\n", "\n") == visible(before) else value

    return {key: stored(key, value) for key, value in answers.items()}


async def _again(request: Request, notice: str, wrong: str | None = None) -> Response:
    found = await review_for(request.services, request.caller, request.params["id"])
    comment = getattr(request.body, "comment", None) or ""
    return await approval_page(request, found, notice, comment, HTTPStatus.CONFLICT, wrong)


async def delegate(request: Request) -> Response:
    """Let somebody else decide until the approval expires; errors are shown on the page. AP-36."""
    source = source_of(request)
    id, to = request.params["id"], request.body.to
    try:
        await delegate_approval(
            request.services, request.caller, id, to, None, source, request.origin
        )
    except (InvalidInput, Forbidden, AlreadyDecided) as refused:
        return await _again(request, _(str(refused)))
    return see_other(request, f"{approval_path(request)}?{DELEGATED}=1")
