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
    carried,
    carried_in_headers,
    refuse_cross_site,
    session_token,
)
from adapters_http.json import parse_object, refuse_repeated_keys
from adapters_http.request import Ask
from adapters_http.route import Auth, Route
from wfcore.errors import AccountBlocked, Unauthenticated
from wfcore.model.access import Principal, Scope, Visitor
from wfcore.usecases.accounts import authenticate
from wfcore.usecases.accounts.authenticate import Carried
from wfcore.usecases.accounts.sessions import session_of
from wfcore.usecases.audit.auditing import note_denial
from wfcore.wire.converter import structured

Door: TypeAlias = Callable[[Ask, Route, Receive], Awaitable[None]]


async def _read(ask: Ask, route: Route, receive: Receive) -> None:
    ask.raw = await read_body(receive, Headers(scope=ask.scope), route.body_limit)


LARGE = 65_536
"""Bytes of a body from which it is understood aside of the event loop: about a millisecond."""


async def _understand(ask: Ask, route: Route) -> None:
    if route.body is None:
        return
    if len(ask.raw) <= LARGE:
        _parse(ask, route, route.body)
    else:
        await ask.services.offload(partial(_parse, ask, route, route.body))


def _parse(ask: Ask, route: Route, shape: type[Any]) -> None:
    ask.json = parse_object(ask.raw)
    if route.keys_once:
        refuse_repeated_keys(ask.raw, ask.json)
    ask.body = structured(shape, ask.json)


async def _read_and_understand(ask: Ask, route: Route, receive: Receive) -> None:
    if route.body is not None:
        await _read(ask, route, receive)
        await _understand(ask, route)


async def _admit(ask: Ask, route: Route) -> None:
    assert route.scope is not None
    keys = carried(ask)
    visitor = None if route.html else await _visitor(ask, keys)
    if visitor is not None:
        admitted = await authenticate.admit_visitor(ask.services, visitor, route.scope, ask.origin)
    else:
        admitted = await authenticate.admit(ask.services, keys, route.scope, ask.origin)
    ask.who, ask.quota = admitted.who, admitted.quota


async def _visitor(ask: Ask, keys: Carried) -> Visitor | None:
    """
    Whom the application around this one vouches for, where no key of ours is carried. AU-10.

    What lets a visitor in may be a cookie, which a browser sends from any page: changes from
    other sites are refused. Links that decide are opened by key alone.
    """
    login = ask.context.config.login
    if login is None or keys.is_ours:
        return None
    visitor = await login(ask.scope)
    if visitor is not None:
        refuse_cross_site(ask)
    return visitor


async def _by_key(ask: Ask, route: Route, receive: Receive) -> None:
    await _admit(ask, route)
    if route.body is not None:
        await _read_and_understand(ask, route, receive)


async def _by_key_after_body(ask: Ask, route: Route, receive: Receive) -> None:
    await _read(ask, route, receive)
    await _admit(ask, route)
    await _understand(ask, route)


async def _by_webhook(ask: Ask, route: Route, receive: Receive) -> None:
    """Exists, size, credentials, rate, active, JSON object. WH-13."""
    webhook = await authenticate.find_webhook(ask.services, ask.params["id"])
    ask.webhook = webhook
    await _read(ask, route, receive)
    sender = await authenticate.identify_sender(
        ask.services, webhook, carried(ask), ask.all_headers, ask.raw, ask.origin
    )
    ask.authenticated = True
    ask.quota = await authenticate.admit_sender(ask.services, webhook, sender)
    ask.json = payload_of(ask, webhook)


async def _by_session(ask: Ask, route: Route, receive: Receive) -> None:
    refuse_cross_site(ask)
    try:
        ask.who = await _signed_in(ask)
    except (Unauthenticated, AccountBlocked) as refusal:
        await note_denial(ask.services, "console.request", refusal, ask.origin)
        raise
    await _read_and_understand(ask, route, receive)


async def _signed_in(ask: Ask) -> Principal:
    visitor = await _visitor(ask, carried(ask))
    if visitor is not None:
        return await authenticate.recognise(ask.services, visitor, None)
    return await session_of(ask.services, session_token(ask))


async def _to_login(ask: Ask, route: Route, receive: Receive) -> None:
    refuse_cross_site(ask)
    await _read_and_understand(ask, route, receive)


async def _to_download(ask: Ask, route: Route, receive: Receive) -> None:
    """Only those without a signature; the handler looks at the others' signature."""
    if ask.query("signature") is None:
        ask.who = await _reader(ask)


async def _reader(ask: Ask) -> Principal:
    token = session_token(ask)
    by_header = carried_in_headers(ask)
    try:
        visitor = await _visitor(ask, by_header)
        if visitor is not None:
            return await authenticate.recognise(ask.services, visitor, Scope.ARTIFACT_READ)
        if token and not (by_header.authorization or by_header.x_api_key):
            return await session_of(ask.services, token)
        return await authenticate.authenticate(ask.services, by_header, Scope.ARTIFACT_READ)
    except (Unauthenticated, AccountBlocked) as refusal:
        await note_denial(ask.services, "artifact.download", refusal, ask.origin)
        raise


async def _open(ask: Ask, route: Route, receive: Receive) -> None:
    """Nobody is asked, nothing is read."""


DOORS: Mapping[Auth, Door] = {
    Auth.OPEN: _open,
    Auth.KEY: _by_key,
    Auth.KEY_AFTER_BODY: _by_key_after_body,
    Auth.TRIGGER: _by_webhook,
    Auth.SESSION: _by_session,
    Auth.LOGIN: _to_login,
    Auth.DOWNLOAD: _to_download,
}
