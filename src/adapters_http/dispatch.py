"""
The way from a request to its response: route, authentication, handler, response, errors.

`_dispatch` takes these steps in order:

1. `_match` finds the route. The path decides before the method, so an unknown path is 404 and a
   wrong method 405, both before a key is required.
2. The host is checked, and a draining server refuses requests that start an execution. Neither
   needs credentials, and an execution that started now would wait for the next server.
3. `AUTHENTICATORS[route.auth]` admits the caller and reads the body, in the order that the
   specification implies for that kind of credential (see `auth`). Query parameters are checked
   later: a client without a key learns nothing about them.
4. The handler calls a use case and returns a view.
5. `pace.turn` waits while another large response is encoded, so that large results of one client
   do not stop the event loop for all.

Errors are exceptions of the core. `errors.STATUS` maps them to a status once; a route's `also`
overrides the mapping for that route. An exception without a status is a defect: the client gets 500
without details, and the log gets its type and place but never its message, which might quote the
client.

Three exits are easy to miss. A client that has left is counted as 499 and gets no response. A
cancellation while the server stops is answered with 503, because the client is still connected. A
streamed response that has begun cannot change its status: a failure then closes the connection,
which tells the client that the body is incomplete.

There is no middleware, no `Response` object for JSON, and our own transport sends a response whole:
the usual forms would cost each request more than most requests take here (`python -m bench`).
Decisions 10, 14 and 71.
"""

import asyncio
import logging
import re
import traceback
from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import partial
from itertools import count
from secrets import token_hex
from time import perf_counter
from typing import Any
from urllib.parse import unquote

from starlette.datastructures import MutableHeaders
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from adapters_http import error_pages
from adapters_http.auth import AUTHENTICATORS, require_readmission
from adapters_http.errors import NoSuchPath, WrongMethod, defect, rate_headers, response_to
from adapters_http.json_text import dump_json
from adapters_http.metrics import METHODS
from adapters_http.proxies import Proxies
from adapters_http.request import Context, Request
from adapters_http.route import Auth, Route
from adapters_http.tracing import RequestTrace
from adapters_http.transport.connections import WHOLE, Headers, WholeAnswer, host_name
from wfcore.errors import InvalidInput, NotReady, StoreUnavailable, Unauthenticated
from wfcore.rules.auth.rate_limit import Quota
from wfcore.rules.definition.values import known_or
from wfcore.rules.webhooks.webhook import refusal_in_words
from wfcore.usecases.webhooks.deliveries import note_refused_delivery
from wfcore.wire.converter import plain

log = logging.getLogger("wfcore.http")

_REQUEST_ID = re.compile(r"[A-Za-z0-9._:-]{1,128}", re.ASCII)
_SLASH = re.compile(rb"%2f", re.IGNORECASE)
_JSON = (b"content-type", b"application/json")
_NO_STORE = (b"cache-control", b"no-store")
_NO_SNIFF = (b"x-content-type-options", b"nosniff")
_KEY = "api_key"
_NAME_SHOWN = 80
_GONE = 499
"""The status that counts a request whose client left; nobody sees this status."""


class _Node:
    """
    A node of the tree: the segments that may follow a prefix, and the routes that end at this node.
    """

    __slots__ = ("methods", "static", "wild")

    def __init__(self) -> None:
        self.static: dict[str, _Node] = {}
        self.wild: _Node | None = None
        self.methods: dict[str, Route] = {}


class RouteTree:
    """The table of routes as a tree. A static segment takes precedence over a parameter."""

    def __init__(self, routes: Iterable[Route]) -> None:
        self._root = _Node()
        for route in routes:
            methods = self._grow(route.path).methods
            if route.method in methods:
                raise ValueError(f"two rows for {route.method} {route.path}")
            methods[route.method] = route
            if route.method == "GET":
                methods.setdefault("HEAD", route)

    def _grow(self, path: str) -> _Node:
        node = self._root
        for segment in path.split("/")[1:]:
            if segment.startswith("{"):
                node.wild = node.wild or _Node()
                node = node.wild
            else:
                node = node.static.setdefault(segment, _Node())
        return node

    def find(self, path: str) -> tuple[Mapping[str, Route], list[str]]:
        """
        The routes of *path* by method, and the values of its parameters. If there are no routes,
        the path does not exist.

        A parameter has at least one character, and only printable characters.
        """
        node, values = self._root, list[str]()
        for segment in path.split("/")[1:]:
            following = node.static.get(segment)
            if following is None:
                if node.wild is None or not segment or not segment.isprintable():
                    return {}, values
                following = node.wild
                values.append(segment)
            node = following
        return node.methods, values


class Pipeline:
    """The ASGI application behind all routes; *rest* handles scopes other than `http`."""

    def __init__(self, rest: ASGIApp, routes: RouteTree, context: Context) -> None:
        self._rest = rest
        self._routes = routes
        self._context = context
        self._proxies = Proxies(context.config.trusted_proxies)
        self._prefix = token_hex(8)
        self._count = count(1)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._rest(scope, receive, send)
            return
        began = perf_counter()
        seen = self._proxies.resolve(scope)
        request = Request(self._context, seen, self._request_id(scope))
        route, status = await _dispatch(self._routes, request, receive, send)
        label = route.path if route is not None else "unknown"
        method = request.method if request.method in METHODS else "other"
        metrics, took = self._context.metrics, perf_counter() - began
        metrics.requests.labels(label, method, str(status)).inc()
        metrics.seconds.labels(label).observe(took)
        if request.trace is not None:
            request.trace.answered(method, label, status, took)

    def _request_id(self, scope: Scope) -> str:
        """The id that the caller sent if it is well formed, otherwise a new id."""
        for name, value in scope["headers"]:
            if name == b"x-request-id":
                text = value.decode("latin-1")
                if _REQUEST_ID.fullmatch(text):
                    return str(text)
        return f"req_{self._prefix}{next(self._count):08x}"


async def _dispatch(
    routes: RouteTree, request: Request, receive: Receive, send: Send
) -> tuple[Route | None, int]:
    """Answer one request. Returns its route and status, for the metrics; never raises an error."""
    route = None
    try:
        route = _match(routes, request)
        tracing = request.context.config.tracing
        if route.starts or tracing is not None:
            request.trace = RequestTrace(tracing, request.scope, route.starts)
        _require_known_host(request, route)
        if route.starts:
            request.context.config.require_serving()
        await AUTHENTICATORS[route.auth](request, route, receive)
        if request.guest is not None or hasattr(request, "who"):
            request.readmit = partial(require_readmission, request, route)
        _require_known_query(request, route)
        answer = await route.handler(request)
        await request.context.pace.turn()
        body = _encoded(answer)
        request.context.pace.made(len(body))
    except ClientDisconnect:
        return route, _GONE
    except asyncio.CancelledError:
        if not request.context.config.ending:
            raise
        return route, await _refuse(request, route, NotReady("The server is stopping"), send)
    except Exception as error:
        return route, await _refuse(request, route, error, send)
    if isinstance(answer, Response):
        return route, await _respond(request, answer, receive, send)
    headers = [_JSON, *_common(request), *_quota(request.quota), *request.headers]
    status = route.status_of(answer)
    await _send(request, send, status, headers, body)
    return route, status


def _encoded(answer: object) -> bytes:
    """The JSON of a view. Bytes are returned unchanged; for a `Response` the result is empty."""
    if isinstance(answer, bytes):
        return answer
    return b"" if isinstance(answer, Response) else dump_json(plain(answer))


def _match(routes: RouteTree, request: Request) -> Route:
    """
    The route of *request*; sets the parameters of *request*. Raises `NoSuchPath`, `WrongMethod`.
    """
    methods, values = routes.find(_own_path(request.scope))
    route = methods.get(request.method)
    if route is None:
        raise WrongMethod(tuple(sorted(methods))) if methods else NoSuchPath()
    if values:
        request.params = dict(zip(route.names, values, strict=True))
    return route


def _own_path(scope: Scope) -> str:
    """
    The path of a request below the mount of this application.

    An encoded slash is part of a segment and stays encoded.
    """
    path: str = scope["path"]
    raw: bytes = scope.get("raw_path") or b""
    if b"%" in raw and b"%2f" in raw.lower():
        path = unquote(_SLASH.sub(b"%252F", raw.partition(b"?")[0]))
    root: str = scope.get("root_path", "")
    if root and path.startswith(root):
        return path[len(root) :] or "/"
    return path


def _require_known_query(request: Request, route: Route) -> None:
    """
    Raises `InvalidInput` for a query parameter that *route* does not declare, unless the route is
    tolerant, and for a declared parameter that occurs twice. PG-3.
    """
    if not request.scope["query_string"]:
        return
    known = {one.name: one for one in route.query}
    seen = set[str]()
    for name in request.query_names:
        if name in known:
            if name in seen and not known[name].repeats:
                raise InvalidInput(name, "stands twice; say it once")
            seen.add(name)
        elif not route.tolerant and not (name == _KEY and route.auth is Auth.KEY):
            fix = f"unknown query parameter; {known_or(name, known)}" if known else _NONE_KNOWN
            raise InvalidInput(name[:_NAME_SHOWN], fix)


_NONE_KNOWN = "unknown query parameter; there are none here"


def _require_known_host(request: Request, route: Route) -> None:
    """
    Raises `InvalidInput` if `Host` is not a name of this application. Probes and collectors of
    metrics use addresses; they are answered under any name.
    """
    allowed = request.context.config.allowed_hosts
    if allowed is None or route.path in _FOR_PROBES:
        return
    if [host_name(host) in allowed for host in request.header_values(b"host")] != [True]:
        raise InvalidInput("Host", "not a name of this server; WFCORE_ALLOWED_HOSTS has the others")


_FOR_PROBES = ("/healthz", "/readyz", "/metrics")


async def _refuse(request: Request, route: Route | None, error: Exception, send: Send) -> int:
    refused = response_to(error, route.also if route is not None else {})
    if refused is None:
        report(request, route, error)
        refused = defect()
    detail = refusal_in_words(error) if isinstance(error, Unauthenticated) else refused.message
    await _note_trigger(request, refused.status, detail)
    if error_pages.is_for_people(request, route):
        headers, html = error_pages.page_of(request, route, refused)
        await _send(request, send, refused.status, headers, html)
    else:
        headers = [_JSON, *_common(request), *_quota(request.quota), *refused.headers]
        await _send(request, send, refused.status, headers, refused.body)
    return refused.status


async def _note_trigger(request: Request, status: int, reason: str) -> None:
    """Count a refused trigger in the statistics of its webhook, with the reason. WH-9."""
    webhook, delivery = request.webhook, request.delivery
    if webhook is None or status == 404:
        return
    payload = delivery.payload if delivery else None
    size, known = len(request.raw), delivery is not None
    with suppress(StoreUnavailable):
        await note_refused_delivery(request.services, webhook, status, reason, known, payload, size)


async def _respond(request: Request, response: Response, receive: Receive, send: Send) -> int:
    """
    Send a response that is not JSON.

    Once the response has begun, its status is final: a later failure ends the connection, which
    tells the client that the body is incomplete.
    """
    headers = MutableHeaders(raw=response.raw_headers)
    for name, value in (*_common(request), *_quota(request.quota), *request.headers):
        add = headers.append if name == b"set-cookie" else headers.setdefault
        add(name.decode(), value.decode())
    if type(response) is Response:
        body = bytes(response.body)
        await _send_whole(request, send, response.status_code, response.raw_headers, body)
        return response.status_code
    begun = False

    async def send_noting(message: Message) -> None:
        nonlocal begun
        begun = True
        await send(message)

    try:
        await response(request.scope, receive, send_noting)
    except ClientDisconnect:
        return _GONE
    except asyncio.CancelledError:
        if not request.context.config.ending:
            raise
        return _GONE
    except Exception as error:
        if not begun:
            return await _refuse(request, None, error, send)
        report(request, None, error)
    return response.status_code


def _common(request: Request) -> tuple[tuple[bytes, bytes], ...]:
    return (b"x-request-id", request.request_id.encode()), _NO_STORE, _NO_SNIFF


def _quota(quota: Quota | None) -> Headers:
    return rate_headers(quota.limit, quota.remaining, quota.window) if quota else []


async def _send(request: Request, send: Send, status: int, headers: Headers, body: bytes) -> None:
    headers.append((b"content-length", b"%d" % len(body)))
    await _send_whole(request, send, status, headers, body)


async def _send_whole(
    request: Request, send: Send, status: int, headers: Headers, body: bytes
) -> None:
    """Send by the extension of our own transport if present, otherwise by two ASGI messages."""
    whole: WholeAnswer | None = request.scope.get("extensions", _NONE).get(WHOLE)
    if whole is not None and whole.send == send:
        whole.answer(status, headers, body)
        return
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


_NONE: Mapping[str, Any] = {}


def report(request: Request, route: Route | None, error: Exception) -> None:
    """
    Log a defect by type and place. The message of the error is left out, because it might quote a
    client.
    """
    frames = traceback.extract_tb(error.__traceback__)
    places = [f"{one.filename}:{one.lineno} {one.name}" for one in frames]
    about = {
        "request_id": request.request_id,
        "route": f"{route.method} {route.path}" if route is not None else None,
        "error": type(error).__name__,
        "at": places,
    }
    log.error("request.failed", extra=about)
