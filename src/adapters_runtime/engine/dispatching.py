"""
A dispatch beside the store, to which executions are published when they become due.

Executions become due in a unit of work only: accepted, released between two steps, decided,
resumed, recovered. So they are published in one place, after the commit. No caller waits for the
publication.

While the dispatch is up, its deliveries replace the hint that something is due (`Wakeup.runner`).
The hint is still sent for executions that no delivery carries, and when publishing fails; workers
then poll, as they do without a dispatch. Decision 222.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, cast

from attrs import evolve

from wfcore.errors import InvalidInput
from wfcore.installed import install
from wfcore.model.execution import Execution, ExecutionStatus
from wfcore.model.workflow import Workflow
from wfcore.ports.hints import Wakeup
from wfcore.ports.queue import DispatchQueue, DueExecution
from wfcore.ports.store import Store
from wfcore.rules.execution.machine import EXECUTION
from wfcore.time import DurationMs, EpochMs
from wfcore.usecases.services import Policy, Services

GROUP = "wfcore.engines"
NATS = ("nats://", "tls://")
NATS_PORT = 4222
LATE_MS = 1_000
"""How late a delivery may be before a worker polls the store."""
CLOSING_S = 2.0


class PollSchedule:
    """The pauses between a worker's polls of the store, with and without a dispatch."""

    def __init__(self, policy: Policy, dispatch: DispatchQueue | None) -> None:
        self._policy = policy
        self._dispatch = dispatch

    @property
    def has_deliveries(self) -> bool:
        """Whether due executions are delivered, so that the worker need not follow hints."""
        return self._dispatch is not None and self._dispatch.up

    def pause_ms(self, due: EpochMs | None, claimed_at: EpochMs, now: EpochMs) -> int:
        """
        The time until the next poll.

        *due*: when the earliest execution that is left is due. If *due* is not after *claimed_at*,
        the last claim has refused the execution.
        """
        longest, late = self._policy.poll_ms, 0
        if self.has_deliveries:
            longest, late = self._policy.reconcile_ms, LATE_MS
        if due is None:
            return longest
        return self._policy.poll_ms if due <= claimed_at else min(max(due - now, 0) + late, longest)

    def has_more(self, was_full: bool, due: EpochMs | None, now: EpochMs) -> bool:
        """
        Whether a worker with a newly free place polls at once: the last poll left an execution
        behind (*due*), or had no free place. Hints or deliveries announce executions that become
        due later.
        """
        return (was_full and not self.has_deliveries) or (due is not None and due <= now)


@asynccontextmanager
async def dispatching(services: Services, dispatch: DispatchQueue) -> AsyncIterator[Services]:
    """
    *services* that publish executions to *dispatch* when they become due, while this context holds
    its connection. An `Engine` that takes the deliveries is given the same *dispatch*.
    """
    publisher = _Publisher(services, dispatch)
    connection = asyncio.create_task(dispatch.run(services.wakeup.runner), name="dispatch")
    store = cast("Store", _PublishingStore(services.store, publisher))
    wakeup = cast("Wakeup", _ReplacedHint(services.wakeup, dispatch))
    try:
        yield evolve(services, store=store, wakeup=wakeup)
    finally:
        await publisher.close()
        connection.cancel()
        await asyncio.wait((connection,))


def due_of(run: Execution, now: EpochMs) -> DueExecution | None:
    """The message on a stored execution, or None if no worker may claim it now or later."""
    is_over = run.status in EXECUTION.final or run.status is ExecutionStatus.INTERRUPTED
    if is_over or run.due_at is None or run.worker is not None:
        return None
    in_ms = DurationMs(max(run.due_at - now, 0))
    return DueExecution(run.id, f"{run.id}:{run.version}", in_ms, run.capabilities)


class _Publisher:
    """
    Publishes executions that became due: the first at once, the executions that follow together.
    """

    def __init__(self, services: Services, dispatch: DispatchQueue) -> None:
        self._services = services
        self._dispatch = dispatch
        self._unpublished: dict[str, DueExecution] = {}
        self._task: asyncio.Task[None] | None = None

    def committed(self, record: Execution | Workflow) -> None:
        """
        Publish the execution of a durable *record*.

        A free place in a concurrency group, or a changed limit, lets other executions be claimed
        that this unit did not store. Workers find such executions by polling.
        """
        if isinstance(record, Workflow) or (
            record.concurrency_group is not None and record.status in EXECUTION.final
        ):
            self._services.wakeup.runner()
        elif self._dispatch.up and (due := due_of(record, self._services.store.now())) is not None:
            self._unpublished[due.execution_id] = due
            if self._task is None or self._task.done():
                self._task = asyncio.create_task(self._publish())

    async def _publish(self) -> None:
        while self._unpublished:
            batch, self._unpublished = self._unpublished, {}
            if not await self._dispatch.tell(batch.values()):
                self._services.wakeup.runner()

    async def close(self) -> None:
        """Wait a moment until the remaining executions are published."""
        if self._task is not None:
            await asyncio.wait((self._task,), timeout=CLOSING_S)
            self._task.cancel()


class _ReplacedHint:
    """A `Wakeup` without the hint that something is due while the dispatch is up."""

    def __init__(self, wakeup: Wakeup, dispatch: DispatchQueue) -> None:
        self._wakeup = wakeup
        self._dispatch = dispatch

    def __getattr__(self, name: str) -> Any:
        return getattr(self._wakeup, name)

    def runner(self) -> None:
        if not self._dispatch.up:
            self._wakeup.runner()


class _PublishingStore:
    """A store whose units publish the executions that they stored."""

    def __init__(self, store: Store, publisher: _Publisher) -> None:
        self._store = store
        self._publisher = publisher

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    @asynccontextmanager
    async def unit(self) -> AsyncIterator[Any]:
        async with self._store.unit() as unit:
            yield _PublishingUnit(unit, self._publisher.committed)


class _PublishingUnit:
    """A unit that publishes the last version of each record that it stored."""

    def __init__(self, unit: Any, committed: Callable[[Execution | Workflow], None]) -> None:
        self._unit = unit
        self._committed = committed
        self._put: dict[str, Execution | Workflow] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._unit, name)

    def put(self, record: Any) -> None:
        if isinstance(record, Execution | Workflow):
            self._put[record.id] = record
        self._unit.put(record)

    async def commit(self) -> None:
        await self._unit.commit()
        for record in self._put.values():
            self._committed(record)


def open_dispatch(name: str, url: str, keep_s: float) -> DispatchQueue:
    """
    The dispatch at *url*, not yet connected.

    The dispatch is that of NATS, or of the installed package with an entry point of the group
    `wfcore.engines` that is named as the scheme of *url*. The entry point is called as `open(url,
    keep_s)`; *keep_s* as in `DispatchQueue`.

    Raises `InvalidInput` for the setting *name* if the dispatch cannot be opened. The error does
    not repeat the URL, which may hold a password.
    """
    scheme = url.partition("://")[0]
    if url.startswith(NATS):
        return _nats(name, url, keep_s)
    from importlib.metadata import entry_points

    offered = {one.name: one for one in entry_points(group=GROUP)}
    if "://" not in url or scheme not in offered:
        others = "".join(f", {one}://…" for one in sorted(offered))
        raise InvalidInput(name, f"must be nats://HOST:4222, tls://HOST:4222{others}")
    try:
        made: DispatchQueue = offered[scheme].load()(url, keep_s)
    except ValueError as error:
        raise InvalidInput(name, str(error)) from None
    return made


async def describe_dispatch(name: str, url: str) -> str:
    """
    A text for people on the dispatch at *url*.

    Raises `InvalidInput`, and `ConnectionError` with the reason if the dispatch does not answer.
    """
    dispatch = open_dispatch(name, url, CLOSING_S)
    if not url.startswith(NATS):
        return f"{type(dispatch).__name__}"
    from adapters_runtime.engine import jetstream

    try:
        return await jetstream.describe(url)
    except jetstream.TROUBLE as error:
        raise ConnectionError(str(error) or type(error).__name__) from None


def _nats(name: str, url: str, keep_s: float) -> DispatchQueue:
    try:
        from adapters_runtime.engine.jetstream import NatsDispatch
    except ModuleNotFoundError as error:
        if error.name != "nats":
            raise
        fix = f"nats:// needs a client: {install('nats')}"
        raise InvalidInput(name, fix) from None
    try:
        return NatsDispatch.at(url, keep_s)
    except ValueError as error:
        raise InvalidInput(name, str(error)) from None
