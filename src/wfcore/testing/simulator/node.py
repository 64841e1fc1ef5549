"""A simulated process: services, worker and scheduler over the shared disk. The process can die."""

from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, Protocol, cast

from attrs import evolve

from wfcore.errors import StoreUnavailable
from wfcore.model.notice import NoticeStatus
from wfcore.ports.notices import NotDelivered, Receipt
from wfcore.ports.store import Store
from wfcore.ports.system import Clock
from wfcore.testing.simulator.calls import Signal, sleep
from wfcore.testing.simulator.fake_notifier import FakeNotifier
from wfcore.testing.simulator.faults import AT_HINT, FaultKind
from wfcore.testing.simulator.ports import SimClock, SimWakeup, WallClock
from wfcore.testing.simulator.runner import SimRunner, StartedAttempts, StepObserver
from wfcore.testing.simulator.scheduler import End, Task, WorldScheduler
from wfcore.testing.simulator.worker import SimWorker
from wfcore.usecases.notices.sending import Sending, settle_notice, take_notices
from wfcore.usecases.services import Services
from wfcore.usecases.upkeep.sweeping import next_deadline, sweep

SWEEP_MS = 2_000
TELL_MS = 500
TOLD_AT_ONCE = 5


class Surroundings(Protocol):
    """The parts that all nodes of a world share. `services` lacks the parts of a single process."""

    @property
    def scheduler(self) -> WorldScheduler: ...
    @property
    def services(self) -> Services: ...
    @property
    def ledger(self) -> StartedAttempts: ...
    @property
    def judge(self) -> StepObserver: ...
    @property
    def post(self) -> FakeNotifier | None: ...
    def machine_of(self, node: str) -> WallClock:
        """The clocks of the machine that runs the node named *node*."""

    def store_of(self, clock: Clock) -> Store:
        """A handle on the one store, for a process with *clock*."""

    def went_down(self, worker: str) -> None:
        """Note that the process of *worker* has ended."""

    def name_of(self, execution_id: str) -> str:
        """The name of the execution's tasks."""


class Gone(StoreUnavailable):
    """The error of a broken connection: the process died during the request, or was not running."""


class SimNode:
    """A series of processes under one name. Each start is a new worker."""

    def __init__(self, name: str, around: Surroundings) -> None:
        self.name = name
        self.up = False
        self.frozen_until = 0
        self.worker = ""
        self._around = around
        self._starts = 0
        self._hints = 0
        self._tasks: dict[Task, End | None] = {}

    def start(self) -> None:
        """Start the process."""
        self.up = True
        self._starts += 1
        self._hints = 0
        self.frozen_until = 0
        self.worker = f"{self.name}.{self._starts}"
        self.wakeup = SimWakeup(self._passes, self._stop_steps, self._look)
        shared = self._around.services
        clock = SimClock(self._around.machine_of(self.name))
        store = self._around.store_of(clock)
        self.services = evolve(shared, store=store, clock=clock, wakeup=self.wakeup)
        runner = SimRunner(self._around.ledger, self._around.judge, self.worker)
        self.engine = SimWorker(self.services, runner, self.worker, self, self.wakeup.runner_due)
        self.spawn("claims", self.engine.claims())
        self.spawn("heart", self.engine.heartbeats())
        self.spawn("scheduler", self._sweeps())
        if self._around.post is not None:
            self.spawn("outbox", self._tells(self._around.post))

    def crash(self) -> None:
        """End every task of this process at once."""
        if not self.up:
            return
        self.up = False
        self._around.went_down(self.worker)
        tasks, self._tasks = self._tasks, {}
        for task, on_end in tasks.items():
            if not task.done:
                self._around.scheduler.drop(task)
                if on_end is not None:
                    on_end(None, Gone("the process died"))

    async def stop(self, drain_ms: int) -> None:
        """End the process in good order: let steps end for *drain_ms*."""
        mine = self.worker
        stopped = Signal()

        async def stop() -> None:
            with suppress(StoreUnavailable):
                await self.engine.stop(drain_ms)

        self.spawn("stop", stop(), lambda result, refusal: stopped.set())
        await stopped.wait(None)
        if self.worker == mine:
            self.crash()

    def wake(self) -> None:
        """Send the process hints without a cause."""
        if self.up:
            self.wakeup.runner_due.set()
            self.wakeup.timer_due.set()

    def spawn(self, name: str, work: Awaitable[Any], on_end: End | None = None) -> Task:
        """Run *work* in this process. *on_end* is called when *work* or the process ends."""
        label = f"{self.worker}/{name}"
        tasks = self._tasks

        def ended(result: Any, refusal: Any) -> None:
            tasks.pop(task, None)
            if on_end is not None:
                on_end(result, refusal)
            elif refusal is not None:
                raise refusal

        task = self._around.scheduler.spawn(label, cast(Any, work), self, ended)
        tasks[task] = on_end
        return task

    def drop(self, task: Task) -> None:
        """End a task of this process at once."""
        self._around.scheduler.drop(task)
        if task.done:
            self._tasks.pop(task, None)

    def name_of(self, execution_id: str) -> str:
        """The name of the execution's tasks."""
        return self._around.name_of(execution_id)

    async def _sweeps(self) -> None:
        while True:
            pause = SWEEP_MS
            with suppress(StoreUnavailable):
                await self.engine.keep_leases()
                await sweep(self.services)
                pause = await self._pause()
            await self.wakeup.timer_due.wait(pause)

    async def _tells(self, post: FakeNotifier) -> None:
        """Send due notices one after another; record each attempt before sending."""
        while True:
            begun = self._around.scheduler.turns
            with suppress(StoreUnavailable):
                for sending in await take_notices(self.services, TOLD_AT_ONCE):
                    await self._tell(post, sending, begun)
            await sleep(TELL_MS)

    async def _tell(self, post: FakeNotifier, sending: Sending, begun: int) -> None:
        outcome: Receipt | NotDelivered = Receipt("taken")
        try:
            await post.send(sending, begun)
        except NotDelivered as failed:
            outcome = failed
        with suppress(StoreUnavailable):  # then it counts as failed, and is due again later
            settled = await settle_notice(self.services, sending, outcome)
            if settled is not None and settled.status is NoticeStatus.SENT:
                post.recorded(settled)

    async def _pause(self) -> int:
        due = await next_deadline(self.services)
        if due is None:
            return SWEEP_MS
        left = due - self.services.clock.deadline_now()
        return min(max(left, 5), SWEEP_MS)

    def _stop_steps(self, execution_id: str) -> None:
        if self.up:
            self.engine.stop_steps(execution_id)

    def _look(self, execution_id: str) -> None:
        if self.up:
            self.engine.look(execution_id)

    def _passes(self, hint: str) -> int:
        """The number of times that *hint* arrives; 0 for a dead process."""
        if not self.up:
            return 0
        self._hints += 1
        scheduler = self._around.scheduler
        fault = scheduler.chance.fault(f"{self.worker}/hints", self._hints, AT_HINT)
        if fault is None:
            return 1
        scheduler.say(f"{self.worker}: {fault}: {hint}")
        return 0 if fault.kind is FaultKind.HINT_LOST else 2


Door = Callable[[Services], Awaitable[Any]]
"""The work of a request in the process that it reached."""
