"""
The one-click approval link: the page of a question, the page of a decision.

Spec: one-click link rules. Only a person's click with `confirm=1` decides; opening the link in any
other way shows a page. LK-1, LK-2, LK-3.
"""

from attrs import evolve
from starlette.datastructures import Headers
from starlette.responses import HTMLResponse, Response

from adapters_http.pages import PAGE_HEADERS, HtmlPage, confirm_page, decided_page, may_decide
from adapters_http.request import Request
from wfcore.errors import AlreadyDecided, InvalidInput, ItemsChanged
from wfcore.model.approval import ApprovalStatus, DecisionSource, Verdict
from wfcore.rules.approval.machine import has_assented
from wfcore.rules.limits import MAX_COMMENT
from wfcore.usecases.approvals.approvals import Question, question_for
from wfcore.usecases.approvals.deciding import Decide, decide_approval
from wfcore.wire.decisions import command


async def decide(request: Request) -> Response:
    """The page for the link: the question, or what was decided (409: by somebody before)."""
    verdict, comment = _verdict(request.params["decision"]), _comment(request)
    if request.query("confirm") == "1" and may_decide(request.method, Headers(scope=request.scope)):
        return await _decide(request, verdict, comment)
    question = await _question(request, verdict)
    if _is_answered(request, question, verdict):
        return _decided(question, 200)
    return _page(_ask_for(request, question, verdict, comment), 200)


async def _question(request: Request, verdict: Verdict) -> Question:
    return await question_for(request.services, request.who, request.params["id"], command(verdict))


def _is_answered(request: Request, question: Question, verdict: Verdict) -> bool:
    """Whether the approval is decided, or counts this approver and waits for others. AP-16."""
    approval = question.approval
    if approval.status is not ApprovalStatus.PENDING:
        return True
    return verdict is Verdict.APPROVE and has_assented(approval, request.who)


async def _decide(request: Request, verdict: Verdict, comment: str | None) -> Response:
    id, seen = request.params["id"], request.query("expectedItemsHash")
    decide = Decide(id, command(verdict), DecisionSource.LINK, comment, seen or None)
    try:
        decided = await decide_approval(request.services, request.who, decide, request.origin)
    except AlreadyDecided:
        return _decided(await _question(request, verdict), 409)
    except ItemsChanged:
        latest = await _question(request, verdict)
        return _page(_ask_for(request, latest, verdict, comment, changed=True), 409)
    return _decided(evolve(await _question(request, verdict), approval=decided), 200)


def _decided(question: Question, status: int) -> Response:
    return _page(decided_page(question.approval, workflow_name=question.workflow_name), status)


def _ask_for(
    request: Request,
    question: Question,
    verdict: Verdict,
    comment: str | None,
    changed: bool = False,
) -> HtmlPage:
    return confirm_page(
        question.approval,
        verdict,
        now=request.services.clock.deadline_now(),
        api_key=request.query("api_key"),
        comment=comment or "",
        workflow_name=question.workflow_name,
        changed=changed,
        url=f"{request.base_url}/approvals/{question.approval.id}",
    )


def _verdict(text: str) -> Verdict:
    """`approve` or `reject` in any case. AP-11."""
    try:
        verdict = Verdict(text.lower())
    except ValueError:
        raise InvalidInput("decision", "must be approve or reject") from None
    if verdict is Verdict.REVISE:  # needs a comment, which a click cannot have
        raise InvalidInput("decision", "must be approve or reject; revise where you can comment")
    return verdict


def _comment(request: Request) -> str | None:
    comment = request.query("comment")
    if comment is not None and len(comment) > MAX_COMMENT:
        raise InvalidInput("comment", f"must have at most {MAX_COMMENT} characters")
    return comment or None


def _page(page: HtmlPage, status: int) -> Response:
    return HTMLResponse(page.html, status, PAGE_HEADERS(page.nonce))
