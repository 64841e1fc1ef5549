"""Errors as pages: a plain page for one-click links, otherwise a page of the console."""

from adapters_http.errors import ErrorResponse
from adapters_http.pages import PAGE_HEADERS, error_page
from adapters_http.request import Request
from adapters_http.route import Auth, Route
from adapters_http.transport.connections import Headers


def is_for_people(request: Request, route: Route | None) -> bool:
    """
    Whether an error is shown as a page: on the routes of pages, and to a browser that opens a path
    that does not exist.
    """
    if route is not None:
        return route.html
    by_browser = request.method == "GET" and "text/html" in (request.header(b"accept") or "")
    return request.context.config.console and by_browser


def page_of(request: Request, route: Route | None, refused: ErrorResponse) -> tuple[Headers, bytes]:
    """Headers and body of the page for an error."""
    if route is not None and route.auth is Auth.KEY:
        html, nonce = error_page(refused.status, refused.message)
        fields = PAGE_HEADERS(nonce)
    else:
        from adapters_http.console import error_page as console_page  # loads all templates
        from adapters_http.console.headers import page_headers

        personal = route is not None and route.auth is Auth.PERSONAL
        again = dict(refused.headers).get(b"retry-after")
        wait_s = None if again is None else int(again)
        html = console_page.error_page(request, refused.status, refused.message, personal, wait_s)
        fields = page_headers(request)
    headers = [(name.lower().encode(), value.encode()) for name, value in fields.items()]
    headers += [
        (b"content-type", b"text/html; charset=utf-8"),
        (b"x-request-id", request.request_id.encode()),
    ]
    return headers + refused.headers, html.encode()
