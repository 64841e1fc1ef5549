"""Addresses of pages: the present path, redirects, and numbers and days that people type."""

import re
from datetime import UTC, date, datetime, timedelta
from functools import cache
from urllib.parse import quote, urlsplit

from starlette.responses import Response

from adapters_http.console.headers import page_headers
from adapters_http.console.routes import PAGES
from adapters_http.params import event_number
from adapters_http.request import Request
from wfcore.errors import InvalidInput
from wfcore.time import EpochMs

HOME = "/"
"""The path that leads to the first page of a reader."""


def see_other(request: Request, path: str) -> Response:
    """A redirect to another page of this server."""
    location = quote(request.base_path + path, safe="/?&=%+:~,;@!$'()*")
    return Response(None, 303, {**page_headers(request), "Location": location})


def path_here(request: Request) -> str:
    """
    The path of the request below the mount if that path opens a page, otherwise `HOME`. The path
    that receives a form often opens a page, too.
    """
    path: str = request.scope["path"].removeprefix(request.scope.get("root_path", ""))
    if not _pages().fullmatch(path):
        return HOME
    query = request.scope["query_string"].decode("latin-1")
    return own_path(quote(path) + (f"?{query}" if query else ""))


@cache
def _pages() -> re.Pattern[str]:
    """A pattern of the paths that open a page."""
    opened = (one.path for one in PAGES if one.html and one.method == "GET")
    paths = {re.sub(r"\{\w+\}", "[^/]+", path) for path in opened}
    return re.compile("|".join(sorted(paths)))


def own_path(text: str) -> str:
    """*text* if it is a path of this server that may follow the sign-in, otherwise `HOME`."""
    plain = text.isascii() and text.isprintable() and "\\" not in text
    if not plain or not text.startswith("/") or text.startswith("//"):
        return HOME
    leads_back = urlsplit(text).path.startswith(("/sign-", "/in/", "/static/"))
    return HOME if leads_back else text


def number_in(text: str | None) -> int:
    """The number of an event in an address; 0 for any other text, because people type addresses."""
    try:
        return event_number("after", text)
    except InvalidInput:
        return 0


def day_in(text: str, after: int = 0) -> EpochMs | None:
    """
    The beginning of the day in an address (UTC), or of the day that is *after* days later; None for
    a text that is not a day.
    """
    try:
        begin = datetime.combine(date.fromisoformat(text), datetime.min.time(), UTC)
        return EpochMs(max(int((begin + timedelta(days=after)).timestamp() * 1_000), 0))
    except (ValueError, OverflowError):
        return None
