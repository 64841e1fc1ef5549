"""The pages of notices, for operators: list and retry."""

from starlette.responses import Response

from adapters_http.console.hints import followed, versions
from adapters_http.console.language import N_, TranslatedTexts
from adapters_http.console.operate import SIZE, operate_page
from adapters_http.console.paths import see_other
from adapters_http.console.positions import behind, cursor_after
from adapters_http.request import Request
from wfcore.model.notice import Notice, NoticeStatus
from wfcore.model.page import NEWEST, Page
from wfcore.rules.auth.access import require_operator
from wfcore.usecases.notices import managing
from wfcore.wire.common import NOTICES

SENTENCES = TranslatedTexts(
    {
        "approval.opened": N_("An approval waits"),
        "approval.reminder": N_("An approval still waits"),
        "approval.voided": N_("Rows changed: an earlier yes does not count any more"),
        "approval.decided": N_("An approval was decided"),
        "approval.expired": N_("An approval ended without a decision"),
        "execution.failed": N_("An execution failed"),
        "execution.waiting": N_("An execution waits"),
        "trigger.refused": N_("A schedule or chain could not start"),
        "trigger.paused": N_("A schedule or chain was paused"),
        "webhook.disabled": N_("A webhook was disabled"),
        "step.mail": N_("A step sends a mail"),
        "quota.near": N_("A quota is nearly used"),
        "account.passkey": N_("A passkey was added or removed"),
        "test": N_("A test"),
        "session.link": N_("A link to sign in"),
    }
)
"""What each kind of notice says."""


async def show(request: Request) -> Response:
    """The list of notices, by status."""
    found = await _found(request)
    return operate_page(
        request,
        "notices",
        rows=found.rows,
        chosen=_chosen(request),
        statuses=list(NoticeStatus),
        sentences=SENTENCES,
        channels=sorted(request.services.policy.channels),
        next=cursor_after(NOTICES, found.next),
        later=bool(request.query("after")),
        follows=versions(found.rows),
    )


def _chosen(request: Request) -> NoticeStatus | None:
    text = request.query("status")
    return NoticeStatus(text) if text in set(NoticeStatus) else None


async def _found(request: Request) -> Page[Notice]:
    require_operator(request.who)
    chosen = _chosen(request)
    wanted = behind(request, NOTICES, SIZE, NEWEST)
    return await managing.list_notices(request.services, wanted, (chosen,) if chosen else ())


async def _snapshot(request: Request) -> object:
    return versions((await _found(request)).rows)


live = followed(_snapshot)


async def send_test(request: Request) -> Response:
    """Send a test to the operator, over one of the channels."""
    who = request.who
    require_operator(who)
    channel, to = request.body.channel, who.account.email
    await managing.send_test(request.services, who, channel, to, request.origin)
    return see_other(request, "/operate/notices")


async def retry(request: Request) -> Response:
    """Retry a notice that has failed."""
    require_operator(request.who)
    await managing.retry_notice(request.services, request.who, request.params["id"], request.origin)
    return see_other(request, "/operate/notices")
