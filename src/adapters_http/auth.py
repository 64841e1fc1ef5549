"""
Letting a request in, one function for each kind of door. They differ in what they look at
first, never in the rules, which are the core's. Spec: authentication; contract §6, §7.
AU-8 to AU-10.
"""

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any, TypeAlias

from starlette.datastructures import Headers
from starlette.types import Receive

from adapters_http.body import payload_of, read_body
from adapters_http.credentials import (
    credentials_of,
    header_credentials,
    refuse_cross_site,
    session_token,
)
from adapters_http.json import parse_object, refuse_repeated_keys
from adapters_http.request import Request
from adapters_http.route import Auth, Route
from wfcore.errors import AccountBlocked, Unauthenticated
from wfcore.model.access import Principal, Scope, Visitor
from wfcore.usecases.accounts import authenticate
from wfcore.usecases.accounts.authenticate import Credentials
from wfcore.usecases.accounts.sessions import session_of
from wfcore.usecases.audit.auditing import note_denial
from wfcore.wire.converter import structured

Authenticator: TypeAlias = Callable[[Request, Route, Receive], Awaitable[None]]


async def _read(request: Request, route: Route, receive: Receive) -> None:
    request.raw = await read_body(receive, Headers(scope=request.scope), route.body_limit)


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
    request.json = parse_object(request.raw)
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


async def _visitor(request: Request, keys: Credentials) -> Visitor | None:
    """
    Whom the application around this one vouches for, where no key of ours is carried. AU-10.

    What lets a visitor in may be a cookie, which a browser sends from any page: changes from
    other sites are refused. Links that decide are opened by key alone.
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
        await _read_and_understand(request, route, receive)


async def _by_key_after_body(request: Request, route: Route, receive: Receive) -> None:
    await _read(request, route, receive)
    await _admit(request, route)
    await _understand(request, route)


async def _by_webhook(request: Request, route: Route, receive: Receive) -> None:
    """Exists, size, credentials, rate, active, JSON object. WH-13."""
    webhook = await authenticate.find_webhook(request.services, request.params["id"])
    request.webhook = webhook
    await _read(request, route, receive)
    sender = await authenticate.identify_sender(
        request.services,
        webhook,
        credentials_of(request),
        request.all_headers,
        request.raw,
        request.origin,
    )
    request.authenticated = True
    request.quota = await authenticate.admit_sender(request.services, webhook, sender)
    request.json = payload_of(request, webhook)


async def _by_session(request: Request, route: Route, receive: Receive) -> None:
    refuse_cross_site(request)
    try:
        request.who = await _signed_in(request)
    except (Unauthenticated, AccountBlocked) as refusal:
        await note_denial(request.services, "console.request", refusal, request.origin)
        raise
    await _read_and_understand(request, route, receive)


async def _signed_in(request: Request) -> Principal:
    visitor = await _visitor(request, credentials_of(request))
    if visitor is not None:
        return await authenticate.recognise(request.services, visitor, None)
    return await session_of(request.services, session_token(request))


async def _to_login(request: Request, route: Route, receive: Receive) -> None:
    refuse_cross_site(request)
    await _read_and_understand(request, route, receive)


async def _to_download(request: Request, route: Route, receive: Receive) -> None:
    """Only those without a signature; the handler looks at the others' signature."""
    if request.query("signature") is None:
        request.who = await _reader(request)


async def _reader(request: Request) -> Principal:
    token = session_token(request)
    by_header = header_credentials(request)
    try:
        visitor = await _visitor(request, by_header)
        if visitor is not None:
            return await authenticate.recognise(request.services, visitor, Scope.ARTIFACT_READ)
        if token and not (by_header.authorization or by_header.x_api_key):
            return await session_of(request.services, token)
        return await authenticate.authenticate(request.services, by_header, Scope.ARTIFACT_READ)
    except (Unauthenticated, AccountBlocked) as refusal:
        await note_denial(request.services, "artifact.download", refusal, request.origin)
        raise


async def _open(request: Request, route: Route, receive: Receive) -> None:
    """Nobody is asked, nothing is read."""


AUTHENTICATORS: Mapping[Auth, Authenticator] = {
    Auth.OPEN: _open,
    Auth.KEY: _by_key,
    Auth.KEY_AFTER_BODY: _by_key_after_body,
    Auth.TRIGGER: _by_webhook,
    Auth.SESSION: _by_session,
    Auth.LOGIN: _to_login,
    Auth.DOWNLOAD: _to_download,
}
