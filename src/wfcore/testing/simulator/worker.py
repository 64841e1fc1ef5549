"""
The worker of a simulated process: `adapters_runtime.engine.worker` on the scheduler.

All decisions are the core's. This module contains only the tasks that wait for steps.
"""

from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Protocol, TypeVar

from attrs import define, field

from wfcore.errors import LeaseLost, StoreUnavailable
from wfcore.ports.runtime import Job, JobRunner, StepEnd
from wfcore.rules.backoff import Backoff
from wfcore.testing.simulator.calls import Signal, sleep
from wfcore.testing.simulator.scheduler import Task
from wfcore.time import EpochMs
from wfcore.usecases.executions import worker as running
from wfcore.usecases.executions.worker import Lease, Work
from wfcore.usecases.services import Services

R = TypeVar("R")

POLL_MS = 1_500
HEARTBEAT_MS = 2_000
STORE_BACKOFF = Backoff(first=50, longest=1_000)
"""The waits between attempts to write, in ms."""


class Host(Protocol):
    """The process that contains a worker."""

    def spawn(self, name: str, work: Awaitable[None]) -> Task:
        """Run *work* beside the other tasks of this process."""

    def drop(self, task: Task) -> None:
        """End a task at once."""

    def name_of(self, execution_id: str) -> str:
        """The name of the execution's tasks."""


class UnitLock:
    """A lock for one unit of work at a time: `async with`."""

    def __init__(self) -> None:
        self._taken = False
        self._free = Signal()

    async def __aenter__(self) -> None:
        while self._taken:
            await self._free.wait(None)
        self._taken = True

    async def __aexit__(self, *_: object) -> None:
        self._taken = False
        self._free.set()


@define(eq=False)
class Held:
    """
    An execution that this process works on, and the tasks that run its steps.

    `name`: the name of the tasks, a new one for each claim. `met`: the attempts that were ever
    started. `turn`: the lock for one unit of work at a time. `look_at`: the instant of the alarm.
    `looks`: the number of times the execution was read again.
    """

    lease: Lease
    name: str
    steps: dict[tuple[str, int], Task] = field(factory=dict)
    met: set[tuple[str, int]] = field(factory=set)
    turn: UnitLock = field(factory=UnitLock)
    look_at: EpochMs | None = None
    looks: int = 0


class SimWorker:
    """A worker that runs steps for one process."""

    def __init__(
        self, services: Services, runner: JobRunner, worker: str, host: Host, due: Signal
    ) -> None:
        self.held: dict[str, Held] = {}
        self.stopping = False
        self.idle = Signal()
        self._services = services
        self._runner = runner
        self._worker = worker
        self._host = host
        self._due = due

    async def claims(self) -> None:
        """Claim executions and run them until the process stops."""
        await self._services.store.enlist(self._worker)
        while not self.stopping:
            await self._due.wait(await self._claim_all())

    async def heartbeats(self) -> None:
        """Extend the leases regularly, as long as this process lives."""
        while True:
            await sleep(HEARTBEAT_MS)
            with suppress(StoreUnavailable):
                await self.keep_leases()

    async def keep_leases(self) -> None:
        """
        Extend all leases, including those of executions that are only beginning. Stop the steps of
        executions that were taken away; continue with executions that have become due.
        """
        mine = list(self.held)
        if mine:
            kept = await running.heartbeat(self._services, self._worker, mine)
            now = self._services.store.now()
            for execution_id in mine:
                due = kept.get(execution_id)
                if execution_id not in kept:
                    self.stop_steps(execution_id)
                elif due is not None and due <= now:
                    self.look(execution_id)

    async def _claim_all(self) -> int:
        """Claim executions for the free places; return how long to sleep afterwards, in ms."""
        asked = self._services.store.now()
        try:
            while (free := self._services.policy.places - len(self.held)) > 0:
                asked = self._services.store.now()
                leases = await running.claim(self._services, self._worker, free)
                for lease in leases:
                    self._take(lease)
                if not leases:
                    break
            due = await running.next_due(self._services)
        except StoreUnavailable:
            return POLL_MS
        if due is None or due <= asked:
            return POLL_MS
        return min(max(due - self._services.store.now(), 0), POLL_MS)

    def _take(self, lease: Lease) -> None:
        self.stop_steps(lease.execution_id)  # what runs for it here has an older lease
        held = Held(lease, f"{self._host.name_of(lease.execution_id)}:{lease.fence}")
        self.held[lease.execution_id] = held
        self._host.spawn(held.name, self._drive(held))

    async def _drive(self, held: Held) -> None:
        """Take one execution as far as it goes, then let go of it."""
        await self._moved(held, lambda: running.begin(self._services, held.lease))
        self._let_go(held)

    async def _moved(self, held: Held, unit: Callable[[], Awaitable[Work]]) -> None:
        """Run one unit of work on the execution, and do what the unit returns."""
        try:
            async with held.turn:
                self._take_up(held, await self._stored(unit))
        except LeaseLost:
            self._end_steps(held)

    def _take_up(self, held: Held, work: Work) -> None:
        for (step, attempt), task in list(held.steps.items()):
            if step not in work.in_flight:
                self._drop(held, (step, attempt), task)
        for job in work.jobs:
            key = (job.step_name, job.attempt)
            if key not in held.met:
                held.met.add(key)
                name = f"{held.name}/{job.step_name}.{job.attempt}"
                held.steps[key] = self._host.spawn(name, self._run_step(held, job))
        held.look_at = work.due_at
        if work.due_at is not None:
            self._host.spawn(f"{held.name}/alarm", self._alarm(held, work.due_at))

    async def _alarm(self, held: Held, at: EpochMs) -> None:
        await sleep(max(at - self._services.store.now(), 0))
        if held.look_at == at:
            self.look(held.lease.execution_id)

    def look(self, execution_id: str) -> None:
        """Continue with an execution that is held here and was moved by a client or by time."""
        held = self.held.get(execution_id)
        if held is not None and held.steps and not self.stopping:
            held.looks += 1
            self._host.spawn(f"{held.name}/look{held.looks}", self._look(held))

    async def _look(self, held: Held) -> None:
        await self._moved(held, lambda: running.go_on(self._services, held.lease, held.met))
        self._let_go(held)

    async def _run_step(self, held: Held, job: Job) -> None:
        async def say(stream: str, lines: str) -> None:
            await self._stored(
                lambda: running.log_lines(self._services, held.lease, job.step_name, stream, lines)
            )

        try:
            end = await self._runner.run(job, say)
        except LeaseLost:
            self._end_steps(held)
        else:
            await self._moved(held, lambda: self._complete(held, job, end))
        held.steps.pop((job.step_name, job.attempt), None)
        self._let_go(held)

    async def _complete(self, held: Held, job: Job, end: StepEnd) -> Work:
        if end.postponed is not None:
            held.met.discard((job.step_name, job.attempt))  # it begins again as the same one
        return await running.complete_step(
            self._services,
            held.lease,
            job.step_name,
            end,
            attempt=job.attempt,
            postponed=job.postponed,
            go_on=not self.stopping,
        )

    async def _stored(self, write: Callable[[], Awaitable[R]]) -> R:
        """Repeat *write* while the store cannot write, so that no result is lost."""
        tried = 0
        while True:
            tried += 1
            try:
                return await write()
            except StoreUnavailable:
                await sleep(int(STORE_BACKOFF.wait(tried)))

    def _let_go(self, held: Held) -> None:
        if not held.steps and self.held.get(held.lease.execution_id) is held:
            del self.held[held.lease.execution_id]
            self._due.set()
            self.idle.set()

    def stop_steps(self, execution_id: str) -> None:
        """End the steps of an execution that another process has moved."""
        held = self.held.get(execution_id)
        if held is not None:
            self._end_steps(held)
            self._let_go(held)

    def _end_steps(self, held: Held) -> None:
        for key, task in list(held.steps.items()):
            self._drop(held, key, task)

    def _drop(self, held: Held, key: tuple[str, int], task: Task) -> None:
        self._host.drop(task)
        if task.done:
            held.steps.pop(key, None)

    async def stop(self, drain_ms: int) -> None:
        """
        Claim nothing more. Let steps end for *drain_ms*; then end the remaining steps, and hand
        their executions back.
        """
        self.stopping = True
        self._due.set()
        await self._drained(drain_ms)
        for held in list(self.held.values()):
            self._end_steps(held)
            with suppress(LeaseLost, StoreUnavailable):
                await running.hand_back(self._services, held.lease)
            self.held.pop(held.lease.execution_id, None)

    async def _drained(self, drain_ms: int) -> None:
        slept = 0
        while self.held and slept < drain_ms:
            await self.idle.wait(100)
            slept += 100
