"""The inbox: what waits for me, the most urgent first. AC-5."""

from collections.abc import Mapping
from urllib.parse import urlencode

from starlette.responses import Response

from adapters_http.console.hints import followed, versions
from adapters_http.console.rendering import page
from adapters_http.request import Request
from wfcore.rules.limits import MAX_DECISIONS
from wfcore.rules.paging import cursor_text, page_request
from wfcore.usecases.approvals.reviewing import Inbox, Tab, read_inbox

SIZE = MAX_DECISIONS
"""A page is what can be decided at once."""
_SOON, _AGED = "inbox", "approvals"
"""Lists by expiry and by age: a cursor of one says nothing in the other."""


async def show(request: Request) -> Response:
    """One tab of it, a page at a time."""
    tab, workflow_id, text = _asked(request)
    found = await _found(request)
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
        mails=request.context.config.mail is not None,
        workflow_id=workflow_id,
        text=text,
        asked=lambda **other: _query({**asked, **other}),
        later=bool(request.query("after")),
        follows=_seen(found),
        next=cursor_text(_list(tab), found.found.next) if found.found.next else None,
    )


def _asked(request: Request) -> tuple[Tab, str | None, str]:
    """The tab, the workflow, and the text that is sought."""
    text = (request.query("q") or "").strip()
    return _tab(request.query("view")), request.query("workflow") or None, text


async def _found(request: Request) -> Inbox:
    tab, workflow_id, text = _asked(request)
    wanted = page_request(None, None, (SIZE, SIZE), request.query("after"), _list(tab))
    return await read_inbox(request.services, request.who, tab, wanted, workflow_id, text)


def _seen(found: Inbox) -> object:
    return versions(found.found.rows), sorted(found.names.items())


async def _look(request: Request) -> object:
    return _seen(await _found(request))


live = followed(_look)


def _list(tab: Tab) -> str:
    return _AGED if tab is Tab.DECIDED else _SOON


def _query(asked: Mapping[str, str | None]) -> str:
    return urlencode({name: value for name, value in asked.items() if value})


def _tab(text: str | None) -> Tab:
    """The tab of that name; of any other what waits: addresses of pages are typed by people."""
    return Tab(text) if text in set(Tab) else Tab.WAITING
