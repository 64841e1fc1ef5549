"""The inbox: approvals that wait for the reader, the most urgent first. AC-5."""

from collections.abc import Mapping
from urllib.parse import urlencode

from starlette.responses import Response

from adapters_http.console.formats import count
from adapters_http.console.hints import followed, versions
from adapters_http.console.rendering import page
from adapters_http.request import Request
from wfcore.rules.limits import MAX_DECISIONS
from wfcore.rules.paging import cursor_text, page_request
from wfcore.usecases.approvals.reviewing import MOST_WAITING, Inbox, Tab, count_of, read_inbox

SIZE = MAX_DECISIONS
"""The rows on a page: the number of approvals that one form can decide."""
_SOON, _AGED = "inbox", "approvals"
"""The names of the lists by expiry and by age, which have different cursors."""


async def show(request: Request) -> Response:
    """A page of one tab."""
    tab, workflow_id, text = _filters(request)
    found = await _found(request)
    filters = {"view": tab, "workflow": workflow_id, "q": text}
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
        agreed=await _agreed(request),
        mails=request.context.config.mail is not None,
        workflow_id=workflow_id,
        text=text,
        query_with=lambda **other: _query({**filters, **other}),
        later=bool(request.query("after")),
        follows=_seen(found),
        next=cursor_text(_list(tab), found.found.next) if found.found.next else None,
    )


async def _agreed(request: Request) -> str | None:
    """The number of approvals that wait for others than the reader; None for none."""
    found = await count_of(request.services, request.who, Tab.AGREED)
    return count(found, MOST_WAITING) if found else None


def _filters(request: Request) -> tuple[Tab, str | None, str]:
    """The tab, the workflow, and the text to find."""
    text = (request.query("q") or "").strip()
    return _tab(request.query("view")), request.query("workflow") or None, text


async def _found(request: Request) -> Inbox:
    tab, workflow_id, text = _filters(request)
    wanted = page_request(None, None, (SIZE, SIZE), request.query("after"), _list(tab))
    return await read_inbox(request.services, request.who, tab, wanted, workflow_id, text)


def _seen(found: Inbox) -> object:
    return versions(found.found.rows), sorted(found.names.items())


async def _snapshot(request: Request) -> object:
    return _seen(await _found(request))


live = followed(_snapshot)


def _list(tab: Tab) -> str:
    return _AGED if tab is Tab.DECIDED else _SOON


def _query(filters: Mapping[str, str | None]) -> str:
    return urlencode({name: value for name, value in filters.items() if value})


def _tab(text: str | None) -> Tab:
    """The tab named *text*, otherwise `WAITING`, because people type addresses."""
    return Tab(text) if text in set(Tab) else Tab.WAITING
