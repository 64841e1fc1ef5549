"""
Several approvals decided at once, after a preview. AP-39.

The preview shows for each approval the question, the totals, and the reason if the approval cannot
be decided on this page; the form has the hash of the rows. An approval that changed since the
preview is not decided; the other approvals are.
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import suppress
from functools import partial

from attrs import evolve, frozen
from starlette.responses import Response

from adapters_http.console.approval import barred_from, reason_too_late
from adapters_http.console.forms import DecisionsForm
from adapters_http.console.language import _
from adapters_http.console.passkeys import answer_in, confirmed_in, confirming_page, problem_of
from adapters_http.console.rendering import page
from adapters_http.forms import without_nul
from adapters_http.request import Request
from wfcore.errors import Conflict, Forbidden, InvalidInput, NotConfirmed, NotFound
from wfcore.model.approval import (
    Approval,
    ApprovalStatus,
    DecisionOutcome,
    DecisionResult,
    DecisionSource,
    Verdict,
)
from wfcore.model.workflow import Assurance
from wfcore.rules.approval.agreement import items_hash, unanswered
from wfcore.rules.approval.question import title
from wfcore.rules.approval.review import Total, totals
from wfcore.rules.limits import MAX_DECISIONS
from wfcore.usecases.approvals.deciding import Decide, weigh
from wfcore.usecases.approvals.reviewing import Review, review_for
from wfcore.usecases.approvals.several import decide_several
from wfcore.wire.decisions import command


@frozen
class DecisionPreview:
    """
    One approval in a preview, without its rows and history, which may be long. `rows`: the number
    of rows by group. `seen`: the hash of the rows. `unfit`: the reason why the approval cannot be
    decided on this page.
    """

    approval: Approval
    workflow: str
    rows: Sequence[tuple[str, int]]
    totals: Sequence[Total]
    seen: str
    editors: Sequence[str]
    unfit: str | None


async def preview(request: Request) -> Response:
    """The preview of a decision on the approvals that the address names."""
    verdict = _verdict(request.query("decision") or Verdict.APPROVE)
    ids, found = _few(request.query_values("id")), list[DecisionPreview]()
    async for review in _reviews(request, ids):
        sums = await request.services.offload(partial(_sums, review.approval))
        found.append(_prospect(request, review, verdict, *sums))
    if ids and not found:
        raise NotFound("Approval")
    return page(request, "deciding.html", verdict=verdict, found=found, results=None)


def _verdict(text: str) -> Verdict:
    if text not in (Verdict.APPROVE, Verdict.REJECT):
        raise InvalidInput("decision", "must be approve or reject")
    return Verdict(text)


def _few(ids: Sequence[str]) -> Sequence[str]:
    """*ids* without repetitions. Raises `InvalidInput` for too many or malformed ids."""
    found = list(dict.fromkeys(without_nul("id", id) for id in ids if id))
    if len(found) > MAX_DECISIONS:
        raise InvalidInput("id", f"at most {MAX_DECISIONS} approvals at once")
    return found


async def _reviews(request: Request, ids: Sequence[str]) -> AsyncIterator[Review]:
    """
    The approvals that the caller sees, one at a time, because the rows of fifty approvals are too
    many at once.
    """
    for id in ids:
        with suppress(NotFound):
            yield await review_for(request.services, request.who, id)


def _sums(approval: Approval) -> tuple[Sequence[Total], str]:
    """The totals and the hash, which take time with many rows."""
    return totals(approval), items_hash(approval)


def _prospect(
    request: Request, review: Review, verdict: Verdict, sums: Sequence[Total], seen: str
) -> DecisionPreview:
    approval = review.approval
    edits = (entry.by for entry in approval.history if entry.rows_after is not None)
    rows = [(group.title or group.name, len(group.items)) for group in approval.groups]
    return DecisionPreview(
        evolve(approval, groups=(), history=()),
        review.workflow_name or approval.workflow_id,
        rows,
        sums,
        seen,
        tuple(dict.fromkeys(by for by in edits if by)),
        _unfit(request, review, verdict),
    )


def _unfit(request: Request, review: Review, verdict: Verdict) -> str | None:
    """The reason why an approval cannot be decided by *verdict* on this page, or None."""
    approval = review.approval
    if approval.status is not ApprovalStatus.PENDING:
        return _("It has been decided already.")
    if verdict is Verdict.REJECT:
        return None if review.rejects else barred_from(request, review)
    if (reason := barred_from(request, review)) is not None:
        return reason
    if unanswered(approval):
        return _("It asks questions: open it to answer them.")
    return None


async def decide(request: Request) -> Response:
    """Decide the approvals of the form, each by the hash of the rows that were shown."""
    form: DecisionsForm = request.body
    verdict = _verdict(form.decision)
    seen: Mapping[str, object] = form.seen or {}
    ids = _few(list(seen))
    decisions = [
        Decide(id, command(verdict), DecisionSource.CONSOLE, form.comment or None, str(hash))
        for id, hash in seen.items()
    ]
    signs = await _to_sign(request, decisions) if verdict is Verdict.APPROVE else []
    try:
        confirmed = await confirmed_in(request, answer_in(form.passkey))
        if signs and confirmed is None:
            return await _confirm(request, signs)
    except NotConfirmed as refused:
        facts = {"verdict": verdict, "found": (), "results": None}
        return page(request, "deciding.html", 409, **facts, problem=problem_of(refused))
    decisions = [evolve(one, confirmed=confirmed) for one in decisions]
    results = await decide_several(request.services, request.who, decisions, request.origin)
    asks, late = dict[str, str](), dict[str, str]()
    async for review in _reviews(request, ids):
        asks[review.approval.id] = _question(review.approval)
        late[review.approval.id] = reason_too_late(review.approval, request.who)
    return page(
        request,
        "deciding.html",
        verdict=verdict,
        found=(),
        results=sorted(results, key=lambda one: one.approval is not None),
        asks=asks,
        late=late,
        again=[one.approval_id for one in results if _may_be_tried(one)],
    )


async def _to_sign(
    request: Request, decisions: Sequence[Decide]
) -> Sequence[tuple[Decide, Approval]]:
    """The decisions that a passkey must confirm and that would count as the approvals stand."""
    found = list[tuple[Decide, Approval]]()
    for one in decisions:
        with suppress(NotFound, Forbidden, Conflict, InvalidInput):
            after = await weigh(request.services, request.who, one)
            if after.assurance is Assurance.PASSKEY:
                found.append((one, evolve(after, groups=(), history=())))
    return found


async def _confirm(request: Request, signs: Sequence[tuple[Decide, Approval]]) -> Response:
    """The page that asks once for the passkey of several decisions."""
    form: DecisionsForm = request.body
    seen = [(f"seen.{id}", str(hash)) for id, hash in (form.seen or {}).items()]
    fields = [("decision", form.decision), ("comment", form.comment or ""), *seen]
    decides, approvals = [one for one, _ in signs], [one for _, one in signs]
    return await confirming_page(request, decides, approvals, fields, "/inbox/decide")


def _question(approval: Approval) -> str:
    return title(approval)


def _may_be_tried(result: DecisionResult) -> bool:
    return result.outcome in (DecisionOutcome.CHANGED, DecisionOutcome.UNAVAILABLE)
