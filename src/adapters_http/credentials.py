"""Where a request carries what it proves itself with. Spec: ways to carry the key; contract §6."""

from urllib.parse import urlsplit

from adapters_http.request import Request
from wfcore.errors import Forbidden
from wfcore.rules.limits import SESSION_MAX
from wfcore.usecases.accounts.authenticate import Credentials

COOKIE = "wfcore_session"
HOST_COOKIE = f"__Host-{COOKIE}"
"""Where https is spoken at the root: a browser takes it from this very host alone. SE-5."""
_SAFE = frozenset({"GET", "HEAD"})


def credentials_of(request: Request) -> Credentials:
    """All three ways: Bearer, `X-API-Key`, and the query parameter `api_key`."""
    authorization, x_api_key = [], []
    for name, value in request.scope["headers"]:
        if name == b"authorization":
            authorization.append(value.decode("latin-1"))
        elif name == b"x-api-key":
            x_api_key.append(value.decode("latin-1"))
    return Credentials(authorization, x_api_key, request.query_values("api_key"))


def header_credentials(request: Request) -> Credentials:
    """The two ways that a download takes without a signature."""
    return Credentials(request.header_values(b"authorization"), request.header_values(b"x-api-key"))


def session_token(request: Request) -> str | None:
    """What the session cookie holds. Under the other name anybody may have set it."""
    ours = _cookie_name(request)
    for header in request.header_values(b"cookie"):
        for pair in header.split(";"):
            name, _, value = pair.strip().partition("=")
            if name == ours and value:
                return value
    return None


def _cookie_name(request: Request) -> str:
    at_root = not request.base_path
    return HOST_COOKIE if at_root and request.base_url.startswith("https:") else COOKIE


def session_cookie(request: Request, token: str) -> tuple[bytes, bytes]:
    """The header that keeps *token* in the browser; an empty one takes it away."""
    parts = [
        f"{_cookie_name(request)}={token}",
        f"Path={request.base_path or '/'}",
        f"Max-Age={SESSION_MAX // 1_000 if token else 0}",
        "HttpOnly",
        "SameSite=Lax",
    ]
    if request.base_url.startswith("https:"):
        parts.append("Secure")
    return b"set-cookie", "; ".join(parts).encode("latin-1")


def refuse_cross_site(request: Request) -> None:
    """
    Raises `Forbidden` where a change comes from somebody else's page. SE-3.

    A request with neither `Origin` nor `Sec-Fetch-Site` is no browser's and passes.
    """
    if request.method in _SAFE:
        return
    if "cross-site" in [
        value.strip().lower() for value in request.header_values(b"sec-fetch-site")
    ]:
        raise Forbidden("Cross-site requests are refused")
    own = {(request.header(b"host") or "").lower(), urlsplit(request.base_url).netloc.lower()}
    for origin in request.header_values(b"origin"):
        if _host(origin) not in own:
            raise Forbidden("Cross-site requests are refused")


def _host(origin: str) -> str | None:
    """`https://example.org` → `example.org`; None for what names no host, like `null`."""
    try:
        return urlsplit(origin.strip()).netloc.lower() or None
    except ValueError:
        return None
