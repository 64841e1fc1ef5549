"""Query parameters, and our own headers: read and checked."""

from enum import StrEnum
from typing import TypeVar

from adapters_http.request import Request
from wfcore.errors import InvalidInput
from wfcore.model.page import PageRequest
from wfcore.rules.paging import page_request
from wfcore.time import EpochMs
from wfcore.usecases.executions.idempotency import Idempotency, idempotency_in

E = TypeVar("E", bound=StrEnum)
_INSTANT_DIGITS = 15
LONGEST_WAIT_S = 60


def page(request: Request, sizes: tuple[int, int], list: str = "") -> PageRequest:
    """`page` and `size`, or `after` with a cursor of that *list*. Raises `InvalidInput`."""
    return page_request(
        request.query("page"), request.query("size"), sizes, request.query("after"), list
    )


def enum_values(request: Request, name: str, kind: type[E]) -> tuple[E, ...]:
    """The values of an enum in a filter; empty values are left out. Raises `InvalidInput`. PG-4."""
    try:
        return tuple(dict.fromkeys(kind(text) for text in request.query_values(name) if text))
    except ValueError:
        several = "; for several repeat it" if "," in "".join(request.query_values(name)) else ""
        raise InvalidInput(name, f"must be one of {', '.join(kind)}{several}") from None


def span(request: Request) -> tuple[EpochMs | None, EpochMs | None]:
    """The instants `from` and `to`; `to` is exclusive. Raises `InvalidInput`."""
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
    """
    Whether `sort` is *field*; otherwise `sort` is `-field`, the default. Raises `InvalidInput`.
    """
    text = request.query("sort")
    if text and text not in (field, f"-{field}"):
        raise InvalidInput("sort", f"must be {field} (oldest first) or -{field} (newest first)")
    return text == field


def flag(request: Request, name: str) -> bool:
    """A parameter that is `true` or `false`; absent or empty: False. Raises `InvalidInput`."""
    text = request.query(name)
    if text and text not in ("true", "false"):
        raise InvalidInput(name, "must be true or false")
    return text == "true"


def wait_ms(request: Request) -> int | None:
    """`wait`, 1 to 60 seconds, in milliseconds; None if absent. Raises `InvalidInput`."""
    text = request.query("wait")
    if text is None:
        return None
    seconds = int(text) if text.isascii() and text.isdigit() and len(text) <= 9 else 0
    if not 1 <= seconds <= LONGEST_WAIT_S:
        raise InvalidInput("wait", f"must be a number of seconds from 1 to {LONGEST_WAIT_S}")
    return seconds * 1_000


def with_outputs(request: Request) -> bool:
    """Whether to show outputs of steps: False with `outputs=none`. Raises `InvalidInput`."""
    text = request.query("outputs")
    if text not in (None, "none"):
        raise InvalidInput("outputs", "must be none, or left out")
    return text is None


def idempotency(request: Request) -> Idempotency | None:
    """The `Idempotency-Key` with a fingerprint of the body. Raises `InvalidInput`. IK-1."""
    return idempotency_in(request.all_headers, request.raw)


def last_event_id(request: Request) -> int:
    """The number in `Last-Event-ID`. Raises `InvalidInput`."""
    return event_number("Last-Event-ID", request.header(b"last-event-id"))


def event_number(field: str, text: str | None) -> int:
    """
    The number of an event; 0, before the first event, if there is no text. Raises `InvalidInput`.
    """
    if not text:
        return 0
    if not (text.isascii() and text.isdigit() and len(text) <= 18):
        raise InvalidInput(field, "must be the number of an event")
    return int(text)
