"""
The dispatcher: takes due executions, runs their steps, records what came of them.

All decisions are the core's; here are only the tasks that wait for processes. A lease is
extended as long as this process lives, and whatever was taken away from it is stopped.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import TypeVar

import structlog
from attrs import define, field

from adapters_runtime.wakeups import Wakeups, wait_for
from wfcore.errors import LeaseLost, StoreUnavailable
from wfcore.ports.runtime import Job, JobRunner, StepEnd
from wfcore.usecases import running
from wfcore.usecases.running import Lease
from wfcore.usecases.services import Services

R = TypeVar("R")
log = structlog.get_logger("wfcore.dispatcher")

POLL_S = 0.25
"""How long something that another process stored may stay unseen."""
HEARTBEAT_S = 1.0
STORE_RETRY_S = (0.05, 2.0)


@define
class _Held:
    """
    An execution that this process works on, and the tasks that run its steps. `begun`: the
    attempts that were started, by step and number.
    """

    lease: Lease
    begun: set[tuple[str, int]] = field(factory=set)
    steps: set[asyncio.Task[Sequence[Job]]] = field(factory=set)
    driver: asyncio.Task[None] | None = None


class Dispatcher:
    """Runs steps for one process. `worker` must be unique for each start of a process."""

    def __init__(
        self, services: Services, runner: JobRunner, wakeups: Wakeups, worker: str
    ) -> None:
        self.worker = worker
        self._services = services
        self._runner = runner
        self._wakeups = wakeups
        self._held: dict[str, _Held] = {}
        self._stopping = False
        self._claims_no_more = asyncio.Event()
        self._heart: asyncio.Task[None] | None = None
        wakeups.on_stop = self._stop_steps

    @property
    def running(self) -> int:
        """How many executions are being worked on."""
        return len(self._held)

    async def run(self) -> None:
        """Claim and run until `stop`, which must be called in the end."""
        await self._services.store.enlist(self.worker)
        self._heart = asyncio.create_task(self._heartbeats())
        try:
            while not self._stopping:
                pause = await self._claim_all()
                await wait_for(self._wakeups.runner_due, pause)
        finally:
            self._claims_no_more.set()

    async def stop(self, drain_s: float) -> None:
        """
        Claim nothing more, let running steps end for up to *drain_s*, then end them.

        Executions between two steps are handed back; those whose step had to be ended are
        interrupted. Leases are kept until the last one is settled.
        """
        self._stopping = True
        self._wakeups.runner()
        await self._claims_no_more.wait()
        drivers = [held.driver for held in self._held.values() if held.driver]
        if drivers:
            await asyncio.wait(drivers, timeout=drain_s)
        for held in list(self._held.values()):
            if held.driver:
                held.driver.cancel()
        if drivers:
            await asyncio.wait(drivers)
        if self._heart is not None:
            self._heart.cancel()

    async def keep_leases(self) -> None:
        """Extend all leases; stop what was taken away (cancelled at another process, say)."""
        mine = [id for id, held in self._held.items() if held.steps]
        if mine:
            kept = await running.heartbeat(self._services, self.worker, mine)
            for execution_id in mine:
                if execution_id not in kept:
                    self._stop_steps(execution_id)

    async def _claim_all(self) -> float:
        """Fill the free places; how long to sleep afterwards, in seconds."""
        try:
            while (free := self._services.policy.places - len(self._held)) > 0:
                leases = await running.claim(self._services, self.worker, free)
                for lease in leases:
                    self._take(lease)
                if not leases:
                    break
            due = await running.next_due(self._services)
        except StoreUnavailable:
            return POLL_S
        except Exception:
            log.exception("claiming failed")
            return POLL_S
        left = (due - self._services.clock.now()) / 1_000 if due is not None else POLL_S
        return left if 0 < left < POLL_S else POLL_S

    def _take(self, lease: Lease) -> None:
        self._stop_steps(lease.execution_id)  # what runs for it here has an older lease
        held = _Held(lease)
        self._held[lease.execution_id] = held
        held.driver = asyncio.create_task(self._drive(held))

    async def _drive(self, held: _Held) -> None:
        """Take one execution as far as it goes, then let go of it."""
        lease = held.lease
        try:
            await self._run_steps(held, await self._stored(lambda: self._begin(lease)))
        except LeaseLost:
            await self._end_steps(held)
        except asyncio.CancelledError:
            await self._give_up(held)
            raise
        except Exception:
            log.exception("a defect ended an execution", execution_id=lease.execution_id)
            await self._break(held)
        finally:
            if self._held.get(lease.execution_id) is held:
                del self._held[lease.execution_id]
            self._wakeups.runner()

    async def _begin(self, lease: Lease) -> Sequence[Job]:
        return await running.begin(self._services, lease)

    async def _run_steps(self, held: _Held, jobs: Sequence[Job]) -> None:
        """Run *jobs* and whatever follows from their ends; steps that were stopped are dropped."""
        self._start(held, jobs)
        while held.steps:
            done, _ = await asyncio.wait(held.steps, return_when=asyncio.FIRST_COMPLETED)
            for step in done:
                held.steps.discard(step)
                if not step.cancelled():
                    self._start(held, step.result())

    def _start(self, held: _Held, jobs: Sequence[Job]) -> None:
        for job in jobs:
            if (job.step_name, job.attempt) in held.begun:
                continue
            held.begun.add((job.step_name, job.attempt))
            held.steps.add(asyncio.create_task(self._run_step(held.lease, job)))

    async def _run_step(self, lease: Lease, job: Job) -> Sequence[Job]:
        async def say(stream: str, lines: str) -> None:
            log = running.log_lines
            await self._stored(lambda: log(self._services, lease, job.step_name, stream, lines))

        end = await self._runner.run(job, say)
        return await self._stored(lambda: self._complete(lease, job, end))

    async def _complete(self, lease: Lease, job: Job, end: StepEnd) -> Sequence[Job]:
        return await running.complete_step(
            self._services,
            lease,
            job.step_name,
            end,
            attempt=job.attempt,
            go_on=not self._stopping,
        )

    async def _stored(self, write: Callable[[], Awaitable[R]]) -> R:
        """Repeat *write* while the store cannot write: what happened must not be lost."""
        pause, longest = STORE_RETRY_S
        while True:
            try:
                return await write()
            except StoreUnavailable as refusal:
                log.warning("store unavailable", detail=refusal.detail)
                await asyncio.sleep(pause)
                pause = min(pause * 2, longest)

    def _stop_steps(self, execution_id: str) -> None:
        """Somebody moved the execution from outside: end its steps, but not the caller."""
        held = self._held.get(execution_id)
        if held is None:
            return
        me = asyncio.current_task()
        for step in held.steps:
            if step is not me:
                step.cancel()

    async def _end_steps(self, held: _Held) -> None:
        for step in held.steps:
            step.cancel()
        if held.steps:
            await asyncio.wait(held.steps)

    async def _give_up(self, held: _Held) -> None:
        await self._end_steps(held)
        with suppress(LeaseLost, StoreUnavailable):
            await running.hand_back(self._services, held.lease)

    async def _break(self, held: _Held) -> None:
        """After a defect of ours: FAILED at once. Handed back, it would come again for ever."""
        await self._end_steps(held)
        with suppress(LeaseLost, StoreUnavailable):
            await running.break_off(self._services, held.lease)

    async def _heartbeats(self) -> None:
        while True:
            await asyncio.sleep(HEARTBEAT_S)
            with suppress(StoreUnavailable):
                await self.keep_leases()
