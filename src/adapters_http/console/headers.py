"""
The headers of every page.

The content security policy allows only this server's own files, and no script may turn text into
markup (`require-trusted-types-for`): a name or a cell that slipped through the escaping of the
templates would still be inert. Decision 125.
"""

from urllib.parse import urlsplit

from adapters_http.request import Request
from adapters_http.transport.connections import is_loopback

_POLICY = (
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self'",
    "connect-src 'self'",
    "form-action 'self'",
    "base-uri 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types wfcore",
)
_HEADERS = {
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "Cross-Origin-Opener-Policy": "same-origin",
    "X-Robots-Tag": "noindex",
}


def page_headers(request: Request) -> dict[str, str]:
    """The headers of a page, with the origins that may frame the page and its referrer policy."""
    framers = " ".join(request.context.config.frame_ancestors)
    policy = "; ".join((*_POLICY, f"frame-ancestors {framers or NONE}"))
    headers = {**_HEADERS, "Content-Security-Policy": policy, "Referrer-Policy": _referrer(request)}
    return headers if framers else {**headers, "X-Frame-Options": "DENY"}


NONE = "'none'"


def _referrer(request: Request) -> str:
    """
    The referrer policy. The address of a page with a token is sent to no other site. Under
    `no-referrer` a form is sent with `Origin: null`, so that `Sec-Fetch-Site` must show that the
    form is ours. Over plain http browsers send `Sec-Fetch-Site` only to loopback; so on other hosts
    the origin is sent, but never the path. Decision 141.
    """
    if "token" not in request.params:
        return "same-origin"
    url = urlsplit(request.base_url)
    trusted = url.scheme == "https" or is_loopback(url.hostname or "")
    return "no-referrer" if trusted else "strict-origin"
