"""The table from errors to statuses, and the form of an error on the wire. ER-1, ER-2, ER-3."""

from collections.abc import Mapping

from attrs import define, frozen

from adapters_http.body import BodyTimeout
from adapters_http.json_text import dump_json
from adapters_http.transport.connections import Headers
from wfcore import errors
from wfcore.wire.common import ErrorView, MistakeView, RateLimitedView
from wfcore.wire.converter import plain


@define
class NoSuchPath(Exception):
    """Raised if no route has the path."""

    def __str__(self) -> str:
        return "Not found"


@define
class WrongMethod(Exception):
    """Raised if the path has routes, but only for other methods."""

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
    errors.PasskeyAwaited:    403,
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
"""
The statuses of errors. An error without an entry for its class or a base class is a defect: 500
without details.
"""

_RETRY_S = 2


@frozen
class ErrorResponse:
    """An error on the wire: status, message, headers, body."""

    status: int
    message: str
    headers: Headers
    body: bytes


def response_to(error: Exception, also: Mapping[type[Exception], int]) -> ErrorResponse | None:
    """
    The response for *error*, or None for a defect. *also*: the statuses of the route, which take
    precedence.

    The body of a 401 is the same for every cause. AU-6.
    """
    status = _status(type(error), also) or _status(type(error), STATUS)
    if status is None:
        return None
    message = "The request body did not arrive in time" if status == 408 else str(error)
    return ErrorResponse(status, message, _headers(error), _body(error, message))


def defect() -> ErrorResponse:
    """The response for a defect, without details."""
    message = "Internal error"
    return ErrorResponse(500, message, [], dump_json(plain(ErrorView(message))))


def _status(kind: type[Exception], table: Mapping[type[Exception], int]) -> int | None:
    return next((table[one] for one in kind.__mro__ if one in table), None)


def _body(error: Exception, message: str) -> bytes:
    if isinstance(error, errors.RateLimited):
        view = RateLimitedView(message, error.window, error.limit, error.retry_after_s)
        return dump_json(plain(view))
    if isinstance(error, errors.InvalidDefinition):
        mistakes = [MistakeView(one.line, one.path, one.message) for one in error.problems]
        return dump_json(plain(ErrorView(message, mistakes)))
    return dump_json(plain(ErrorView(message)))


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


def rate_headers(limit: int, remaining: int, window: str) -> Headers:
    """The headers about the tighter window of a quota. RL-6."""
    return [
        (b"x-ratelimit-limit", b"%d" % limit),
        (b"x-ratelimit-remaining", b"%d" % remaining),
        (b"x-ratelimit-window", window.encode()),
    ]
