"""
Authentication: one function for each `Auth`, and where a request carries its credentials.

The functions differ in what they check first, never in the rules, which are the core's. Spec:
authentication, ways to carry the key. AU-8 to AU-10.
"""

import re
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from time import monotonic
from typing import Any, TypeAlias
from urllib.parse import parse_qsl, urlsplit

from starlette.datastructures import Headers
from starlette.types import Receive

from adapters_http.body import exactly, parse_object, read_body, refuse_repeated_keys
from adapters_http.request import Request
from adapters_http.route import Auth, Route
from wfcore.errors import AccountBlocked, Forbidden, InvalidInput, Unauthenticated
from wfcore.model.access import Principal, Scope, Visitor
from wfcore.model.json import JsonObject
from wfcore.model.webhook import AuthMode, Scheme, Webhook
from wfcore.rules.auth.session import one_client
from wfcore.rules.gate import require_asker
from wfcore.rules.limits import SESSION_MAX, SIGN_ON
from wfcore.rules.numbers import as_written, kept
from wfcore.time import DurationMs
from wfcore.usecases.accounts import authenticate
from wfcore.usecases.accounts.authenticate import Credentials
from wfcore.usecases.accounts.sessions import require_session, session_of
from wfcore.usecases.audit.auditing import note_denial
from wfcore.usecases.webhooks import senders
from wfcore.wire.converter import structured

Authenticator: TypeAlias = Callable[[Request, Route, Receive], Awaitable[None]]


async def _read(request: Request, route: Route, receive: Receive) -> None:
    headers, limit = Headers(scope=request.scope), route.body_limit
    if route.auth not in _BODY_FIRST:
        request.raw = await read_body(receive, headers, limit)
        return
    client = one_client(request.origin.ip or "")
    with request.context.strangers_bodies.arriving(client) as took:
        request.raw = await read_body(receive, headers, limit, took=took)


_BODY_FIRST = frozenset({Auth.TRIGGER, Auth.KEY_AFTER_BODY, Auth.LOGIN})
"""What reads the body of whoever sends one."""


LARGE = 65_536
"""Bytes of a body from which it is understood aside of the event loop: about a millisecond."""


async def _understand(request: Request, route: Route) -> None:
    if route.body is None:
        return
    if len(request.raw) <= LARGE:
        _parse(request, route, route.body)
    else:
        await request.services.offload(partial(_parse, request, route, route.body))


def _parse(request: Request, route: Route, shape: type[Any]) -> None:
    as_form = route.html and is_form(request)
    reader = exactly if route.decides else kept
    request.json = _nested(form_of(request)) if as_form else parse_object(request.raw, reader)
    if route.keys_once:
        refuse_repeated_keys(request.raw, request.json)
    request.body = structured(shape, request.json)


async def _read_and_understand(request: Request, route: Route, receive: Receive) -> None:
    if route.body is not None:
        await _read(request, route, receive)
        await _understand(request, route)


async def _admit(request: Request, route: Route) -> None:
    assert route.scope is not None
    keys = credentials_of(request)
    visitor = None if route.html else await _visitor(request, keys)
    if visitor is not None:
        admitted = await authenticate.admit_visitor(
            request.services, visitor, route.scope, request.origin
        )
    else:
        admitted = await authenticate.admit(request.services, keys, route.scope, request.origin)
    request.who, request.quota = admitted.who, admitted.quota


LATE_S = 1.0


async def _read_late(request: Request, route: Route, receive: Receive, keys: Credentials) -> None:
    """If the body comes late, its caller may be revoked or deleted by then: that is asked again."""
    began = monotonic()
    await _read(request, route, receive)
    if route.scope and request.who.key and monotonic() - began > LATE_S:
        request.who = await authenticate.authenticate(request.services, keys, route.scope)


async def _visitor(request: Request, keys: Credentials) -> Visitor | None:
    """
    The user whom the surrounding application vouches for, if the request carries no key of ours.
    AU-10.

    A visitor may be identified by a cookie, which browsers also send from foreign pages: changes
    from other sites are refused. Links that decide are opened by key only.
    """
    login = request.context.config.login
    if login is None or keys.is_ours:
        return None
    visitor = await login(request.scope)
    if visitor is not None:
        refuse_cross_site(request)
    return visitor


async def _by_key(request: Request, route: Route, receive: Receive) -> None:
    await _admit(request, route)
    if route.body is not None:
        await _read_late(request, route, receive, credentials_of(request))
        await _understand(request, route)


async def _by_key_after_body(request: Request, route: Route, receive: Receive) -> None:
    await _read(request, route, receive)
    await _admit(request, route)
    await _understand(request, route)


async def _by_webhook(request: Request, route: Route, receive: Receive) -> None:
    """Exists, size, credentials, rate, active, JSON object. WH-13."""
    webhook = await senders.find_webhook(request.services, request.params["id"])
    request.webhook = webhook
    await _read(request, route, receive)
    sender = await senders.identify_sender(
        request.services,
        webhook,
        credentials_of(request),
        request.all_headers,
        request.raw,
        request.origin,
    )
    request.authenticated = True
    request.quota = await senders.admit_sender(request.services, webhook, sender)
    request.json = payload_of(request, webhook)


async def _by_agent(request: Request, route: Route, receive: Receive) -> None:
    """
    As by key, but in a header, and no key that could decide what its agent asks. MC-4. The body is
    read as strictly as any other, before the SDK reads it in its own way.
    """
    assert route.scope is not None
    allowed = request.context.config.cors_origins
    if "*" not in allowed and not set(request.header_values(b"origin")) & set(allowed):
        refuse_cross_site(request)
    keys = header_credentials(request)
    admitted = await authenticate.admit(request.services, keys, route.scope, request.origin)
    request.who, request.quota = admitted.who, admitted.quota
    require_asker(request.who)
    await _read_late(request, route, receive, keys)
    request.json = await request.services.offload(partial(parse_object, request.raw, as_written))


async def _by_session(request: Request, route: Route, receive: Receive) -> None:
    refuse_cross_site(request)
    try:
        request.who = await _signed_in(request, route.visitor_scopes)
    except (Unauthenticated, AccountBlocked) as refusal:
        await note_denial(request.services, "console.request", refusal, request.origin)
        raise
    await _read_and_understand(request, route, receive)


async def _signed_in(request: Request, scopes: Collection[Scope]) -> Principal:
    """*scopes*: what a visitor needs here; who signed in with us may do all that is theirs."""
    visitor = await _visitor(request, credentials_of(request))
    if visitor is not None:
        request.visiting = True
        return await authenticate.recognise(request.services, visitor, scopes)
    return await session_of(request.services, session_token(request))


async def require_still(request: Request, route: Route) -> None:
    """
    Raises `Unauthenticated`, `AccountBlocked` or `PersonalLinkOver` if what admitted the caller
    would not admit them now. Counts and records nothing, and keeps no session alive. SE-12.
    """
    services = request.services
    keys = (header_credentials if route.auth is Auth.AGENT else credentials_of)(request)
    if request.guest is not None:
        await authenticate.admit_guest(services, request.params["token"])
    elif request.who.key is not None:
        scope = route.scope or Scope.ADMIN
        await authenticate.authenticate(services, keys, scope)
    elif (visitor := await _visitor(request, keys)) is not None:
        await authenticate.recognise(services, visitor, route.visitor_scopes)
    else:
        await require_session(services, session_token(request))


async def _to_login(request: Request, route: Route, receive: Receive) -> None:
    refuse_cross_site(request)
    if route.html:
        refuse_silent_browser(request)
    await _read_and_understand(request, route, receive)


async def _to_page(request: Request, route: Route, receive: Receive) -> None:
    """As with a session; but who merely opens a page signed out is no matter for the audit log."""
    refuse_cross_site(request)
    refuse_silent_browser(request)
    request.who = await _signed_in(request, route.visitor_scopes)
    await _read_and_understand(request, route, receive)


async def _by_personal_link(request: Request, route: Route, receive: Receive) -> None:
    """The link names the approval and the person; cookies and keys are not looked at. PL-1."""
    refuse_cross_site(request)
    refuse_silent_browser(request)
    request.guest = await authenticate.admit_guest(request.services, request.params["token"])
    request.params["id"] = request.guest.approval_id
    await _read_and_understand(request, route, receive)


async def _by_admin(request: Request, route: Route, receive: Receive) -> None:
    keys = header_credentials(request)
    request.who = await authenticate.admit_operator(request.services, keys, request.origin)
    await _read(request, route, receive)
    request.json = await request.services.offload(partial(parse_object, request.raw))


async def _to_download(request: Request, route: Route, receive: Receive) -> None:
    """Only requests without a signature; the handler checks signatures."""
    if request.query("signature") is None:
        request.who = await _reader(request)


async def _reader(request: Request) -> Principal:
    token = session_token(request)
    by_header = header_credentials(request)
    try:
        visitor = await _visitor(request, by_header)
        if visitor is not None:
            return await authenticate.recognise(request.services, visitor, {Scope.ARTIFACT_READ})
        if token and not (by_header.authorization or by_header.x_api_key):
            return await session_of(request.services, token)
        return await authenticate.authenticate(request.services, by_header, Scope.ARTIFACT_READ)
    except (Unauthenticated, AccountBlocked) as refusal:
        await note_denial(request.services, "artifact.download", refusal, request.origin)
        raise


async def _open(request: Request, route: Route, receive: Receive) -> None:
    """Needs no credentials and reads nothing."""


COOKIE, ATTEMPT_COOKIE = "wfcore_session", "wfcore_sign_on"
MOST_ATTEMPTS, _TAG = 4, 12
"""Sign-ins that one browser may have begun, and characters of the `state` that name each."""
_ATTEMPT = re.compile(rf"_[0-9a-f]{{11}}_[\w-]{{1,{_TAG}}}", re.ASCII)
HOST_COOKIE = f"__Host-{COOKIE}"
"""Where https is spoken at the root: a browser takes it from this very host alone. SE-5."""
_SAFE = frozenset({"GET", "HEAD"})


def credentials_of(request: Request) -> Credentials:
    """All three places: Bearer, `X-API-Key`, and the query parameter `api_key`."""
    authorization, x_api_key = [], []
    for name, value in request.scope["headers"]:
        if name == b"authorization":
            authorization.append(value.decode("latin-1"))
        elif name == b"x-api-key":
            x_api_key.append(value.decode("latin-1"))
    return Credentials(authorization, x_api_key, request.query_values("api_key"))


def header_credentials(request: Request) -> Credentials:
    """Headers alone, for what is opened by people or must not stand in logs of addresses."""
    return Credentials(request.header_values(b"authorization"), request.header_values(b"x-api-key"))


def session_token(request: Request) -> str | None:
    """The value of the session cookie. Under the other name, other hosts could have set it."""
    return cookie(request, _cookie_name(request))


def cookie(request: Request, wanted: str) -> str | None:
    """The first value of the cookie of that name."""
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
    """The header that stores *token* in the browser; an empty one deletes it."""
    return _set_cookie(request, COOKIE, token, SESSION_MAX)


def attempt_cookies(request: Request, kept: str, state: str) -> Iterator[tuple[bytes, bytes]]:
    """
    The headers that keep what `leave_for` says, in a cookie of its own for each sign-in, so that
    two tabs do not disturb each other; the oldest of too many go. SE-9.
    """
    for name in sorted(_attempts(request))[: 1 - MOST_ATTEMPTS]:
        yield _set_cookie(request, name, "", SIGN_ON)
    at = f"{request.services.clock.now():011x}"
    yield _set_cookie(request, f"{ATTEMPT_COOKIE}_{at}_{state[:_TAG]}", kept, SIGN_ON)


def kept_attempt(request: Request, state: str) -> tuple[str | None, Sequence[tuple[bytes, bytes]]]:
    """
    What the browser kept while its owner was at the identity provider, and the headers that delete
    it.
    """
    found = [name for name in _attempts(request) if name.endswith(f"_{state[:_TAG]}")]
    gone = [_set_cookie(request, name, "", SIGN_ON) for name in found]
    return (cookie(request, _cookie_name(request, found[0])) if found else None), gone


def _attempts(request: Request) -> Sequence[str]:
    """The names of the cookies of sign-ins that have not ended."""
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
    Raises `Forbidden` if a change comes from a foreign page. SE-3.

    A request with neither `Origin` nor `Sec-Fetch-Site` does not come from a browser, and passes.
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
    Raises `Forbidden` where a browser's change says nothing of where it comes from: every browser
    that keeps `SameSite` says it, so one that does not is none to rely on. SE-8.
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
    """Scheme, host and port of `https://example.org`; None for what names none, like `null`."""
    try:
        where = urlsplit(text.strip())
        found = where.scheme, where.hostname or "", where.port or _PORTS.get(where.scheme)
    except ValueError:
        return None
    return found if where.scheme and where.hostname else None


FORM = "application/x-www-form-urlencoded"
_FORMS = frozenset({Scheme.GITHUB, Scheme.SLACK})
_MOST_FIELDS = 1_000


def scheme_of(webhook: Webhook) -> Scheme:
    """The scheme that signs its requests; ours if there is a key or none."""
    return webhook.scheme if webhook.auth_mode is AuthMode.SIGNATURE else Scheme.WFCORE


def is_form(request: Request) -> bool:
    """Whether a body says that it is a form."""
    return (request.header(b"content-type") or "").partition(";")[0].strip().lower() == FORM


def form_of(request: Request) -> JsonObject:
    """The fields of a form; of equal names the last. Raises `InvalidInput`. SG-8."""
    try:
        text = request.raw.decode("ascii")
        return dict(parse_qsl(text, True, errors="strict", max_num_fields=_MOST_FIELDS))
    except ValueError:
        raise InvalidInput(
            "body", f"must be a form of UTF-8, percent-encoded, of at most {_MOST_FIELDS} fields"
        ) from None


def _nested(form: JsonObject) -> JsonObject:
    """The form with fields like `answers.reason` as an object `answers`."""
    found: dict[str, Any] = {}
    for name, text in form.items():
        head, dot, key = name.partition(".")
        if dot and isinstance(inner := found.setdefault(head, {}), dict):
            inner[key] = text
        elif not dot:
            found[name] = text
    return found


def payload_of(request: Request, webhook: Webhook) -> JsonObject:
    """
    The object in the body: JSON, or a form, which GitHub and Slack send; the JSON in a form's
    field `payload` stands for all of it. SG-8. Numbers stay as they stand: only those that become
    variables are judged, where they do. NU-1. Raises `InvalidInput`.
    """
    if not (scheme_of(webhook) in _FORMS and is_form(request)):
        return parse_object(request.raw, as_written)
    form = form_of(request)
    payload = form.get("payload")
    return parse_object(payload.encode(), as_written) if isinstance(payload, str) else form


AUTHENTICATORS: Mapping[Auth, Authenticator] = {
    Auth.OPEN: _open,
    Auth.KEY: _by_key,
    Auth.KEY_AFTER_BODY: _by_key_after_body,
    Auth.TRIGGER: _by_webhook,
    Auth.AGENT: _by_agent,
    Auth.SESSION: _by_session,
    Auth.PAGE: _to_page,
    Auth.PERSONAL: _by_personal_link,
    Auth.LOGIN: _to_login,
    Auth.ADMIN: _by_admin,
    Auth.DOWNLOAD: _to_download,
}
