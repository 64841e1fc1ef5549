"""
The one-click approval link: a page that asks, a page that says what was decided.

Spec: one-click link rules; contract §6 and §10. Only a person's click with `confirm=1` decides;
every other way of opening the link just looks. LK-1, LK-2, LK-3.
"""

from attrs import evolve
from starlette.datastructures import Headers
from starlette.responses import HTMLResponse, Response

from adapters_http.pages import PAGE_HEADERS, Page, confirm_page, decided_page, may_decide
from adapters_http.request import Ask
from wfcore.errors import AlreadyDecided, InvalidInput, ItemsChanged
from wfcore.model.approval import ApprovalStatus, DecisionSource, Verdict
from wfcore.rules.approval.machine import command
from wfcore.rules.approval.quorum import has_assented
from wfcore.rules.limits import MAX_COMMENT
from wfcore.rules.variables import NO_NUL
from wfcore.usecases.approvals.approvals import Decide, Question, decide_approval, question_for


async def decide(ask: Ask) -> Response:
    """The page for the link: the question, or what was decided (409: by somebody before)."""
    verdict, comment = _verdict(ask.params["decision"]), _comment(ask)
    if ask.query("confirm") == "1" and may_decide(ask.method, Headers(scope=ask.scope)):
        return await _decide(ask, verdict, comment)
    question = await _question(ask, verdict)
    if _is_answered(ask, question, verdict):
        return _decided(question, 200)
    return _page(_ask_for(ask, question, verdict, comment), 200)


async def _question(ask: Ask, verdict: Verdict) -> Question:
    return await question_for(ask.services, ask.who, ask.params["id"], command(verdict))


def _is_answered(ask: Ask, question: Question, verdict: Verdict) -> bool:
    """Whether it is decided, or has this approver's yes and waits for others. AP-16."""
    approval = question.approval
    if approval.status is not ApprovalStatus.PENDING:
        return True
    return verdict is Verdict.APPROVE and has_assented(approval, ask.who.account.id)


async def _decide(ask: Ask, verdict: Verdict, comment: str | None) -> Response:
    id, seen = ask.params["id"], ask.query("expectedItemsHash")
    asked = Decide(id, command(verdict), DecisionSource.LINK, comment, seen or None)
    try:
        decided = await decide_approval(ask.services, ask.who, asked, ask.origin)
    except AlreadyDecided:
        return _decided(await _question(ask, verdict), 409)
    except ItemsChanged:
        now_is = await _question(ask, verdict)
        return _page(_ask_for(ask, now_is, verdict, comment, changed=True), 409)
    return _decided(evolve(await _question(ask, verdict), approval=decided), 200)


def _decided(question: Question, status: int) -> Response:
    return _page(decided_page(question.approval, workflow_name=question.workflow_name), status)


def _ask_for(
    ask: Ask, question: Question, verdict: Verdict, comment: str | None, changed: bool = False
) -> Page:
    return confirm_page(
        question.approval,
        verdict,
        now=ask.services.clock.deadline_now(),
        api_key=ask.query("api_key"),
        comment=comment or "",
        workflow_name=question.workflow_name,
        changed=changed,
    )


def _verdict(text: str) -> Verdict:
    """`approve` or `reject` in any case. AP-11."""
    try:
        return Verdict(text.lower())
    except ValueError:
        raise InvalidInput("decision", "must be approve or reject") from None


def _comment(ask: Ask) -> str | None:
    comment = ask.query("comment")
    if comment is not None and len(comment) > MAX_COMMENT:
        raise InvalidInput("comment", f"must have at most {MAX_COMMENT} characters")
    if comment is not None and "\0" in comment:
        raise InvalidInput("comment", NO_NUL)
    return comment or None


def _page(page: Page, status: int) -> Response:
    return HTMLResponse(page.html, status, PAGE_HEADERS(page.nonce))
