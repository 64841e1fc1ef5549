"""Which page an error is: a plain one at one-click links, else one of the console."""

from adapters_http.errors import Refusal
from adapters_http.pages import PAGE_HEADERS, error_page
from adapters_http.request import Request
from adapters_http.route import Auth, Route
from adapters_http.transport.connections import Headers


def is_for_people(request: Request, route: Route | None) -> bool:
    """Whether an error is a page: on rows of pages, and where somebody looks for one in vain."""
    if route is not None:
        return route.html
    looks = "text/html" in (request.header(b"accept") or "")
    return request.context.config.console and looks and request.method == "GET"


def refused_page(request: Request, route: Route | None, refused: Refusal) -> tuple[Headers, bytes]:
    """Headers and body of an error for people: plain at one-click links, else of the console."""
    if route is not None and route.auth is Auth.KEY:
        html, nonce = error_page(refused.status, refused.says)
        said = PAGE_HEADERS(nonce)
    else:
        from adapters_http.console import rendering  # with its templates, which no API call needs

        personal = route is not None and route.auth is Auth.PERSONAL
        again = dict(refused.headers).get(b"retry-after")
        wait_s = None if again is None else int(again)
        html = rendering.error_page(request, refused.status, refused.says, personal, wait_s)
        said = rendering.page_headers(request)
    headers = [(name.lower().encode(), value.encode()) for name, value in said.items()]
    headers += [
        (b"content-type", b"text/html; charset=utf-8"),
        (b"x-request-id", request.request_id.encode()),
    ]
    return headers + refused.headers, html.encode()
