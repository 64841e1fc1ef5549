"""Positions in lists: the rows with which a page begins, and the link to the next page."""

from adapters_http.request import Request
from wfcore.errors import InvalidInput
from wfcore.model.page import PageCursor, PageRequest
from wfcore.rules.paging import cursor_text, page_request


def behind(request: Request, list: str, size: int, top: PageCursor) -> PageRequest:
    """
    The request for the rows after the position in the address; without a valid position, from
    *top*, which is before all rows. The rows of such a list are not counted. PG-6.
    """
    text = request.query("after")
    try:
        if text:
            return page_request(None, None, (size, size), text, list)
    except InvalidInput:
        pass
    return PageRequest(size=size, after=top)


def cursor_after(list: str, next: PageCursor | None) -> str | None:
    """The parameter `after` of the next page, or None."""
    return cursor_text(list, next) if next else None
