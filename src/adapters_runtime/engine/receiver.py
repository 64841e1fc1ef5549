"""
The receiver: takes what a dispatch delivers, has the worker claim exactly that, and settles each
delivery once the worker has let go of the execution.

A claim that is refused is looked into. Whatever is found out is only a matter of when somebody
looks again; who may run what is decided by the store. Decision 222.
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
"""How long to wait before it is asked again whether the dispatch is up."""
FULL_S = 1.0
"""How often, without a free place, what still comes is put back."""
AGAIN = Backoff(first=0.1, longest=10.0)
"""In seconds, before somebody else is to have what could not be claimed here."""
MOST_TRIES = 12
"""Afterwards it is left to those who look: about a minute, so that no message stays for ever."""
CLOSING_S = 0.5


class Receiver:
    """Hands what *dispatch* delivers to *worker*, of the same process."""

    def __init__(self, services: Services, worker: Worker, dispatch: DispatchQueue) -> None:
        self._services = services
        self._worker = worker
        self._dispatch = dispatch
        self._taken: dict[str, DueDelivery] = {}
        self._settling: set[asyncio.Task[None]] = set()
        self.again = 0
        """How many deliveries were not the first of their message."""
        room = asyncio.Event()
        self.loop = Loop("receiver", self._round, room)
        services.wakeup.listen(runner=room.set)
        worker.let_go = self._let_go

    async def run(self) -> None:
        """Receive until `stop` of its loop; then wait until the last delivery is settled."""
        keeping = asyncio.create_task(self._keep())
        try:
            await self.loop.run()
        finally:
            keeping.cancel()
            if self._settling:
                await asyncio.wait(self._settling, timeout=CLOSING_S)

    async def _round(self) -> float:
        """Take as many as there are places for; how long to sleep afterwards, in seconds."""
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
        """It could not be claimed: it is over, or somebody has it, or its time is not come."""
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
        else:  # no place for its account, or in its group: whose turn it is, the store knows
            await one.settle()
            self._worker.loop.due.set()

    async def _stored(self, execution_id: str) -> Execution | None:
        """None also for one that cannot be read: its claim has put it aside."""
        with suppress(Unreadable):
            async with self._services.store.view() as view:
                return await head_of(view, execution_id)
        return None

    def _left_ms(self, run: Execution) -> int | None:
        """Until it may be claimed; None: never, as it stands."""
        if run.status in EXECUTION.final or run.status is ExecutionStatus.INTERRUPTED:
            return None
        return None if run.due_at is None else run.due_at - self._services.store.now()

    def _can(self, run: Execution) -> bool:
        able = self._worker.able
        return able is None or {*run.capabilities} <= {*able}

    async def _held_elsewhere(self, one: DueDelivery) -> None:
        """
        A message of what somebody holds may be one that nobody kept: its worker is gone. If it is,
        the sweep finds out, before any look does. It comes again for as long as that may take.
        """
        if one.tries >= MOST_TRIES:
            await one.settle()
            return
        if one.tries > 1:
            self._services.wakeup.timer()
        await one.put_back(_again_ms(one))

    def _let_go(self, execution_id: str) -> None:
        """What the execution needs next is committed, and told."""
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
