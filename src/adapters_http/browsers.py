"""Browsers: cookies, and the refusal of changes that come from pages of other sites."""

import re
from collections.abc import Iterator, Sequence
from urllib.parse import urlsplit

from adapters_http.request import Request
from wfcore.errors import Forbidden
from wfcore.rules.limits import SESSION_MAX, SIGN_ON
from wfcore.time import DurationMs

COOKIE, ATTEMPT_COOKIE = "wfcore_session", "wfcore_sign_on"
MOST_ATTEMPTS, _TAG = 4, 12
"""
The most sign-ins that one browser may have begun, and the most characters of `state` in the name of
a cookie.
"""
_ATTEMPT = re.compile(rf"_[0-9a-f]{{11}}_[\w-]{{1,{_TAG}}}", re.ASCII)
HOST_COOKIE = f"__Host-{COOKIE}"
"""
The name of the cookie over https at the root: browsers accept this cookie from this host alone.
SE-5.
"""
_SAFE = frozenset({"GET", "HEAD"})


def session_token(request: Request) -> str | None:
    """The token in the session cookie. The name of the cookie depends on scheme and path. SE-5."""
    return cookie(request, _cookie_name(request))


def cookie(request: Request, wanted: str) -> str | None:
    """The first value of the cookie *wanted*."""
    for header in request.header_values(b"cookie"):
        for pair in header.split(";"):
            name, _, value = pair.strip().partition("=")
            if name == wanted and value:
                return value
    return None


def _cookie_name(request: Request, name: str = COOKIE) -> str:
    at_root = not request.base_path
    return f"__Host-{name}" if at_root and request.base_url.startswith("https:") else name


def session_cookie(request: Request, token: str) -> tuple[bytes, bytes]:
    """The header that stores *token* in the browser; an empty *token* deletes the cookie."""
    return _set_cookie(request, COOKIE, token, SESSION_MAX)


def preference_cookie(request: Request, name: str, value: str) -> tuple[bytes, bytes]:
    """The header that keeps a choice of the browser's owner for a year. Empty *value*: none."""
    age = _YEAR_S if value else 0
    text = f"{name}={value}; Path={request.base_path or '/'}; Max-Age={age}; SameSite=Lax"
    return b"set-cookie", text.encode()


_YEAR_S = 31_536_000


def attempt_cookies(request: Request, kept: str, state: str) -> Iterator[tuple[bytes, bytes]]:
    """
    The headers that store *kept*, from `leave_for`, under a name for this sign-in, so that two tabs
    do not disturb each other. If there are more than `MOST_ATTEMPTS` cookies, the oldest are
    deleted. SE-9.
    """
    for name in sorted(_attempts(request))[: 1 - MOST_ATTEMPTS]:
        yield _set_cookie(request, name, "", SIGN_ON)
    at = f"{request.services.clock.now():011x}"
    yield _set_cookie(request, f"{ATTEMPT_COOKIE}_{at}_{state[:_TAG]}", kept, SIGN_ON)


def kept_attempt(request: Request, state: str) -> tuple[str | None, Sequence[tuple[bytes, bytes]]]:
    """
    The value that `attempt_cookies` stored for *state*, and the headers that delete its cookie.
    """
    found = [name for name in _attempts(request) if name.endswith(f"_{state[:_TAG]}")]
    gone = [_set_cookie(request, name, "", SIGN_ON) for name in found]
    return (cookie(request, _cookie_name(request, found[0])) if found else None), gone


def _attempts(request: Request) -> Sequence[str]:
    """The names of the cookies of sign-ins that are under way."""
    whole = _cookie_name(request, ATTEMPT_COOKIE)
    names = (
        pair.strip().partition("=")[0]
        for header in request.header_values(b"cookie")
        for pair in header.split(";")
    )
    return [
        name.removeprefix(whole.removesuffix(ATTEMPT_COOKIE))
        for name in names
        if _ATTEMPT.fullmatch(name.removeprefix(whole))
    ]


def _set_cookie(request: Request, name: str, value: str, lasts: DurationMs) -> tuple[bytes, bytes]:
    parts = [
        f"{_cookie_name(request, name)}={value}",
        f"Path={request.base_path or '/'}",
        f"Max-Age={lasts // 1_000 if value else 0}",
        "HttpOnly",
        "SameSite=Lax",
    ]
    if request.base_url.startswith("https:"):
        parts.append("Secure")
    return b"set-cookie", "; ".join(parts).encode("latin-1")


def refuse_cross_site(request: Request) -> None:
    """
    Raises `Forbidden` if a change comes from a page of another site. SE-3.

    A request without `Origin` and `Sec-Fetch-Site` does not come from a browser, and passes.
    """
    if request.method in _SAFE:
        return
    sites = [value.strip().lower() for value in request.header_values(b"sec-fetch-site")]
    if "cross-site" in sites:
        raise Forbidden("Cross-site requests are refused")
    base = urlsplit(request.base_url)
    own = {_origin(f"{base.scheme}://{host}") for host in (base.netloc, request.header(b"host"))}
    for origin in request.header_values(b"origin"):
        withheld = origin.strip() == "null" and sites == ["same-origin"]  # by `no-referrer`
        theirs = _origin(origin)
        if withheld or (theirs is not None and theirs in own):
            continue
        if theirs is not None and theirs[1] in {one[1] for one in own if one is not None}:
            raise Forbidden(_OTHER_SCHEME)
        raise Forbidden("Cross-site requests are refused")


def refuse_silent_browser(request: Request) -> None:
    """
    Raises `Forbidden` if a browser sends a change without `Origin` and `Sec-Fetch-Site`: every
    browser that respects `SameSite` sends at least one of these headers. SE-8.
    """
    if request.method in _SAFE or request.header(b"origin") or request.header(b"sec-fetch-site"):
        return
    if request.header(b"cookie") and "text/html" in (request.header(b"accept") or ""):
        raise Forbidden("A browser that says neither Origin nor Sec-Fetch-Site is refused")


_OTHER_SCHEME = (
    "Cross-site requests are refused: the page came by another scheme or port than this server "
    "knows itself by; behind a proxy, set WFCORE_PUBLIC_URL or WFCORE_TRUSTED_PROXIES"
)
_PORTS = {"http": 80, "https": 443}


def _origin(text: str) -> tuple[str, str, int | None] | None:
    """The scheme, host and port of an origin like `https://example.org`; None for `null`."""
    try:
        where = urlsplit(text.strip())
        found = where.scheme, where.hostname or "", where.port or _PORTS.get(where.scheme)
    except ValueError:
        return None
    return found if where.scheme and where.hostname else None
