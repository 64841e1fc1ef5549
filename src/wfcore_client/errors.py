"""What a call can be answered with instead of what was asked for."""

from typing import ClassVar

from attrs import define


@define
class ApiError(Exception):
    """The server said no; `error` are its words."""

    status: int
    error: str

    def __str__(self) -> str:
        return f"{self.status}: {self.error}"


class BadRequest(ApiError):
    """400, 413: mend the request; the words name the field."""


class Unauthorized(ApiError):
    """401: the key is missing, wrong, revoked, expired or lacks the scope."""


class Forbidden(ApiError):
    """403: the account is disabled, or is not permitted to do this."""


class NotFound(ApiError):
    """404: not there, not visible, or no longer in a state that allows this."""


class Conflict(ApiError):
    """409: not in this state."""


@define
class RateLimited(ApiError):
    """429: try again after `retry_after_s` seconds, not before."""

    retry_after_s: int = 60


class ServerTrouble(ApiError):
    """5xx, or an answer that is none of ours: repeat later."""


@define
class Unreachable(Exception):
    """
    There was no answer, so whether the server acted is not known.

    Starting with the same idempotency key again is safe.
    """

    detail: str
    says: ClassVar[str] = "The server could not be reached"

    def __str__(self) -> str:
        return f"{self.says}: {self.detail}"


_BY_STATUS: dict[int, type[ApiError]] = {
    400: BadRequest,
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    413: BadRequest,
}


def error_of(status: int, error: str, retry_after: str | None) -> ApiError:
    """The error that an answer stands for."""
    if status == 429:
        known = retry_after is not None and retry_after.isdigit()
        return RateLimited(status, error, int(retry_after or 0) if known else 60)
    return _BY_STATUS.get(status, ServerTrouble if status >= 500 else ApiError)(status, error)
