"""Encoded answers of records that did not change: polls ask for the same one again and again."""

import asyncio
from collections import deque
from collections.abc import Hashable

from adapters_http.json import dump_json
from wfcore.wire.converter import plain

MOST = 1_024
LARGEST = 16_384


class Answers:
    """The latest answers by record and its state; at most 16 MB of them."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[Hashable, bytes]] = {}

    def known(self, id: str, state: Hashable) -> bytes | None:
        """What was kept of that state; None: nothing."""
        known = self._known.get(id)
        return known[1] if known is not None and known[0] == state else None

    def keep(self, id: str, state: Hashable, view: object) -> bytes:
        """
        The JSON of *view*, which depends on *state* (the record's version, and what else may
        change) and on what never changes: emails, names of keys.
        """
        body = dump_json(plain(view))
        if len(body) <= LARGEST:
            self._known.pop(id, None)
            self._known[id] = (state, body)
            if len(self._known) > MOST:
                del self._known[next(iter(self._known))]
        return body


LARGE = 65_536


class Pace:
    """
    Large answers are made one in a turn of the loop: what is given up for others is freed between
    two turns only, and of a crowd that asks at once all answers would be in memory. Decision 71.
    """

    def __init__(self) -> None:
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._busy = False

    async def turn(self) -> None:
        """Wait until an answer may be made: at once, unless a large one was just made."""
        if self._busy:
            mine = asyncio.get_running_loop().create_future()
            self._waiting.append(mine)
            await mine

    def made(self, size: int) -> None:
        """An answer of *size* bytes was made."""
        if size > LARGE and not self._busy:
            self._busy = True
            asyncio.get_running_loop().call_soon(self._next)

    def _next(self) -> None:
        while self._waiting and self._waiting[0].done():  # its client is gone
            self._waiting.popleft()
        self._busy = bool(self._waiting)
        if self._busy:
            self._waiting.popleft().set_result(None)
            asyncio.get_running_loop().call_soon(self._next)
