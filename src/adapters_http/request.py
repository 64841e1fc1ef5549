"""One request with what authentication and handlers add to it, and what all requests share."""

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
    responses: ResponseCache = field(factory=ResponseCache)
    pace: Pace = field(factory=Pace)
    background: BackgroundTasks = field(factory=BackgroundTasks)
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
            self._fields = read_query(self.scope["query_string"])
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
