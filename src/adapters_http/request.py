"""One request as doors and handlers see it: what was asked, by whom, and what came of it."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from attrs import field, frozen
from starlette.types import Scope

from adapters_http.answer_cache import Answers, Pace
from adapters_http.config import HttpConfig
from adapters_http.metrics import Metrics
from wfcore.errors import InvalidInput
from wfcore.model.access import Principal
from wfcore.model.json import JsonObject
from wfcore.model.webhook import Webhook
from wfcore.rules.auth.rate_limit import Quota
from wfcore.usecases.audit.auditing import Origin
from wfcore.usecases.services import Services

_MOST_FIELDS = 100


@frozen
class Context:
    """
    What all requests share. `description` gives the text of the OpenAPI document, for the
    address in front of all paths.
    """

    services: Services
    config: HttpConfig
    metrics: Metrics
    description: Callable[[str], bytes]
    answers: Answers = field(factory=Answers)
    pace: Pace = field(factory=Pace)


class Request:
    """
    `who`, `raw`, `json`, `body`, `quota` and `webhook` are filled in by the door on the way.

    A handler may add to `headers`, which go out with a success.
    """

    who: Principal
    """Set before the handler runs, on every route that asks for somebody."""
    quota: Quota | None = None
    webhook: Webhook | None = None
    authenticated: bool = False
    """Whether the credentials of a trigger were good, whatever came of it."""
    raw: bytes = b""
    json: JsonObject
    body: Any = None
    _fields: list[tuple[str, str]] | None = None

    def __init__(self, context: Context, scope: Scope, id: str) -> None:
        self.context = context
        self.services = context.services
        self.scope = scope
        self.request_id = id
        self.params: dict[str, str] = {}
        self.headers: list[tuple[bytes, bytes]] = []

    @property
    def method(self) -> str:
        """The HTTP method."""
        method: str = self.scope["method"]
        return method

    @property
    def origin(self) -> Origin:
        """Where it came from, for the audit log. Never the query string."""
        client = self.scope.get("client")
        return Origin(self.scope["path"], client[0] if client else None, self.request_id)

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
        """Every value of one query parameter. Raises `InvalidInput` for too many of them."""
        if not self.scope["query_string"]:
            return []
        if self._fields is None:
            self._fields = _parsed(self.scope["query_string"])
        return [value for key, value in self._fields if key == name]

    @property
    def query_names(self) -> list[str]:
        """The name of every query parameter, repeated ones as often as they stand there."""
        self.query_values("")
        return [name for name, _ in self._fields or ()]

    def query(self, name: str) -> str | None:
        """The first value of one query parameter."""
        values = self.query_values(name)
        return values[0] if values else None

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


def _parsed(query: bytes) -> list[tuple[str, str]]:
    try:
        return parse_qsl(query.decode("latin-1"), True, max_num_fields=_MOST_FIELDS)
    except ValueError:
        raise InvalidInput("query", f"at most {_MOST_FIELDS} parameters") from None
