"""
Authentication: one function for each `Auth`, and the credentials that a request carries.

The functions differ in the order of their checks; the rules are those of the core. Spec:
authentication, ways to carry the key. AU-8 to AU-10.
"""

from collections.abc import Awaitable, Callable, Collection, Mapping
from functools import partial
from typing import TypeAlias

import orjson
from starlette.types import Receive

from adapters_http.browsers import refuse_cross_site, refuse_silent_browser, session_token
from adapters_http.json_text import parse_object
from adapters_http.request import Request
from adapters_http.request_body import parse, read, read_and_parse, read_and_recheck
from adapters_http.route import Auth, Route
from wfcore.errors import AccountBlocked, Unauthenticated
from wfcore.model.access import Principal, Scope, Visitor
from wfcore.rules.gate import require_no_approver
from wfcore.rules.numbers import as_written
from wfcore.usecases.accounts import authenticate
from wfcore.usecases.accounts.authenticate import Credentials
from wfcore.usecases.accounts.sessions import require_session, session_of
from wfcore.usecases.audit.auditing import note_denial
from wfcore.usecases.webhooks.admitting import admit_webhook
from wfcore.usecases.webhooks.senders import find_webhook

Authenticator: TypeAlias = Callable[[Request, Route, Receive], Awaitable[None]]


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


async def _visitor(request: Request, keys: Credentials) -> Visitor | None:
    """
    The user for whom the surrounding application vouches, if the request carries no key of ours.
    AU-10.

    A cookie may identify a visitor, and browsers send cookies from foreign pages, too: so changes
    from other sites are refused. Links that decide need a key.
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
        await read_and_recheck(request, route, receive, credentials_of(request))
        await parse(request, route)


async def _by_key_after_body(request: Request, route: Route, receive: Receive) -> None:
    await read(request, route, receive)
    await _admit(request, route)
    await parse(request, route)


async def _by_webhook(request: Request, route: Route, receive: Receive) -> None:
    """Check existence and size; `admit_webhook` does the other checks. WH-13."""
    webhook = await find_webhook(request.services, request.params["id"])
    request.webhook = webhook
    await read(request, route, receive)
    request.webhook = None  # `admit_webhook` notes its own refusals
    request.delivery = await admit_webhook(
        request.services,
        webhook,
        request.all_headers,
        request.raw,
        keys=credentials_of(request),
        origin=request.origin,
        quick=orjson.loads,
    )
    request.webhook, request.quota = webhook, request.delivery.quota


async def _by_agent(request: Request, route: Route, receive: Receive) -> None:
    """
    Admit as by key, but only a key in a header, and never a key that may decide approvals. MC-4.
    The body is parsed strictly before the SDK parses it in its own way.
    """
    assert route.scope is not None
    allowed = request.context.config.cors_origins
    if "*" not in allowed and not set(request.header_values(b"origin")) & set(allowed):
        refuse_cross_site(request)
    keys = header_credentials(request)
    admitted = await authenticate.admit(request.services, keys, route.scope, request.origin)
    request.who, request.quota = admitted.who, admitted.quota
    require_no_approver(request.who)
    await read_and_recheck(request, route, receive, keys)
    request.json = await request.services.offload(partial(parse_object, request.raw, as_written))


async def _by_session(request: Request, route: Route, receive: Receive) -> None:
    refuse_cross_site(request)
    try:
        request.who = await _signed_in(request, route.visitor_scopes)
    except (Unauthenticated, AccountBlocked) as refusal:
        await note_denial(request.services, "console.request", refusal, request.origin)
        raise
    await read_and_parse(request, route, receive)


async def _signed_in(request: Request, scopes: Collection[Scope]) -> Principal:
    """The caller by session, or a visitor with *scopes*; a session needs no scopes."""
    visitor = await _visitor(request, credentials_of(request))
    if visitor is not None:
        request.is_visitor = True
        return await authenticate.recognise(request.services, visitor, scopes)
    return await session_of(request.services, session_token(request))


async def require_readmission(request: Request, route: Route) -> None:
    """
    Raises `Unauthenticated`, `AccountBlocked` or `PersonalLinkOver` if the credential that admitted
    the caller would be refused now. No use is counted or recorded, and no session is extended.
    SE-12.
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
    await read_and_parse(request, route, receive)


async def _to_page(request: Request, route: Route, receive: Receive) -> None:
    """Admit as with a session, but without an audit entry if a page is opened signed out."""
    refuse_cross_site(request)
    refuse_silent_browser(request)
    request.who = await _signed_in(request, route.visitor_scopes)
    await read_and_parse(request, route, receive)


async def _by_personal_link(request: Request, route: Route, receive: Receive) -> None:
    """
    Admit the person in the link to the approval in the link; cookies and keys are ignored. PL-1.
    """
    refuse_cross_site(request)
    refuse_silent_browser(request)
    request.guest = await authenticate.admit_guest(request.services, request.params["token"])
    request.params["id"] = request.guest.approval_id
    await read_and_parse(request, route, receive)


async def _by_admin(request: Request, route: Route, receive: Receive) -> None:
    keys = header_credentials(request)
    request.who = await authenticate.admit_operator(request.services, keys, request.origin)
    await read(request, route, receive)
    request.json = await request.services.offload(partial(parse_object, request.raw))


async def _to_download(request: Request, route: Route, receive: Receive) -> None:
    """Authenticate a request without a signature; the handler checks signatures."""
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
    """Require no credentials and read nothing."""


def credentials_of(request: Request) -> Credentials:
    """The keys in all three places: Bearer, `X-API-Key`, and the query parameter `api_key`."""
    authorization, x_api_key = [], []
    for name, value in request.scope["headers"]:
        if name == b"authorization":
            authorization.append(value.decode("latin-1"))
        elif name == b"x-api-key":
            x_api_key.append(value.decode("latin-1"))
    return Credentials(authorization, x_api_key, request.query_values("api_key"))


def header_credentials(request: Request) -> Credentials:
    """The keys in headers alone, for routes whose addresses people open or logs keep."""
    return Credentials(request.header_values(b"authorization"), request.header_values(b"x-api-key"))


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
