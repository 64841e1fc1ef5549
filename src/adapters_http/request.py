"""
A request, with the values that authentication and handlers add, and the parts that all requests
share.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from time import perf_counter
from typing import Any
from urllib.parse import urlsplit

from attrs import field, frozen
from starlette.types import Scope

from adapters_http.background import BackgroundTasks
from adapters_http.config import HttpConfig
from adapters_http.forms import read_query, without_nul
from adapters_http.metrics import Metrics
from adapters_http.responses import Pace, ResponseCache
from adapters_http.strangers_bodies import StrangersBodies
from adapters_http.tracing import RequestTrace
from wfcore.model.access import Caller, Guest, Principal
from wfcore.model.json import JsonObject
from wfcore.model.webhook import Webhook
from wfcore.rules.auth.rate_limit import Quota
from wfcore.usecases.audit.auditing import Origin
from wfcore.usecases.services import Services
from wfcore.usecases.webhooks.admitting import AdmittedDelivery


@frozen
class Context:
    """
    The parts that all requests share. `description` returns the text of the OpenAPI document for a
    base path; its second argument chooses `webhooks` or callbacks.
    """

    services: Services
    config: HttpConfig
    metrics: Metrics
    description: Callable[[str, bool], bytes]
    responses: ResponseCache = field(factory=ResponseCache)
    pace: Pace = field(factory=Pace)
    background: BackgroundTasks = field(factory=BackgroundTasks)
    strangers_bodies: StrangersBodies = field(factory=StrangersBodies)


READMIT_S = 2.0
"""A stream ends at most five seconds after its credential. SE-12."""


class Request:
    """
    One request. Authentication sets `who`, `raw`, `json`, `body` and `quota`, and for triggers
    `webhook` and `delivery`.

    A handler may add to `headers`; the response to a success has these headers.
    """

    who: Principal
    """The caller. Every route with authentication sets it before the handler runs."""
    is_visitor: bool = False
    """Whether the surrounding application vouched for `who`."""
    guest: Guest | None = None
    """The approver who came by a personal link; then there is no `who`."""
    readmit: Callable[[], Awaitable[None]] | None = None
    """Raises the error that admission would raise now. Set if a credential admitted the caller."""
    _readmitted: float = 0.0
    quota: Quota | None = None
    webhook: Webhook | None = None
    """The webhook of a trigger. A refusal of the request is noted in its deliveries."""
    delivery: AdmittedDelivery | None = None
    """The delivery to `webhook`, after every check."""
    raw: bytes = b""
    json: JsonObject
    body: Any = None
    waiting: int | None = None
    """The number of approvals that wait for `who`; the frame of each page shows this number."""
    owns: bool = True
    """Whether the frame of each page offers `who` the places of an owner."""
    trace: RequestTrace | None = None
    _fields: list[tuple[str, str]] | None = None

    def __init__(self, context: Context, scope: Scope, id: str) -> None:
        self.context = context
        self.services = context.services
        self.scope = scope
        self.request_id = id
        self.params: dict[str, str] = {}
        self.headers: list[tuple[bytes, bytes]] = []
        self.began = perf_counter()

    async def require_admitted(self) -> None:
        """
        Raises `Unauthenticated` or `AccountBlocked` if the credential of this request is no longer
        valid. Streams call this; the store is read at most once in `READMIT_S`. SE-12.
        """
        checked = max(self._readmitted, self.began)
        if self.readmit is not None and perf_counter() - checked >= READMIT_S:
            self._readmitted = perf_counter()
            await self.readmit()

    @property
    def method(self) -> str:
        """The HTTP method."""
        method: str = self.scope["method"]
        return method

    @property
    def caller(self) -> Caller:
        """The person on a page of an approval: the guest of a personal link, otherwise `who`."""
        return self.guest or self.who

    @property
    def origin(self) -> Origin:
        """
        The origin of this request for the audit log, without the query string and without the
        token of a link: both may hold credentials.
        """
        client = self.scope.get("client")
        path: str = self.scope["path"]
        if "token" in self.params:
            path = path.partition(f"/{self.params['token']}")[0]
        trace = self.trace.trace if self.trace else None
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
            self._fields = read_query(self.scope["query_string"])
        return [value for key, value in self._fields if key == name]

    @property
    def query_names(self) -> list[str]:
        """The names of all query parameters; a repeated name occurs several times."""
        self.query_values("")
        return [name for name, _ in self._fields or ()]

    def query(self, name: str) -> str | None:
        """The first value of one query parameter. Raises `InvalidInput` for a value with NUL."""
        values = self.query_values(name)
        return without_nul(name, values[0]) if values else None

    @property
    def base_path(self) -> str:
        """The path below which clients see this application; empty at the root."""
        if self.context.config.public_url is not None:
            return urlsplit(self.context.config.public_url).path.rstrip("/")
        root: str = self.scope.get("root_path", "")
        return root.rstrip("/")

    @property
    def base_url(self) -> str:
        """The URL by which clients reach this application, without a slash at the end."""
        if self.context.config.public_url is not None:
            return self.context.config.public_url.rstrip("/")
        scope = self.scope
        host = self.header(b"host")
        if host is None:
            server = scope.get("server") or ("127.0.0.1", 80)
            host = f"{server[0]}:{server[1]}"
        return f"{scope['scheme']}://{host}{self.base_path}"
