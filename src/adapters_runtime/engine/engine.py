"""
The engine: the loops of a process that runs executions (worker, scheduler, outboxes, retention).

    async with Engine(services, runner):
        ...

A process without an engine still accepts, decides and reads, and takes the first turn of executions
that start nothing (EX-34). All other executions that it accepted wait in the store for an engine.
"""

import asyncio
import logging
import os
import socket
from collections.abc import Collection, Mapping
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING, Protocol, Self

from wfcore import __version__
from wfcore.errors import NotReady, StoreUnavailable
from wfcore.model.node import Node
from wfcore.ports.callbacks import CallbackClient
from wfcore.ports.notices import Notifier
from wfcore.ports.queue import DispatchQueue
from wfcore.ports.runtime import JobRunner
from wfcore.time import MINUTE, SECOND
from wfcore.usecases.services import Services

if TYPE_CHECKING:
    from adapters_runtime.engine.loops import Loop

log = logging.getLogger("wfcore.engine")

_ENDING_S = 2.0
"""How long steps may take to end after the drain, and loops after `stop`."""


class _Duty(Protocol):
    loop: "Loop"

    async def run(self) -> None: ...


def new_node(
    services: Services,
    id: str,
    places: int,
    *,
    able: Collection[str] | None = None,
    present: Collection[str] | None = None,
    address: str = "",
) -> Node:
    """A node for this process, which begins now. For the arguments see `Node`."""
    return Node(
        id,
        socket.gethostname(),
        places,
        services.store.now(),
        able=None if able is None else tuple(sorted(able)),
        present=None if present is None else tuple(sorted(present)),
        address=address,
        release=__version__,
        pid=os.getpid(),
    )


class Engine:
    """
    The loops over *services*, which run while the context is entered.

    On exit, running steps have *drain_ms* to end; steps still running then are killed, and are
    INTERRUPTED. The caller keeps ownership of *runner* and closes it afterwards. Without a
    *callback_client* this engine makes no callbacks; they stay due for an engine that has one. The
    same holds for notices without a *notifier*.

    *stalled_ms*: how long due work may be left, or one round of a loop may take, before `check`
    complains. *able*: the capabilities of the executions to take, see `Store.claim` and
    `capabilities_with`; None: all executions. *dispatch*: the source of deliveries; *services* must
    then come from `dispatching`. *present* and *address*: see `Node`, for operators.
    """

    def __init__(
        self,
        services: Services,
        runner: JobRunner,
        callback_client: CallbackClient | None = None,
        notifier: Notifier | None = None,
        *,
        drain_ms: int = 25 * SECOND,
        stalled_ms: int = MINUTE,
        able: Collection[str] | None = None,
        dispatch: DispatchQueue | None = None,
        present: Collection[str] | None = None,
        address: str = "",
    ) -> None:
        if not isinstance(services, Services) or not callable(getattr(runner, "run", None)):
            raise TypeError("Engine takes services and a runner of steps: a FunctionRunner, say")
        # Loaded here, before the start: who only names `Engine` loads none (decision 286).
        from adapters_runtime.engine.outbox import CallbackLoop, NoticeLoop
        from adapters_runtime.engine.presence import NodePresence
        from adapters_runtime.engine.receiver import Receiver
        from adapters_runtime.engine.retention import Retention
        from adapters_runtime.engine.scheduler import Scheduler
        from adapters_runtime.engine.worker import Worker
        from wfcore.usecases.audit.auditing import note_repeated

        name = services.ids.new("worker", services.clock.now())
        self._worker = Worker(services, runner, name, able, dispatch)
        node = new_node(
            services, name, services.policy.places, able=able, present=present, address=address
        )
        self._presence = NodePresence(services, node, self._worker.set_draining)
        self._duties: list[_Duty] = [Scheduler(services, self._worker.keep_leases)]
        if callback_client is not None:
            self._duties.append(CallbackLoop(services, callback_client))
        if notifier is not None:
            self._duties.append(NoticeLoop(services, notifier))
        self._receiver = Receiver(services, self._worker, dispatch) if dispatch else None
        self._parts: list[_Duty] = [
            *([self._receiver] if self._receiver else []),
            self._worker,
            *self._duties,
            Retention(services),
            self._presence,
        ]
        self._services, self._note_repeated = services, note_repeated
        self._drain_s, self._stalled_s = drain_ms / 1_000, stalled_ms / 1_000
        self._tasks: list[asyncio.Task[None]] = []
        self._drained = False

    async def __aenter__(self) -> Self:
        self._tasks = [asyncio.create_task(part.run(), name=part.loop.name) for part in self._parts]
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self._end()

    def check(self) -> None:
        """
        Raises `NotReady` while a loop is down or leaves due work, or the machine lacks something to
        start a step.
        """
        found = [self._worker.trouble(self._stalled_s)]
        # Not retention: without it the disk fills up some day, but callers are served.
        found += [part.loop.trouble(self._stalled_s) for part in self._duties]
        if lacking := self._worker.shortages.now:
            found.append(f"steps cannot be started: {lacking}")
        if any(found):
            raise NotReady("; ".join(filter(None, found)))

    def gauges(self) -> Mapping[str, float]:
        """The metrics of places, and of each loop with the age of its oldest due work."""
        now, loops = self._services.clock.deadline_now(), [part.loop for part in self._parts]
        up = {f'wfcore_loop_up{{loop="{one.name}"}}': float(one.up) for one in loops}
        ages = {
            f'wfcore_oldest_due_seconds{{loop="{one.name}"}}': one.overdue_s(now) for one in loops
        }
        return {
            "wfcore_executions_running": self._worker.running,
            "wfcore_places": self._services.policy.places,
            "wfcore_starts_short_total": self._worker.shortages.total,
            "wfcore_machine_short": self._worker.shortages.now is not None,
            **({"wfcore_redeliveries_total": self._receiver.again} if self._receiver else {}),
            **up,
            **ages,
        }

    async def drain(self) -> None:
        """Let running steps end within the drain, then kill them. Later calls do nothing."""
        if self._drained:
            return
        self._drained = True
        try:
            async with asyncio.timeout(self._drain_s + _ENDING_S):
                await self._worker.stop(self._drain_s)
        except TimeoutError:
            log.error("executions could not be given back in time")

    async def _end(self) -> None:
        """Drain, and end the loops. A loop that does not end is abandoned and logged."""
        await self.drain()
        for part in self._parts:
            part.loop.stop()
        _, late = await asyncio.wait(self._tasks, timeout=_ENDING_S / 2)
        for task in late:
            task.cancel()
        if late:
            _, late = await asyncio.wait(late, timeout=_ENDING_S / 4)
        await self._withdraw()
        for task in late:
            log.error("a loop does not end", extra={"loop": task.get_name()})

    async def _withdraw(self) -> None:
        """Tell other processes that this one is gone. If that fails, its lease expires. AL-8."""
        with suppress(StoreUnavailable, TimeoutError):
            async with asyncio.timeout(_ENDING_S / 4):
                await self._presence.withdraw()
                await self._note_repeated(self._services)
