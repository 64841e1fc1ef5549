"""The pages of notices, for operators: list and retry."""

from starlette.responses import Response

from adapters_http.console.hints import followed, versions
from adapters_http.console.operate import SIZE, operate_page
from adapters_http.console.paths import see_other
from adapters_http.console.positions import behind, cursor_after
from adapters_http.request import Request
from wfcore.model.notice import Notice, NoticeStatus
from wfcore.model.page import NEWEST, Page
from wfcore.rules.auth.access import require_operator
from wfcore.usecases.notices import managing
from wfcore.wire.common import NOTICES


async def show(request: Request) -> Response:
    """The list of notices, by status."""
    found = await _found(request)
    return operate_page(
        request,
        "notices",
        rows=found.rows,
        chosen=_chosen(request),
        statuses=list(NoticeStatus),
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


async def retry(request: Request) -> Response:
    """Retry a notice that has failed."""
    require_operator(request.who)
    await managing.retry_notice(request.services, request.who, request.params["id"], request.origin)
    return see_other(request, "/operate/notices")
