"""The body of a request: read in the way of the route, then parsed into the shape of the route."""

from functools import partial
from time import monotonic
from typing import Any

from starlette.datastructures import Headers
from starlette.types import Receive

from adapters_http.body import read_body
from adapters_http.forms import nested
from adapters_http.json_text import parse_object
from adapters_http.request import Request
from adapters_http.route import Auth, Route
from wfcore.rules.auth.session import one_client
from wfcore.rules.json_text import exactly, refuse_repeated_keys
from wfcore.rules.numbers import kept
from wfcore.rules.webhooks.payload import is_form, read_form
from wfcore.usecases.accounts import authenticate
from wfcore.usecases.accounts.authenticate import Credentials
from wfcore.wire.converter import structured


async def read(request: Request, route: Route, receive: Receive) -> None:
    """Set `raw` to the body, within the limit of *route*."""
    headers, limit = Headers(scope=request.scope), route.body_limit
    if route.auth not in _BODY_FIRST:
        request.raw = await read_body(receive, headers, limit)
        return
    client = one_client(request.origin.ip or "")
    with request.context.strangers_bodies.arriving(client) as took:
        request.raw = await read_body(receive, headers, limit, took=took)


_BODY_FIRST = frozenset({Auth.TRIGGER, Auth.KEY_AFTER_BODY, Auth.LOGIN})
"""The kinds of authentication that read a body before its sender is known."""


LARGE = 65_536
"""The most bytes of a body that is parsed in the event loop: about a millisecond of work."""


async def parse(request: Request, route: Route) -> None:
    """Set `json` and `body` from `raw`, if *route* has a shape for the body."""
    if route.body is None:
        return
    if len(request.raw) <= LARGE:
        _parse(request, route, route.body)
    else:
        await request.services.offload(partial(_parse, request, route, route.body))


def _parse(request: Request, route: Route, shape: type[Any]) -> None:
    as_form = route.html and is_form(request.header(b"content-type"))
    reader = exactly if route.decides else kept
    request.json = nested(read_form(request.raw)) if as_form else parse_object(request.raw, reader)
    if route.keys_once:
        refuse_repeated_keys(request.raw, request.json)
    request.body = structured(shape, request.json)


async def read_and_parse(request: Request, route: Route, receive: Receive) -> None:
    """Set `raw`, `json` and `body`, if *route* has a body."""
    if route.body is not None:
        await read(request, route, receive)
        await parse(request, route)


LATE_S = 1.0


async def read_and_recheck(
    request: Request, route: Route, receive: Receive, keys: Credentials
) -> None:
    """
    Read the body. If the body came late, authenticate its caller again: key or account may be
    revoked or deleted by then.
    """
    began = monotonic()
    await read(request, route, receive)
    if route.scope and request.who.key and monotonic() - began > LATE_S:
        request.who = await authenticate.authenticate(request.services, keys, route.scope)
