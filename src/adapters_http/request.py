"""One request: what it asks for, checked, and what authentication and handlers add to it."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from enum import StrEnum
from hashlib import sha256
from time import perf_counter
from typing import Any, TypeVar
from urllib.parse import parse_qsl, urlsplit

from attrs import field, frozen
from starlette.types import Scope

from adapters_http.body import Answers, Pace
from adapters_http.config import HttpConfig, Network, Stage
from adapters_http.metrics import Metrics
from adapters_http.strangers_bodies import StrangersBodies
from adapters_http.tracing import RequestTrace
from adapters_http.transport.connections import Address, Headers, address_of, is_host
from wfcore.errors import InvalidInput, NotReady
from wfcore.model.access import Caller, Guest, Principal
from wfcore.model.execution import Execution
from wfcore.model.json import JsonObject
from wfcore.model.page import PageRequest
from wfcore.model.webhook import Webhook
from wfcore.rules.auth.rate_limit import Quota
from wfcore.rules.paging import page_request
from wfcore.rules.variables import NO_NUL
from wfcore.time import EpochMs
from wfcore.usecases.audit.auditing import Origin
from wfcore.usecases.executions.executions import wait_for_rest
from wfcore.usecases.executions.starting import Idempotency
from wfcore.usecases.services import Services

log = logging.getLogger("wfcore.http")

_MOST_FIELDS = 100


class Aside:
    """
    What goes on after its answer. A few at a time: what is beyond them is left out, and logged.
    """

    def __init__(self) -> None:
        self._tasks = set[asyncio.Task[None]]()

    def begin(self, work: Coroutine[Any, Any, None]) -> None:
        """Carry *work* out; what it raises is logged by its type alone."""
        if len(self._tasks) >= _MOST_ASIDE:
            work.close()
            log.error("aside.full")
            return
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: "asyncio.Task[None]") -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("aside.failed", extra={"error": type(error).__name__})


_MOST_ASIDE = 32


@frozen
class Context:
    """
    What all requests share. `description` returns the text of the OpenAPI document for a
    base URL, with `webhooks` or with callbacks.
    """

    services: Services
    config: HttpConfig
    metrics: Metrics
    description: Callable[[str, bool], bytes]
    answers: Answers = field(factory=Answers)
    pace: Pace = field(factory=Pace)
    aside: Aside = field(factory=Aside)
    strangers_bodies: StrangersBodies = field(factory=StrangersBodies)


STILL_S = 2.0
"""A stream ends at most five seconds after its credential. SE-12."""


class Request:
    """
    `who`, `raw`, `json`, `body`, `quota` and `webhook` are set by authentication.

    A handler may add to `headers`, which go out with a success.
    """

    who: Principal
    """Set before the handler runs, on every route that asks for somebody."""
    visiting: bool = False
    """Whether the surrounding application vouched for `who`."""
    guest: Guest | None = None
    """Who came by a personal link; there is no `who` then."""
    again: Callable[[], Awaitable[None]] | None = None
    """Raises what admission would raise now. Set where the caller was admitted by a credential."""
    _admitted: float = 0.0
    quota: Quota | None = None
    webhook: Webhook | None = None
    authenticated: bool = False
    """Whether the credentials of a trigger were good, whatever came of it."""
    raw: bytes = b""
    json: JsonObject
    body: Any = None
    waiting: int | None = None
    """How much waits for `who`, which the frame of each page shows."""
    traced: RequestTrace | None = None
    _fields: list[tuple[str, str]] | None = None

    def __init__(self, context: Context, scope: Scope, id: str) -> None:
        self.context = context
        self.services = context.services
        self.scope = scope
        self.request_id = id
        self.params: dict[str, str] = {}
        self.headers: list[tuple[bytes, bytes]] = []
        self.began = perf_counter()

    async def still(self) -> None:
        """
        Raises `Unauthenticated` or `AccountBlocked` if the credential of this request has ended
        meanwhile: for what goes on for long. Looks at most once in `STILL_S`. SE-12.
        """
        if self.again is not None and perf_counter() - max(self._admitted, self.began) >= STILL_S:
            self._admitted = perf_counter()
            await self.again()

    @property
    def method(self) -> str:
        """The HTTP method."""
        method: str = self.scope["method"]
        return method

    @property
    def caller(self) -> Caller:
        """Who decides, on the pages of approvals."""
        return self.guest or self.who

    @property
    def origin(self) -> Origin:
        """
        Where it came from, for the audit log. Contains neither the query string nor the token of a
        link, which is a credential.
        """
        client = self.scope.get("client")
        path: str = self.scope["path"]
        if "token" in self.params:
            path = path.partition(f"/{self.params['token']}")[0]
        trace = self.traced.trace if self.traced else None
        return Origin(path, client[0] if client else None, self.request_id, trace=trace)

    def header_values(self, name: bytes) -> list[str]:
        """Every value of one header; *name* in lower case."""
        return [value.decode("latin-1") for key, value in self.scope["headers"] if key == name]

    @property
    def all_headers(self) -> Mapping[str, Sequence[str]]:
        """Every header with all its values, by name in lower case."""
        found: dict[str, list[str]] = {}
        for name, value in self.scope["headers"]:
            found.setdefault(name.decode("latin-1"), []).append(value.decode("latin-1"))
        return found

    def header(self, name: bytes) -> str | None:
        """The first value of one header; *name* in lower case."""
        for key, value in self.scope["headers"]:
            if key == name:
                text: str = value.decode("latin-1")
                return text
        return None

    def query_values(self, name: str) -> list[str]:
        """Every value of one query parameter. Raises `InvalidInput` if there are too many."""
        if not self.scope["query_string"]:
            return []
        if self._fields is None:
            self._fields = _parsed(self.scope["query_string"])
        return [value for key, value in self._fields if key == name]

    @property
    def query_names(self) -> list[str]:
        """The names of all query parameters, repeated ones as often as they occur."""
        self.query_values("")
        return [name for name, _ in self._fields or ()]

    def query(self, name: str) -> str | None:
        """The first value of one query parameter. Raises `InvalidInput` for one with NUL."""
        values = self.query_values(name)
        return without_nul(name, values[0]) if values else None

    @property
    def base_path(self) -> str:
        """The path in front of all of ours, as clients see it; empty at the root."""
        if self.context.config.public_url is not None:
            return urlsplit(self.context.config.public_url).path.rstrip("/")
        root: str = self.scope.get("root_path", "")
        return root.rstrip("/")

    @property
    def base_url(self) -> str:
        """How clients reach this application, without a slash at the end."""
        if self.context.config.public_url is not None:
            return self.context.config.public_url.rstrip("/")
        scope = self.scope
        host = self.header(b"host")
        if host is None:
            server = scope.get("server") or ("127.0.0.1", 80)
            host = f"{server[0]}:{server[1]}"
        return f"{scope['scheme']}://{host}{self.base_path}"


def without_nul(name: str, text: str) -> str:
    """*text*. Raises `InvalidInput` if it has NUL characters, which some stores cannot read."""
    if "\0" in text:
        raise InvalidInput(name, NO_NUL)
    return text


def _parsed(query: bytes) -> list[tuple[str, str]]:
    try:
        return parse_qsl(query.decode("latin-1"), True, max_num_fields=_MOST_FIELDS)
    except ValueError:
        raise InvalidInput("query", f"at most {_MOST_FIELDS} parameters") from None


E = TypeVar("E", bound=StrEnum)
_INSTANT_DIGITS = 15
LONGEST_WAIT_S = 60
LONGEST_IDEMPOTENCY_KEY = 255


def page(request: Request, sizes: tuple[int, int], list: str = "") -> PageRequest:
    """`page` and `size`, or `after` with a cursor of that *list*. Raises `InvalidInput`."""
    return page_request(
        request.query("page"), request.query("size"), sizes, request.query("after"), list
    )


def members(request: Request, name: str, kind: type[E]) -> tuple[E, ...]:
    """A filter by values of an enum; empty ones count as absent. PG-4. Raises `InvalidInput`."""
    try:
        return tuple(dict.fromkeys(kind(text) for text in request.query_values(name) if text))
    except ValueError:
        several = "; for several repeat it" if "," in "".join(request.query_values(name)) else ""
        raise InvalidInput(name, f"must be one of {', '.join(kind)}{several}") from None


def span(request: Request) -> tuple[EpochMs | None, EpochMs | None]:
    """`from` and `to`, the latter exclusive. Raises `InvalidInput`."""
    since, until = _instant(request, "from"), _instant(request, "to")
    if since is not None and until is not None and until < since:
        raise InvalidInput("to", "must not lie before from")
    return since, until


def _instant(request: Request, name: str) -> EpochMs | None:
    text = request.query(name)
    if not text:
        return None
    if not (text.isascii() and text.isdigit() and len(text) <= _INSTANT_DIGITS):
        raise InvalidInput(name, "must be an instant in milliseconds since 1970 (UTC)")
    return EpochMs(int(text))


def oldest_first(request: Request, field: str) -> bool:
    """`sort`: by *field*, or by `-field`, the default of lists. Raises `InvalidInput`."""
    text = request.query("sort")
    if text and text not in (field, f"-{field}"):
        raise InvalidInput("sort", f"must be {field} (oldest first) or -{field} (newest first)")
    return text == field


def flag(request: Request, name: str) -> bool:
    """`true` or `false`; absent or empty: false. Raises `InvalidInput`."""
    text = request.query(name)
    if text and text not in ("true", "false"):
        raise InvalidInput(name, "must be true or false")
    return text == "true"


def wait_ms(request: Request) -> int | None:
    """`wait`, in seconds from 1 to 60; None if not requested. Raises `InvalidInput`."""
    text = request.query("wait")
    if text is None:
        return None
    seconds = int(text) if text.isascii() and text.isdigit() and len(text) <= 9 else 0
    if not 1 <= seconds <= LONGEST_WAIT_S:
        raise InvalidInput("wait", f"must be a number of seconds from 1 to {LONGEST_WAIT_S}")
    return seconds * 1_000


def with_outputs(request: Request) -> bool:
    """Whether outputs of steps are wanted: not with `outputs=none`. Raises `InvalidInput`."""
    text = request.query("outputs")
    if text not in (None, "none"):
        raise InvalidInput("outputs", "must be none, or left out")
    return text is None


async def rested(request: Request, execution_id: str, wait: int) -> Execution:
    """
    The execution as soon as it rests, after *wait* milliseconds, or when this server ends; large
    outputs may be left out.

    Raises `NotFound`.
    """
    config = request.context.config
    return await wait_for_rest(
        request.services,
        request.who,
        execution_id,
        wait,
        leaving=lambda: config.ending,
        still=request.again,
        outputs=False,
    )


def require_serving(request: Request) -> None:
    """Raises `NotReady` while the server is stopping."""
    if request.context.config.stage() is not Stage.SERVING:
        raise NotReady("The server is stopping; try again in a moment")


def idempotency(request: Request) -> Idempotency | None:
    """The `Idempotency-Key` with a fingerprint of the body. Raises `InvalidInput`. IK-1."""
    found = request.header_values(b"idempotency-key")
    if not found:
        return None
    key = found[0] if len(found) == 1 else ""
    check_idempotency_key("Idempotency-Key", key)
    return Idempotency(key, sha256(request.raw).hexdigest())


def check_idempotency_key(field: str, key: str) -> None:
    """Raises `InvalidInput` for what is no such key, in a header or a form. IK-1."""
    printable = key.isascii() and key.isprintable()
    if not printable or not 1 <= len(key) <= LONGEST_IDEMPOTENCY_KEY:
        fix = f"must be 1 to {LONGEST_IDEMPOTENCY_KEY} printable ASCII characters"
        raise InvalidInput(field, fix)


def last_event_id(request: Request) -> int:
    """The number of the last event that the client has seen. Raises `InvalidInput`."""
    return event_number("Last-Event-ID", request.header(b"last-event-id"))


def event_number(field: str, text: str | None) -> int:
    """The number of an event; 0: before the first. Raises `InvalidInput`."""
    if not text:
        return 0
    if not (text.isascii() and text.isdigit() and len(text) <= 18):
        raise InvalidInput(field, "must be the number of an event")
    return int(text)


def rate_headers(limit: int, remaining: int, window: str) -> Headers:
    """What is left of the tighter window. RL-6."""
    return [
        (b"x-ratelimit-limit", b"%d" % limit),
        (b"x-ratelimit-remaining", b"%d" % remaining),
        (b"x-ratelimit-window", window.encode()),
    ]


@frozen
class Proxies:
    """The trusted addresses and networks; none by default."""

    trusted: Sequence[Network] = ()

    def seen_through(self, scope: Scope) -> Scope:
        """
        *scope* with the client, the scheme and the `Host` as reported by the trusted proxies in
        front; *scope* itself if none of these sent it. `Forwarded` is not read.
        """
        peer = address_of(scope["client"][0]) if self.trusted and scope.get("client") else None
        if peer is None or not self._trusts(peer):
            return scope
        seen = dict(scope)
        client = self._client(peer, _said(scope, b"x-forwarded-for"))
        seen["client"] = (str(client), scope["client"][1] if client == peer else 0)
        scheme = _said(scope, b"x-forwarded-proto")[-1:]
        if scheme in (["http"], ["https"]):
            (seen["scheme"],) = scheme
        host = _said(scope, b"x-forwarded-host")[-1:]
        if host and is_host(host[0].encode("latin-1")):
            others = [field for field in scope["headers"] if field[0] != b"host"]
            seen["headers"] = [(b"host", host[0].encode("latin-1")), *others]
        return seen

    def _client(self, peer: Address, hops: Sequence[str]) -> Address:
        """
        The nearest address that is not trusted; if a hop cannot be read, the one who reported it.
        """
        client = peer
        for hop in reversed(hops):
            address = address_of(hop)
            if address is None:
                break
            client = address
            if not self._trusts(client):
                break
        return client

    def _trusts(self, address: Address) -> bool:
        return any(address in network for network in self.trusted)


def _said(scope: Scope, name: bytes) -> list[str]:
    """The items of a list that may be spread over several fields, first to last, lower case."""
    values = [value.decode("latin-1") for key, value in scope["headers"] if key == name]
    return [part.strip().lower() for part in ",".join(values).split(",")] if values else []
