"""Sending callbacks: what a client is given and what it answers."""

from collections.abc import Mapping
from typing import Protocol

from attrs import frozen


@frozen
class CallbackAnswer:
    """
    The HTTP status of the answer, or None with the reason in `error`, which contains no secrets.
    `postponed`: the request was not sent because this machine lacked a resource, which is named; it
    does not count as an attempt. EX-27. `retry_after_s`: how long the
    other side asked to wait.
    """

    status: int | None = None
    error: str | None = None
    postponed: str | None = None
    retry_after_s: int | None = None


class CallbackClient(Protocol):
    async def post(self, url: str, headers: Mapping[str, str], body: bytes) -> CallbackAnswer:
        """
        Send *body* to *url* once. Never raises for what the receiver did.

        The host name is resolved once, every resulting address is checked, and the connection goes
        to a checked address. Redirects are not followed; time and response size are limited.
        """
