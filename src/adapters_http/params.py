"""Reading what a request asks for in its query and headers, checked. Contract §6, §9."""

from enum import StrEnum
from hashlib import sha256
from typing import TypeVar

from adapters_http.config import Stage
from adapters_http.proxies import host_name
from adapters_http.request import Request
from adapters_http.route import Auth, Route
from wfcore.errors import InvalidInput, NotReady
from wfcore.model.execution import Execution
from wfcore.model.page import PageRequest
from wfcore.rules.definition.values import known_or
from wfcore.rules.paging import page_request
from wfcore.time import EpochMs
from wfcore.usecases.executions.executions import wait_for_rest
from wfcore.usecases.executions.starting import Idempotency

E = TypeVar("E", bound=StrEnum)
KEY = "api_key"
_NAME_SHOWN = 80
_INSTANT_DIGITS = 15
LONGEST_WAIT_S = 60
LONGEST_IDEMPOTENCY_KEY = 255


def require_known_query(request: Request, route: Route) -> None:
    """
    Raises `InvalidInput` for a query parameter that the row does not declare, unless the row is
    tolerant, and for a declared one that stands twice: which of the two was meant? PG-3.
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
        elif not route.tolerant and not (name == KEY and route.auth is Auth.KEY):
            fix = f"unknown query parameter; {known_or(name, known)}" if known else _NONE_KNOWN
            raise InvalidInput(name[:_NAME_SHOWN], fix)


_NONE_KNOWN = "unknown query parameter; there are none here"


def require_known_host(request: Request, route: Route) -> None:
    """
    Raises `InvalidInput` where *ask* is for a host that this application is not. Probes and
    collectors of metrics come by address: they are answered under any name.
    """
    allowed = request.context.config.allowed_hosts
    if allowed is None or route.path in _FOR_PROBES:
        return
    if [host_name(host) in allowed for host in request.header_values(b"host")] != [True]:
        raise InvalidInput("Host", "not a name of this server; WFCORE_ALLOWED_HOSTS has the others")


_FOR_PROBES = ("/healthz", "/readyz", "/metrics")


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
    """`from` and `to`, the latter outside. Raises `InvalidInput`."""
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
    """`sort`: by *field*, or by `-field`, which is how lists are. Raises `InvalidInput`."""
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
    """`wait`, in seconds from 1 to 60; None: not asked for. Raises `InvalidInput`."""
    text = request.query("wait")
    if text is None:
        return None
    if not (text.isascii() and text.isdigit() and 1 <= int(text[:9]) <= LONGEST_WAIT_S):
        raise InvalidInput("wait", f"must be a number of seconds from 1 to {LONGEST_WAIT_S}")
    return int(text) * 1_000


def with_outputs(request: Request) -> bool:
    """Whether outputs of steps are wanted: not with `outputs=none`. Raises `InvalidInput`."""
    text = request.query("outputs")
    if text not in (None, "none"):
        raise InvalidInput("outputs", "must be none, or left out")
    return text is None


async def rested(request: Request, execution_id: str, wait: int) -> Execution:
    """
    The execution as soon as it rests, after *wait* milliseconds, or when this server ends.

    Raises `NotFound`.
    """
    config = request.context.config
    return await wait_for_rest(
        request.services, request.who, execution_id, wait, leaving=lambda: config.ending
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
    key = found[0]
    printable = key.isascii() and key.isprintable()
    if len(found) > 1 or not printable or not 1 <= len(key) <= LONGEST_IDEMPOTENCY_KEY:
        raise InvalidInput(
            "Idempotency-Key", f"must be 1 to {LONGEST_IDEMPOTENCY_KEY} printable ASCII characters"
        )
    return Idempotency(key, sha256(request.raw).hexdigest())


def last_event_id(request: Request) -> int:
    """The number of the last event that a stream's reader saw. Raises `InvalidInput`."""
    return event_number("Last-Event-ID", request.header(b"last-event-id"))


def event_number(field: str, text: str | None) -> int:
    """The number of an event; 0: before the first. Raises `InvalidInput`."""
    if not text:
        return 0
    if not (text.isascii() and text.isdigit() and len(text) <= 18):
        raise InvalidInput(field, "must be the number of an event")
    return int(text)
