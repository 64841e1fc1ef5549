"""
A dispatch beside the store: what units of work made due is told to it, after they committed.

Whatever becomes due does so in a unit of work, so the commit is the one place where it is told:
executions that were accepted, let go of between two steps, decided, resumed, recovered. Nobody
waits for the telling. While the dispatch is up it takes the place of the hint that something is due
(`Wakeup.runner`); that hint is sent for what no delivery says, and when telling fails: then workers
look, as they do without a dispatch. Decision 222.
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
"""How late a delivery may be before a worker looks for itself."""
CLOSING_S = 2.0


class Looking:
    """How seldom a worker looks into the store, with and without a dispatch."""

    def __init__(self, policy: Policy, dispatch: DispatchQueue | None) -> None:
        self._policy = policy
        self._dispatch = dispatch

    @property
    def is_told(self) -> bool:
        """Whether what is due is delivered, so that hints of it need not be followed."""
        return self._dispatch is not None and self._dispatch.up

    def pause_ms(self, due: EpochMs | None, asked: EpochMs, now: EpochMs) -> int:
        """
        Until the next look. *due*: the earliest thing that is left; at or before *asked*, when
        was claimed last, it was not to be had.
        """
        longest, late = self._policy.poll_ms, 0
        if self.is_told:
            longest, late = self._policy.reconcile_ms, LATE_MS
        if due is None:
            return longest
        return self._policy.poll_ms if due <= asked else min(max(due - now, 0) + late, longest)

    def has_more(self, was_full: bool, due: EpochMs | None, now: EpochMs) -> bool:
        """
        Whether a place that got free is for what a look finds: the last one left something (*due*),
        or there was no room to look. What comes later is hinted at, or delivered.
        """
        return (was_full and not self.is_told) or (due is not None and due <= now)


@asynccontextmanager
async def dispatching(services: Services, dispatch: DispatchQueue) -> AsyncIterator[Services]:
    """
    *services* that tell *dispatch* what they make due, while it is connected here. An `Engine` over
    them that is to take what is delivered is given the same *dispatch*.
    """
    telling = _Telling(services, dispatch)
    running = asyncio.create_task(dispatch.run(services.wakeup.runner), name="dispatch")
    store = cast("Store", _TellingStore(services.store, telling))
    wakeup = cast("Wakeup", _ReplacedHint(services.wakeup, dispatch))
    try:
        yield evolve(services, store=store, wakeup=wakeup)
    finally:
        await telling.close()
        running.cancel()
        await asyncio.wait((running,))


def due_of(run: Execution, now: EpochMs) -> DueExecution | None:
    """What to tell of an execution as it was stored; None: no worker may claim it, now or later."""
    is_over = run.status in EXECUTION.final or run.status is ExecutionStatus.INTERRUPTED
    if is_over or run.due_at is None or run.worker is not None:
        return None
    in_ms = DurationMs(max(run.due_at - now, 0))
    return DueExecution(run.id, f"{run.id}:{run.version}", in_ms, run.capabilities)


class _Telling:
    """Tells what became due: at once, and what comes meanwhile together."""

    def __init__(self, services: Services, dispatch: DispatchQueue) -> None:
        self._services = services
        self._dispatch = dispatch
        self._untold: dict[str, DueExecution] = {}
        self._task: asyncio.Task[None] | None = None

    def committed(self, record: Execution | Workflow) -> None:
        """
        This is durable. A place in a concurrency group that got free, or a limit that was moved,
        lets others be claimed of which nothing was stored: who looks finds them.
        """
        if isinstance(record, Workflow) or (
            record.concurrency_group is not None and record.status in EXECUTION.final
        ):
            self._services.wakeup.runner()
        elif self._dispatch.up and (due := due_of(record, self._services.store.now())) is not None:
            self._untold[due.execution_id] = due
            if self._task is None or self._task.done():
                self._task = asyncio.create_task(self._tell())

    async def _tell(self) -> None:
        while self._untold:
            told, self._untold = self._untold, {}
            if not await self._dispatch.tell(told.values()):
                self._services.wakeup.runner()

    async def close(self) -> None:
        """Tell what is untold, for a moment."""
        if self._task is not None:
            await asyncio.wait((self._task,), timeout=CLOSING_S)
            self._task.cancel()


class _ReplacedHint:
    """That something is due is told by the dispatch, while it is up."""

    def __init__(self, wakeup: Wakeup, dispatch: DispatchQueue) -> None:
        self._wakeup = wakeup
        self._dispatch = dispatch

    def __getattr__(self, name: str) -> Any:
        return getattr(self._wakeup, name)

    def runner(self) -> None:
        if not self._dispatch.up:
            self._wakeup.runner()


class _TellingStore:
    """A store whose units tell what they stored."""

    def __init__(self, store: Store, telling: _Telling) -> None:
        self._store = store
        self._telling = telling

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    @asynccontextmanager
    async def unit(self) -> AsyncIterator[Any]:
        async with self._store.unit() as unit:
            yield _TellingUnit(unit, self._telling.committed)


class _TellingUnit:
    """A unit that remembers what it puts, each as it was put last."""

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
    The dispatch at *url*, not yet connected: of NATS, or of the installed package that offers an
    entry point of the group `wfcore.engines` by the scheme of *url*, which is called as
    `open(url, keep_s)`; *keep_s* as in `DispatchQueue`.

    Raises `InvalidInput`, by the *name* of a setting, for what cannot be opened; the URL, which may
    hold a password, is not repeated.
    """
    scheme = url.partition("://")[0]
    if url.startswith(NATS):
        return _nats(name, url, keep_s)
    from importlib.metadata import entry_points

    offered = {one.name: one for one in entry_points(group=GROUP)}
    if "://" not in url or scheme not in offered:
        there = "".join(f", {one}://…" for one in sorted(offered))
        raise InvalidInput(name, f"must be nats://HOST:4222, tls://HOST:4222{there}")
    try:
        made: DispatchQueue = offered[scheme].load()(url, keep_s)
    except ValueError as error:
        raise InvalidInput(name, str(error)) from None
    return made


async def seen(name: str, url: str) -> str:
    """
    What is found at *url*, for people. Raises `InvalidInput`, and `ConnectionError`, which says why
    it does not answer.
    """
    dispatch = open_dispatch(name, url, CLOSING_S)
    if not url.startswith(NATS):
        return f"{type(dispatch).__name__}"
    from adapters_runtime.engine import jetstream

    try:
        return await jetstream.seen(url)
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
