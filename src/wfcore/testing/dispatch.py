"""A dispatch queue within one process: the smallest implementation, and a reference for others."""

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress

from attrs import define, field, frozen

from wfcore.ports.queue import DueExecution
from wfcore.time import DurationMs

KEEP_S = 5.0
_WAIT_S = 0.5


@define(eq=False)
class _Message:
    due: DueExecution
    at: float
    """
    The instant of the next delivery, by the event loop's clock. During a delivery: the instant at
    which the message is delivered again.
    """
    tries: int = 0


@define(eq=False)
class SharedQueue:
    """
    A queue that several `MemoryDispatch` of one event loop share. *keep_s*: as in `DispatchQueue`.
    """

    keep_s: float = KEEP_S
    messages: dict[str, _Message] = field(factory=dict)
    changed: asyncio.Condition = field(factory=asyncio.Condition)


@frozen
class _Delivered:
    """Implements `wfcore.ports.queue.DueDelivery`."""

    queue: SharedQueue
    message: _Message
    tries: int

    @property
    def execution_id(self) -> str:
        return self.message.due.execution_id

    async def keep(self) -> None:
        """Start the time of the delivery anew."""
        self.message.at = asyncio.get_running_loop().time() + 3 * self.queue.keep_s

    async def settle(self) -> None:
        """Remove the message from the queue."""
        self.queue.messages.pop(self.message.due.key, None)

    async def put_back(self, in_ms: DurationMs) -> None:
        """Deliver the message again after *in_ms*."""
        self.message.at = asyncio.get_running_loop().time() + in_ms / 1_000
        async with self.queue.changed:
            self.queue.changed.notify_all()


class MemoryDispatch:
    """
    Implements `wfcore.DispatchQueue` over a queue in memory. `connect(False)` simulates an absent
    server.
    """

    def __init__(self, queue: SharedQueue | None = None) -> None:
        self.queue = queue or SharedQueue()
        self.keep_s = self.queue.keep_s
        self.up = False
        self._changed: Callable[[], None] | None = None

    async def run(self, changed: Callable[[], None]) -> None:
        """Stay connected until cancelled. `connect` may change that."""
        self._changed = changed
        try:
            self.connect(True)
            await asyncio.Event().wait()
        finally:
            self._changed = None
            self.up = False

    def connect(self, up: bool) -> None:
        """Break the connection, or restore it."""
        self.up = up
        if self._changed is not None:
            self._changed()

    async def tell(self, due: Collection[DueExecution]) -> bool:
        """
        Keep each execution until its delivery is settled; return whether the queue is connected.
        """
        if not self.up:
            return False
        now = asyncio.get_running_loop().time()
        for one in due:
            self.queue.messages.setdefault(one.key, _Message(one, now + one.in_ms / 1_000))
        async with self.queue.changed:
            self.queue.changed.notify_all()
        return True

    async def take(self, limit: int, able: Collection[str] | None = None) -> Sequence[_Delivered]:
        """
        Return due deliveries, the earliest first, after waiting for the first one for a while.
        """
        loop = asyncio.get_running_loop()
        until = loop.time() + _WAIT_S
        while not (found := self._found(limit, able)) and limit and loop.time() < until:
            next_at = min((one.at for one in self.queue.messages.values()), default=until)
            left = max(min(next_at, until) - loop.time(), 0.001)
            with suppress(TimeoutError):
                async with asyncio.timeout(left), self.queue.changed:
                    await self.queue.changed.wait()
        return found

    def _found(self, limit: int, able: Collection[str] | None) -> Sequence[_Delivered]:
        now, found = asyncio.get_running_loop().time(), list[_Delivered]()
        waiting = [one for one in self.queue.messages.values() if one.at <= now]
        for one in sorted(waiting, key=lambda message: message.at) if self.up else ():
            if len(found) < limit and (able is None or {*one.due.needs} <= {*able}):
                one.tries += 1
                one.at = now + 3 * self.keep_s
                found.append(_Delivered(self.queue, one, one.tries))
        return found

    async def gauges(self) -> Mapping[str, float]:
        """The state of the connection, and the number of messages in the queue."""
        return {
            "wfcore_dispatch_up": float(self.up),
            'wfcore_dispatch_backlog{pool="any"}': float(len(self.queue.messages)),
        }
