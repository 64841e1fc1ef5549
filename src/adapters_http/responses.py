"""
The memory that responses take up: small responses are cached for polls, large responses are encoded
one at a time.
"""

import asyncio
from collections import deque
from collections.abc import Hashable

MOST_KEPT = 1_024
LARGEST_KEPT = 16_384


class ResponseCache:
    """
    Encoded responses by record and state, at most 16 MB, because polls request the same record
    again and again.
    """

    def __init__(self) -> None:
        self._known: dict[str, tuple[Hashable, bytes]] = {}

    def known(self, id: str, state: Hashable) -> bytes | None:
        """The response that is stored for *state*, or None."""
        known = self._known.get(id)
        return known[1] if known is not None and known[0] == state else None

    def keep(self, id: str, state: Hashable, body: bytes) -> bytes:
        """
        Store *body* and return it. *body* depends only on *state* (the version of the record and
        all other facts that may change) and on constants, such as emails and names of keys.
        """
        if len(body) <= LARGEST_KEPT:
            self._known.pop(id, None)
            self._known[id] = (state, body)
            if len(self._known) > MOST_KEPT:
                del self._known[next(iter(self._known))]
        return body

    def clear(self) -> None:
        """Drop all responses."""
        self._known.clear()


LARGE_RESPONSE = 65_536


class Pace:
    """
    Lets at most one large response be encoded per turn of the event loop. The memory of dropped
    slow clients is freed only between turns: without this limit, the responses to a crowd of
    requests would all be in memory at once. Decision 71.
    """

    def __init__(self) -> None:
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._busy = False

    async def turn(self) -> None:
        """
        Wait until a response may be encoded; there is no wait unless a large response was just
        encoded.
        """
        if self._busy:
            mine = asyncio.get_running_loop().create_future()
            self._waiting.append(mine)
            await mine

    def made(self, size: int) -> None:
        """Note that a response of *size* bytes was encoded."""
        if size > LARGE_RESPONSE and not self._busy:
            self._busy = True
            asyncio.get_running_loop().call_soon(self._next)

    def _next(self) -> None:
        while self._waiting and self._waiting[0].done():  # its client is gone
            self._waiting.popleft()
        self._busy = bool(self._waiting)
        if self._busy:
            self._waiting.popleft().set_result(None)
            asyncio.get_running_loop().call_soon(self._next)
