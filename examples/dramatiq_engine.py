"""
A dispatch over Dramatiq and Redis: each message is one id, and its actor ends once that is settled.

Dramatiq's threads do not run steps. Each holds one message while the engine works on an execution,
so that the broker sees an unacknowledged message until the engine has let go of it, and gives it to
another process if this one dies. The rows decide what really happens; see `wfcore.DispatchQueue`.

    pip install 'dramatiq[redis]'
"""

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from typing import Any

from attrs import define, field, frozen
from dramatiq import Message, Worker, actor
from dramatiq.brokers.redis import RedisBroker
from redis.exceptions import RedisError

from wfcore.ports import DueExecution

ANY = "wfcore"
LABEL = "label:"
LOOK_S = 1.0
WAIT_S = 0.5


@frozen
class Held:
    """Satisfies `wfcore.DueDelivery`: its actor waits in a thread until `over` is done."""

    dispatch: "DramatiqDispatch"
    execution_id: str
    tries: int
    queue: str
    over: "Future[None]"

    async def keep(self) -> None:
        """Nothing to say: Dramatiq tells Redis that this process is alive."""

    async def settle(self) -> None:
        """The actor ends, and with it the message."""
        if not self.over.done():
            self.over.set_result(None)

    async def put_back(self, in_ms: int) -> None:
        """Another message takes the place of this one, which is settled."""
        if not self.over.done():
            with suppress(RedisError):
                again = self.dispatch.message(self.queue, self.execution_id, self.tries + 1)
                await asyncio.to_thread(self.dispatch.broker.enqueue, again, delay=in_ms)
                await self.settle()


@define(eq=False)
class DramatiqDispatch:
    """
    A `wfcore.DispatchQueue`. *threads*: how many messages this process holds at most; give it
    as many as the engine has places.
    """

    url: str
    keep_s: float = 5.0
    threads: int = 8
    up: bool = False
    broker: RedisBroker = field(init=False)
    _worker: Worker | None = None
    _loop: asyncio.AbstractEventLoop | None = None
    _come: "asyncio.Queue[Held]" = field(factory=asyncio.Queue)
    _held: set[Held] = field(factory=set)

    def __attrs_post_init__(self) -> None:
        dead_ms = int(3_000 * self.keep_s)
        new: Any = RedisBroker  # it has no types
        self.broker = new(url=self.url, middleware=[], heartbeat_timeout=dead_ms)
        actor(actor_name="due", queue_name=ANY, broker=self.broker)(self._hold)

    async def run(self, changed: Callable[[], None]) -> None:
        """Ask Redis each second whether it is there."""
        self._loop = asyncio.get_running_loop()
        try:
            while True:
                up = await asyncio.to_thread(self._answers)
                if up != self.up:
                    self.up = up
                    changed()
                await asyncio.sleep(LOOK_S)
        finally:
            self.up = False
            await self._close()

    def _answers(self) -> bool:
        try:
            return bool(self.broker.client.ping())
        except RedisError:
            return False

    async def tell(self, due: Collection[DueExecution]) -> bool:
        """One message for each; what is due later waits in Dramatiq's queue for delays."""
        if not self.up:
            return False
        try:
            await asyncio.to_thread(self._enqueue, list(due))
        except RedisError:
            return False
        return True

    def _enqueue(self, due: Sequence[DueExecution]) -> None:
        for one in due:
            queue = queue_of(one.needs)
            self.broker.declare_queue(queue)
            message = self.message(queue, one.execution_id, 1)
            self.broker.enqueue(message, delay=one.in_ms or None)

    def message(self, queue: str, execution_id: str, tries: int) -> "Message[None]":
        """What is enqueued: an id, and how often it was tried."""
        return Message(queue, "due", (queue, execution_id, tries), {}, {})

    async def take(self, limit: int, able: Collection[str] | None = None) -> Sequence[Held]:
        """What the actors hold that nobody has taken yet."""
        if limit and self._worker is None and self.up:
            self._worker = await asyncio.to_thread(self._work, queues_of(able))
        found: list[Held] = []
        with suppress(TimeoutError):
            async with asyncio.timeout(WAIT_S if limit else 0):
                found.append(await self._come.get())
        while not self._come.empty():
            found.append(self._come.get_nowait())
        return found

    def _work(self, queues: Collection[str]) -> Worker:
        for queue in queues:
            self.broker.declare_queue(queue)
        worker = Worker(
            self.broker,
            queues={*queues, *(f"{queue}.DQ" for queue in queues)},
            worker_threads=self.threads,
            worker_timeout=100,
        )
        worker.start()
        return worker

    def _hold(self, queue: str, execution_id: str, tries: int) -> None:
        """The actor, in a thread of Dramatiq: hand it to the event loop, and wait for the end."""
        one = Held(self, execution_id, tries, queue, Future())
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._arrived, one)
            one.over.result()

    def _arrived(self, one: Held) -> None:
        self._held.add(one)
        one.over.add_done_callback(lambda _: self._held.discard(one))
        self._come.put_nowait(one)

    async def _close(self) -> None:
        """What is still held goes to others at once."""
        worker, self._worker = self._worker, None
        if worker is not None:
            stopping = asyncio.create_task(asyncio.to_thread(worker.stop))
            while not stopping.done():
                for one in tuple(self._held):
                    await one.put_back(1)
                await asyncio.wait((stopping,), timeout=0.01)
        await asyncio.to_thread(self.broker.close)

    async def gauges(self) -> Mapping[str, float]:
        """Whether it is up; the backlog is Dramatiq's to show."""
        return {"wfcore_dispatch_up": float(self.up)}


def queue_of(needs: Collection[str]) -> str:
    """Where an execution with these needs waits: by its first label."""
    labels = sorted(one for one in needs if one.startswith(LABEL))
    return f"{ANY}-{labels[0].removeprefix(LABEL)}" if labels else ANY


def queues_of(able: Collection[str] | None) -> Collection[str]:
    """The queues of a worker: the common one, and one for each of its labels."""
    return {ANY, *(queue_of((one,)) for one in able or ())}


def open_dispatch(url: str, keep_s: float) -> DramatiqDispatch:
    """The entry point of the group `wfcore.engines`, for `WFCORE_ENGINE=redis://…`."""
    return DramatiqDispatch(url, keep_s)
