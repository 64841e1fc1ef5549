"""
The receiver: takes the deliveries of a dispatch, has the worker claim exactly those executions, and
settles each delivery once the worker has released the execution.

After a refused claim, the receiver reads the execution to decide when it is delivered again. Only
the store decides which worker may run an execution. Decision 222.
"""

import asyncio
from collections.abc import Sequence
from contextlib import suppress

from adapters_runtime.engine.loops import Loop
from adapters_runtime.engine.worker import Worker
from wfcore.errors import Unreadable
from wfcore.model.execution import Execution, ExecutionStatus
from wfcore.ports.queue import DispatchQueue, DueDelivery
from wfcore.ports.store import head_of
from wfcore.rules.backoff import Backoff
from wfcore.rules.execution.machine import EXECUTION
from wfcore.time import DurationMs
from wfcore.usecases.services import Services

DOWN_S = 1.0
"""The pause before the next check whether the dispatch is up."""
FULL_S = 1.0
"""The pause between two rounds that put deliveries back because no place is free."""
AGAIN = Backoff(first=0.1, longest=10.0)
"""The seconds before an execution that could not be claimed here is delivered again."""
MOST_TRIES = 12
"""
The number of deliveries, about a minute, after which a message is settled so that no message stays
for ever. Workers then find the execution by polling.
"""
CLOSING_S = 0.5


class Receiver:
    """Hands deliveries of *dispatch* to *worker*, in the same process."""

    def __init__(self, services: Services, worker: Worker, dispatch: DispatchQueue) -> None:
        self._services = services
        self._worker = worker
        self._dispatch = dispatch
        self._taken: dict[str, DueDelivery] = {}
        self._settling: set[asyncio.Task[None]] = set()
        self.again = 0
        """How many deliveries were not the first of their message."""
        due = asyncio.Event()
        self.loop = Loop("receiver", self._round, due)
        services.wakeup.listen(runner=due.set)
        worker.on_release = self._on_release

    async def run(self) -> None:
        """Receive until `stop` of `loop`; then wait until the last delivery is settled."""
        keeping = asyncio.create_task(self._keep())
        try:
            await self.loop.run()
        finally:
            keeping.cancel()
            if self._settling:
                await asyncio.wait(self._settling, timeout=CLOSING_S)

    async def _round(self) -> float:
        """Take as many deliveries as there are free places; returns how many seconds to sleep."""
        if not self._dispatch.up:
            return DOWN_S
        free = self._worker.free
        found = await self._dispatch.take(free, self._worker.able)
        if found:
            await self._receive(found)
        return 0.0 if free else FULL_S

    async def _receive(self, found: Sequence[DueDelivery]) -> None:
        named = {one.execution_id: one for one in found}
        for one in found:
            self.again += one.tries > 1
            if named[one.execution_id] is not one:
                await one.settle()  # two messages of one execution: one claim is enough
        claimed = set(await self._worker.take_named(named)) if self._worker.free else set()
        for id, one in named.items():
            if id in claimed:
                self._taken[id] = one
            else:
                await self._refused(one)

    async def _refused(self, one: DueDelivery) -> None:
        """
        Settle or put back *one*, whose execution could not be claimed: it has ended, another worker
        holds it, or it is not due yet.
        """
        run = await self._stored(one.execution_id)
        if run is None:
            await one.settle()
        elif run.worker is not None:
            await self._held_elsewhere(one)
        elif (left := self._left_ms(run)) is None:
            await one.settle()
        elif left > 0:
            await one.put_back(DurationMs(left))
        elif not (self._worker.free and self._can(run)) and one.tries < MOST_TRIES:
            await one.put_back(_again_ms(one))
        else:  # no place for its account, or in its group: the store decides which is next
            await one.settle()
            self._worker.loop.due.set()

    async def _stored(self, execution_id: str) -> Execution | None:
        """The execution; None if it does not exist, or if its record cannot be read."""
        with suppress(Unreadable):
            async with self._services.store.view() as view:
                return await head_of(view, execution_id)
        return None

    def _left_ms(self, run: Execution) -> int | None:
        """The time until *run* may be claimed, or None if *run* must change first."""
        if run.status in EXECUTION.final or run.status is ExecutionStatus.INTERRUPTED:
            return None
        return None if run.due_at is None else run.due_at - self._services.store.now()

    def _can(self, run: Execution) -> bool:
        able = self._worker.able
        return able is None or {*run.capabilities} <= {*able}

    async def _held_elsewhere(self, one: DueDelivery) -> None:
        """
        Put *one* back, whose execution another worker holds.

        That worker may be gone, which the sweep finds out before any poll does. So the message is
        delivered again for as long as that may take.
        """
        if one.tries >= MOST_TRIES:
            await one.settle()
            return
        if one.tries > 1:
            self._services.wakeup.timer()
        await one.put_back(_again_ms(one))

    def _on_release(self, execution_id: str) -> None:
        """Settle the delivery of an execution whose next state is committed and published."""
        if (one := self._taken.pop(execution_id, None)) is not None:
            task = asyncio.create_task(one.settle())
            self._settling.add(task)
            task.add_done_callback(self._settling.discard)
        self.loop.due.set()

    async def _keep(self) -> None:
        while True:
            await asyncio.sleep(self._dispatch.keep_s)
            for one in tuple(self._taken.values()):
                await one.keep()


def _again_ms(one: DueDelivery) -> DurationMs:
    return DurationMs(round(AGAIN.wait(one.tries) * 1_000))
