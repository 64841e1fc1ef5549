"""The inbox: what waits for me, the most urgent first. AC-5."""

from collections.abc import Mapping
from urllib.parse import urlencode

from starlette.responses import Response

from adapters_http.console.executions import mark_of
from adapters_http.console.rendering import page
from adapters_http.request import Request
from wfcore.model.page import PageRequest
from wfcore.rules.limits import MAX_DECISIONS
from wfcore.rules.paging import cursor_text, page_request
from wfcore.usecases.approvals.reviewing import Tab, read_inbox
from wfcore.usecases.executions.browsing import newest_of

SIZE = MAX_DECISIONS
"""A page is what can be decided at once."""
_SOON, _AGED = "inbox", "approvals"
"""Lists by expiry and by age: a cursor of one says nothing in the other."""


async def show(request: Request) -> Response:
    """One tab of it, a page at a time."""
    tab = _tab(request.query("view"))
    list = _AGED if tab is Tab.DECIDED else _SOON
    wanted = _wanted(request, list)
    workflow_id = request.query("workflow") or None
    text = (request.query("q") or "").strip()
    mark = mark_of(await newest_of(request.services, request.who))
    found = await read_inbox(request.services, request.who, tab, wanted, workflow_id, text)
    asked = {"view": tab, "workflow": workflow_id, "q": text}
    rows = [
        (
            one,
            found.names.get(one.workflow_id, one.workflow_id),
            sum(group.count for group in one.groups),
        )
        for one in found.found.rows
    ]
    return page(
        request,
        "inbox.html",
        tab=tab,
        rows=rows,
        waiting=found.waiting,
        mails=request.context.config.mail is not None,
        workflow_id=workflow_id,
        text=text,
        asked=lambda **other: _query({**asked, **other}),
        later=wanted.after is not None,
        mark=mark,
        next=cursor_text(list, found.found.next) if found.found.next else None,
    )


def _query(asked: Mapping[str, str | None]) -> str:
    return urlencode({name: value for name, value in asked.items() if value})


def _tab(text: str | None) -> Tab:
    """The tab of that name; of any other what waits: addresses of pages are typed by people."""
    return Tab(text) if text in set(Tab) else Tab.WAITING


def _wanted(request: Request, list: str) -> PageRequest:
    return page_request(None, None, (SIZE, SIZE), request.query("after"), list)
