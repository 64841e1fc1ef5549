"""The errors of calls."""

from typing import ClassVar


class ApiError(Exception):
    """
    The server refused a call. `error`: its message. `retry_after_s`: the seconds to wait, if the
    server named them. `request_id`: the id of the request in the server's log.
    """

    def __init__(
        self,
        status: int,
        error: str,
        retry_after_s: int | None = None,
        request_id: str | None = None,
    ) -> None:
        super().__init__(status, error)
        self.status = status
        self.error = error
        self.retry_after_s = retry_after_s
        self.request_id = request_id

    def __str__(self) -> str:
        return f"{self.status}: {self.error}"


class BadRequest(ApiError):
    """400, 413, 431: correct the request; the message names the field."""


class Unauthorized(ApiError):
    """401: the key is missing, wrong, revoked, expired or lacks the scope."""


class Forbidden(ApiError):
    """403: the account is disabled, or is not allowed to do this."""


class NotFound(ApiError):
    """404: the object does not exist, is not visible, or its state forbids this."""


class Conflict(ApiError):
    """409: the state of the object forbids this."""


class RateLimited(ApiError):
    """429: nothing was done; try again after `retry_after_s` seconds, not before."""


class ServerTrouble(ApiError):
    """5xx, or a response that is not the API's: try again later."""


class Unreachable(Exception):
    """
    There was no response, so the server may or may not have acted.

    Starting again with the same idempotency key is safe.
    """

    says: ClassVar[str] = "The server could not be reached"

    def __init__(self, detail: str) -> None:
        super().__init__(detail)
        self.detail = detail

    def __str__(self) -> str:
        return f"{self.says}: {self.detail}"


class Corrupted(Exception):
    """The downloaded content is not the one that the server stored; no file was written."""


_BY_STATUS: dict[int, type[ApiError]] = {
    400: BadRequest,
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    413: BadRequest,
    431: BadRequest,
    429: RateLimited,
}
_QUOTA_WAIT_S = 60
"""The wait after a 429 that names none."""


def error_of(
    status: int, error: str, retry_after: str | None = None, request_id: str | None = None
) -> ApiError:
    """The error for a response. *retry_after*: its header, in seconds."""
    known = retry_after is not None and retry_after.isascii() and retry_after.isdigit()
    wait = int(retry_after or 0) if known else _QUOTA_WAIT_S if status == 429 else None
    kind = _BY_STATUS.get(status, ServerTrouble if status >= 500 else ApiError)
    return kind(status, error, wait, request_id)
