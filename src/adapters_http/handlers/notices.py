"""Notices, for operators: listed, tried again, tested. NT-7."""

from adapters_http.params import enum_values, page
from adapters_http.request import Request
from wfcore.model.notice import NoticeStatus
from wfcore.rules.auth.access import require_operator
from wfcore.rules.limits import WORKFLOW_PAGE
from wfcore.usecases.notices import managing
from wfcore.wire.common import NOTICES, shown_of
from wfcore.wire.operating import NoticePage, NoticeView, notice_view


async def list_all(request: Request) -> NoticePage:
    """All notices, newest first."""
    wanted = page(request, WORKFLOW_PAGE, NOTICES)
    statuses = enum_values(request, "status", NoticeStatus)
    require_operator(request.who)
    found = await managing.list_notices(request.services, wanted, statuses)
    return NoticePage(notices=[*map(notice_view, found.rows)], **shown_of(found, NOTICES))


async def retry(request: Request) -> NoticeView:
    """Try one again that was given up."""
    require_operator(request.who)
    id = request.params["id"]
    return notice_view(
        await managing.retry_notice(request.services, request.who, id, request.origin)
    )


async def test(request: Request) -> NoticeView:
    """Send one that says nothing but that it arrived."""
    require_operator(request.who)
    channel, to = request.body.channel, request.body.to or ""
    return notice_view(
        await managing.send_test(request.services, request.who, channel, to, request.origin)
    )
