"""The one table from errors to statuses, and how an error looks on the wire. ER-1, ER-2, ER-3."""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from attrs import define, frozen

from adapters_http.body import BodyTimeout, dump_json
from adapters_http.request import rate_headers
from adapters_http.transport.connections import Headers
from wfcore import errors
from wfcore.wire.common import ErrorView, RateLimitedView
from wfcore.wire.converter import plain


@define
class NoSuchPath(Exception):
    """No route has this path."""

    def __str__(self) -> str:
        return "Not found"


@define
class WrongMethod(Exception):
    """The path exists with other methods."""

    allowed: tuple[str, ...]

    def __str__(self) -> str:
        return f"Method not allowed; allowed: {', '.join(self.allowed)}"


# fmt: off
STATUS: Mapping[type[Exception], int] = {
    errors.InvalidInput:      400,
    errors.InvalidDefinition: 400,
    errors.Unauthenticated:   401,
    errors.AccountBlocked:    403,
    errors.Forbidden:         403,
    errors.Unvouched:         403,
    errors.NotFound:          404,
    NoSuchPath:               404,
    WrongMethod:              405,
    BodyTimeout:              408,
    errors.Conflict:          409,
    errors.LinkOver:          410,
    errors.PersonalLinkOver:  410,
    errors.TooLarge:          413,
    errors.RateLimited:       429,
    errors.TooManyAttempts:   429,
    errors.StoreUnavailable:  503,
    errors.NotReady:          503,
    errors.Unreadable:        500,
}
# fmt: on
"""An error that is not here (nor a class above it) is a defect: 500, and nothing said."""

_RETRY_S = 2


@frozen
class Refusal:
    """A status, a message, and the headers that go with it."""

    status: int
    says: str
    headers: Headers
    body: bytes


def refusal(error: Exception, also: Mapping[type[Exception], int]) -> Refusal | None:
    """
    What a caller is told about *error*; *also*: the route's own statuses. None for a defect.

    The body of a 401 is the same for every cause. AU-6.
    """
    status = _status(type(error), also) or _status(type(error), STATUS)
    if status is None:
        return None
    says = "The request body did not arrive in time" if status == 408 else str(error)
    return Refusal(status, says, _headers(error), _body(error, says))


def defect() -> Refusal:
    """What a caller is told about a defect: nothing."""
    says = "Internal error"
    return Refusal(500, says, [], dump_json(plain(ErrorView(says))))


def _status(kind: type[Exception], table: Mapping[type[Exception], int]) -> int | None:
    return next((table[one] for one in kind.__mro__ if one in table), None)


def _body(error: Exception, says: str) -> bytes:
    if isinstance(error, errors.RateLimited):
        view = RateLimitedView(says, error.window, error.limit, error.retry_after_s)
        return dump_json(plain(view))
    return dump_json(plain(ErrorView(says)))


def _headers(error: Exception) -> Headers:
    match error:
        case errors.Unauthenticated():
            return [(b"www-authenticate", b"Bearer")]
        case WrongMethod(allowed):
            return [(b"allow", ", ".join(allowed).encode())]
        case errors.RateLimited(window, limit, retry_after_s):
            return [
                (b"retry-after", b"%d" % retry_after_s),
                *rate_headers(limit, 0, window),
            ]
        case BodyTimeout():
            return [(b"connection", b"close")]
        case errors.TooManyAttempts(retry_after_s):
            return [(b"retry-after", b"%d" % retry_after_s)]
        case errors.StoreUnavailable() | errors.NotReady():
            return [(b"retry-after", b"%d" % _RETRY_S)]
        case _:
            return []


class _Error(NamedTuple):
    """A shared response: its name, when it is given, and its body."""

    name: str
    about: str
    example: dict[str, Any]


# fmt: off
ERRORS: Final[Mapping[int, _Error]] = {
    400: _Error("BadRequest", "A malformed body, field or parameter; the words name it",
                {"error": "size: must be a number from 1 to 200"}),
    401: _Error("Unauthorized", "No credential that opens this; the cause is never said",
                {"error": "Unauthorized"}),
    403: _Error("Forbidden", "The account is disabled or locked, or may not do this",
                {"error": "The account is disabled or locked"}),
    404: _Error("NotFound", "Missing, not visible to the caller, or over already",
                {"error": "Execution not found"}),
    408: _Error("RequestTimeout", "The body did not arrive in time",
                {"error": "The request body did not arrive in time"}),
    409: _Error("Conflict", "The state does not allow it",
                {"error": "The approval has already been decided"}),
    413: _Error("PayloadTooLarge", "The body is over its limit",
                {"error": "Request body is over its limit of 1048576 bytes"}),
    416: _Error("RangeNotSatisfiable", "The range is outside of the file",
                {"error": "The range is outside of the file"}),
    429: _Error("RateLimited", "The quota of the key is used up; wait for Retry-After",
                {"error": "Rate limit of 60 requests per minute reached; retry in 12 s",
                 "window": "minute", "limit": 60, "retryAfterSeconds": 12}),
    431: _Error("HeadersTooLarge", "The address and the headers together are too long",
                {"error": "Request header fields are too large"}),
    500: _Error("InternalError", "A defect, or a stored record that cannot be read",
                {"error": "Internal error"}),
    503: _Error("Unavailable", "The store is unavailable, or the server is stopping; "
                "nothing was done, try again after Retry-After",
                {"error": "The store is unavailable; retry later"}),
}
# fmt: on
"""What every error of a status says."""
