"""The client that sends callbacks, and the answers to callbacks."""

from collections.abc import Mapping
from typing import Protocol

from attrs import frozen


@frozen
class CallbackAnswer:
    """
    The answer to a callback. `status`: the HTTP status; None if there was no answer, with the
    reason in `error`, which contains no secrets. `postponed`: the resource that this machine
    lacked; nothing was sent, and the attempt does not count. EX-27. `retry_after_s`: the wait that
    the receiver requests.
    """

    status: int | None = None
    error: str | None = None
    postponed: str | None = None
    retry_after_s: int | None = None


class CallbackClient(Protocol):
    """A sender of callbacks to addresses that callers chose."""

    async def post(self, url: str, headers: Mapping[str, str], body: bytes) -> CallbackAnswer:
        """
        Send *body* to *url* once. Any answer of the receiver is returned, never raised.

        The host name is resolved once, every resulting address is checked, and the connection goes
        to a checked address. Redirects are not followed; time and response size are limited.
        """
