"""Sending callbacks: the client that posts them, and its answers."""

from collections.abc import Mapping
from typing import Protocol

from attrs import frozen


@frozen
class CallbackAnswer:
    """
    The HTTP status of the answer, or None with the reason in `error`, which contains no secrets.
    `postponed`: the resource that this machine lacked, so that nothing was sent and the attempt
    does not count. EX-27. `retry_after_s`: the wait that the other side requests.
    """

    status: int | None = None
    error: str | None = None
    postponed: str | None = None
    retry_after_s: int | None = None


class CallbackClient(Protocol):
    async def post(self, url: str, headers: Mapping[str, str], body: bytes) -> CallbackAnswer:
        """
        Send *body* to *url* once. Raises nothing for an answer of the receiver.

        The host name is resolved once, every resulting address is checked, and the connection goes
        to a checked address. Redirects are not followed; time and response size are limited.
        """
