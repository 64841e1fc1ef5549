"""Sending callbacks: what a client is given and what it answers. Contract §9."""

from collections.abc import Mapping
from typing import Protocol

from attrs import frozen


@frozen
class CallbackAnswer:
    """
    The answer's status, or (None) why there was none, in words without secrets. `postponed`:
    nothing was sent, since this machine lacked this; it is no attempt. EX-27.
    """

    status: int | None = None
    error: str | None = None
    postponed: str | None = None


class CallbackClient(Protocol):
    async def post(self, url: str, headers: Mapping[str, str], body: bytes) -> CallbackAnswer:
        """
        Send *body* to *url* once. Never raises for what the other side did.

        The name is resolved once, every address checked and the checked one connected to;
        no redirect is followed; time and the size of the answer are bounded.
        """
