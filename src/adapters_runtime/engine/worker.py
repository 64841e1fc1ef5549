"""
The worker: claims due executions, runs their steps, and records what came of them.

Every decision is made in the core. This file only owns tasks: one driver per claimed
execution, and one task per step that is running. Read `_Held` first.

**One execution at a time takes a turn.** Several steps of an execution may run side by side,
and each of their ends is a unit of work that reads the execution, folds a fact into it and
commits. Two such units at once would only make each other `Stale`, so everything that is done
to one execution waits for `held.turn`. What a unit answers (`Work`) is acted upon before the
next unit begins: `_take_up` cancels the steps that are no longer in flight and starts those that
are new.

**A step is started once.** `Work.jobs` may name a step that this process has already started,
because a unit whose answer got lost is simply repeated. `held.met` remembers every attempt that
was taken up and makes the second announcement harmless. An attempt leaves `met` only when it was
postponed: the machine could not start it, nothing of it ran, and the same attempt begins again.

**A lease is kept by writing, and lost by reading.** `keep_leases` extends the leases of all held
executions in one statement. Whatever the store does not confirm has been taken away or was
cancelled elsewhere; its steps are cancelled here, but the driver is not: it finds `LeaseLost` in
its next unit and cleans up. Leases are extended even for executions that are only beginning,
since a slow store may take longer than a lease. When the store cannot write, a step's end is
retried for as long as it takes: the process did its work, and losing that result would mean
running the step again.

**Claimed again while still held.** After a pause longer than a lease, this process may claim an
execution that it still believes to hold. The older lease can no longer write (its fencing number
is too low), so `_take` cancels what runs under it before the new lease begins anything.

**Stopping.** `stop` sets the loop's flag and waits until the current round is over, so no claim is
left half done. Then running steps may finish for as long as the drain allows; an execution between
two steps is handed back; a step that had to be killed is INTERRUPTED by the sweep of whoever is
alive.

The simulator (`wfcore.testing.simulator`) has no event loop, and so a small worker of its own,
alike function by function. Whoever changes one of the two checks the other.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Coroutine, Sequence
from contextlib import suppress
from typing import Any, TypeVar

from attrs import define, evolve, field

from adapters_runtime.engine.dispatching import Looking
from adapters_runtime.engine.loops import Loop
from adapters_runtime.engine.telling import Lines, Told
from adapters_runtime.sandbox.shortage import Shortages
from wfcore.errors import LeaseLost, StoreUnavailable, Unreadable
from wfcore.ports.queue import DispatchQueue
from wfcore.ports.runtime import Job, JobRunner, Say, StepEnd, StepJob
from wfcore.rules.backoff import Backoff
from wfcore.time import EpochMs
from wfcore.usecases.executions import worker as running
from wfcore.usecases.executions.worker import Lease, Work
from wfcore.usecases.services import Services

R = TypeVar("R")
log = logging.getLogger("wfcore.worker")

STORE_BACKOFF = Backoff(first=0.05, longest=2.0)
"""In seconds, while the store cannot write."""


@define(eq=False)
class _Held:
    """
    An execution that this process works on.

    `tasks` run its steps (by the step's key) or look at it (None); `over` is done when there is
    none left, or with what the first one raised. `met`: attempts of steps that were ever taken
    up, so that what is told twice is started once. `turn`: one unit of work at a time, and what
    it says is done before the next one. `logged`: how many rows of output lines were stored
    while steps ran.
    """

    lease: Lease
    over: asyncio.Future[BaseException | None]
    tasks: dict[asyncio.Task[None], str | None] = field(factory=dict)
    met: set[tuple[str, int]] = field(factory=set)
    turn: asyncio.Lock = field(factory=asyncio.Lock)
    looks: bool = False
    logged: int = 0
    alarm: asyncio.TimerHandle | None = None
    driver: asyncio.Task[None] | None = None

    def spawn(
        self, work: Coroutine[Any, Any, None], step: str | None = None
    ) -> "asyncio.Task[None]":
        """Run *work* as a task of this execution."""
        task = asyncio.create_task(work)
        self.tasks[task] = step
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[None]) -> None:
        del self.tasks[task]
        failure = None if task.cancelled() else task.exception()
        if (failure or not self.tasks) and not self.over.done():
            self.over.set_result(failure)


class Worker:
    """
    Runs steps for one process. `worker` must be unique for each start of a process.

    It listens to the `wakeup` of *services*; how often it polls and extends leases is policy.
    `able`: the capabilities of what it takes, see `Store.claim`. While *dispatch* is up, it
    delivers to `take_named`, and `let_go` is told of what is no longer worked on.
    """

    def __init__(
        self,
        services: Services,
        runner: JobRunner,
        worker: str,
        able: Collection[str] | None = None,
        dispatch: DispatchQueue | None = None,
    ) -> None:
        self.worker = worker
        self.able = able
        self._looking = Looking(services.policy, dispatch)
        self.let_go: Callable[[str], None] | None = None
        self._claiming, self._draining = asyncio.Lock(), False
        self._services = services
        self._runner = runner
        self._held: dict[Lease, _Held] = {}
        due = asyncio.Event()
        self.loop = Loop("worker", self._round, due)
        self._enlisted = False
        self._last_taken = self._look_again = 0.0
        self._unseen, self._ended = False, 0
        self._heart: asyncio.Task[None] | None = None
        self.shortages = Shortages()
        services.wakeup.listen(runner=due.set, stop=self._stop_steps, reload=self._look)

    @property
    def running(self) -> int:
        """How many executions are being worked on."""
        return len(self._held)

    @property
    def free(self) -> int:
        """How many more executions it takes now."""
        places = 0 if self._draining or self.loop.stopping else self._services.policy.places
        return max(places - len(self._held), 0)

    async def run(self) -> None:
        """Claim and run until `stop`, which must be called in the end."""
        self._last_taken = asyncio.get_running_loop().time()
        if not self.loop.stopping:
            self._heart = asyncio.create_task(self._heartbeats())
        await self.loop.run()

    def set_draining(self, draining: bool) -> None:
        """Take nothing new, or some again."""
        if self._draining and not draining:
            self.loop.due.set()
        self._draining = draining

    async def stop(self, drain_s: float) -> None:
        """
        Claim nothing more, let running steps end for up to *drain_s*, then end them.

        Executions between two steps are handed back; those whose step had to be ended are
        interrupted. Leases are kept until the last one is settled.
        """
        self.loop.stop()
        await self.loop.at_rest.wait()
        async with self._claiming:  # what was delivered last is claimed, or was not
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

    def trouble(self, bound_s: float) -> str | None:
        """
        Why due executions do not begin here, in words; None: they do, or wait for good reason.

        Work that is older than *bound_s* lies here where nothing was taken for as long although
        less than half of the places are used: no rule of fairness leaves so many free.
        """
        late_s = self.loop.overdue_s(self._services.store.now())
        found = self.loop.trouble(bound_s)
        if found is not None or late_s <= bound_s:
            return found
        idle_s = asyncio.get_running_loop().time() - self._last_taken
        if idle_s <= bound_s or self.running * 2 >= self._services.policy.places:
            return None
        return f"the worker leaves executions that were due {late_s:.0f} s ago"

    async def keep_leases(self) -> None:
        """
        Extend all leases; stop what was taken away (cancelled at another process, say), and
        look at what was moved there (approved, say).

        Also of what is only beginning: while the store is slow that may take as long as a lease.
        """
        mine = {lease.execution_id for lease in self._held}
        if mine:
            kept = await running.heartbeat(self._services, self.worker, mine)
            now = self._services.store.now()
            for execution_id in mine:
                if execution_id not in kept:
                    self._stop_steps(execution_id)
                elif (due := kept[execution_id]) is not None and due <= now:
                    self._look(execution_id)

    async def _round(self) -> float:
        """
        Fill the free places; how long to sleep afterwards, in seconds. What is left was refused by
        the claim, and is tried again later; unless it fell due afterwards, the claim was content
        with what it took, or a place got free meanwhile: then it is claimed at once.
        """
        poll_s = self._services.policy.poll_ms / 1_000
        if not self._enlisted:
            await self._services.store.enlist(self.worker)
            self._enlisted = True
        if self._draining:
            self.loop.oldest_due = None
            return poll_s
        if not self.loop.hinted and not self._is_due():
            # By itself, and nothing is known to be due: one query tells what a claim would find.
            self.loop.oldest_due = await running.next_due(self._services, self.able)
            if not self._is_due():
                due, now = self.loop.oldest_due, self._services.store.now()
                return self._looking.pause_ms(due, EpochMs(0), now) / 1_000
        asked, ended = self._services.store.now(), self._ended
        taken = await self._claimed() if self.free else ()
        time = asyncio.get_running_loop().time()
        self._unseen = not self.free and time < self._look_again  # until a place gets free
        if not self._unseen:
            self._look_again = time + poll_s
            self.loop.oldest_due = await running.next_due(self._services, self.able)
        if self.free and (taken or self._ended != ended):
            asked = EpochMs(0)  # nothing is known to have been refused
        oldest, now = self.loop.oldest_due, self._services.store.now()
        return self._looking.pause_ms(oldest, asked, now) / 1_000

    def _is_due(self) -> bool:
        """Whether the last round saw something that is due now."""
        due = self.loop.oldest_due
        return due is not None and due <= self._services.store.now()

    async def take_named(self, ids: Collection[str]) -> Collection[str]:
        """Claim these and no others, as far as there is room; which of them were claimed."""
        return [lease.execution_id for lease in await self._claimed(ids)]

    async def _claimed(self, ids: Collection[str] | None = None) -> Sequence[Lease]:
        which = {"ids": ids, "able": self.able}
        async with self._claiming:
            if not (free := self.free):
                return ()
            leases = await running.claim(self._services, self.worker, free, **which)
            for lease in leases:
                self._take(lease)
            return leases

    def _forget(self, lease: Lease) -> None:
        was_full = not self.free
        del self._held[lease]
        self._ended += 1
        if self.let_go is not None:
            self.let_go(lease.execution_id)
        due, now = self.loop.oldest_due, self._services.store.now()
        if self._unseen or self._looking.has_more(was_full, due, now):
            self.loop.due.set()

    def _take(self, lease: Lease) -> None:
        self._stop_steps(lease.execution_id)  # what runs for it here has an older lease
        held = _Held(lease, asyncio.get_running_loop().create_future())
        self._held[lease] = held
        self._last_taken = asyncio.get_running_loop().time()
        held.driver = asyncio.create_task(self._drive(held))

    async def _drive(self, held: _Held) -> None:
        """Take one execution as far as it goes, then let go of it."""
        try:
            await self._run_all(held)
        except LeaseLost:
            await self._end_steps(held)
        except asyncio.CancelledError:
            await self._end_steps(held)
            with suppress(LeaseLost, StoreUnavailable, Unreadable):
                await running.hand_back(self._services, held.lease)
            raise
        except Exception:
            about = {"execution_id": held.lease.execution_id}
            log.exception("a defect ended an execution", extra=about)
            await self._break(held)
        finally:
            if held.alarm is not None:
                held.alarm.cancel()
            self._forget(held.lease)

    async def _run_all(self, held: _Held) -> None:
        """Until nothing of it runs here any more. Raises what the first of its tasks raised."""
        self._take_up(held, await self._stored(lambda: running.begin(self._services, held.lease)))
        failure = await held.over if held.tasks else None
        if failure is not None:
            raise failure

    def _take_up(self, held: _Held, work: Work) -> None:
        """End steps that were stopped, start jobs that are new, set the alarm for a look."""
        me = asyncio.current_task()
        for task, step in held.tasks.items():
            if step is not None and step not in work.in_flight and task is not me:
                task.cancel()
        for job in work.jobs:
            attempt = (job.step_name, job.attempt)
            if attempt not in held.met:
                held.met.add(attempt)
                held.spawn(self._run_step(held, job), job.step_name)
        if held.alarm is not None:
            held.alarm.cancel()
            held.alarm = None
        if work.due_at is not None:
            left = max(work.due_at - self._services.store.now(), 0) / 1_000
            later = asyncio.get_running_loop().call_later
            held.alarm = later(left, self._look, held.lease.execution_id)

    async def _run_step(self, held: _Held, job: Job) -> None:
        told = self._told(held, job)
        say = told.say if isinstance(job, StepJob) and not job.monitored else self._say(held, job)
        try:
            end = await self._runner.run(job, say)
        finally:
            told.stop()
        if not end.alone:
            self.shortages.note(type(job).__name__, end.postponed)
        async with held.turn:
            if told.stored:
                await told.store()
            elif lines := told.rest():
                end = evolve(end, lines=lines)
            if end.postponed is not None:
                held.met.discard((job.step_name, job.attempt))  # it begins again as the same one
            self._take_up(held, await self._stored(lambda: self._complete(held.lease, job, end)))

    def _say(self, held: _Held, job: Job) -> Say:
        """Lines become events at once: somebody follows the stream."""
        within: set[str] = set()  # streams whose last lines ended within one

        async def say(stream: str, lines: str) -> None:
            told = self._services, held.lease, job.step_name, stream, lines, job.hidden
            continued = stream in within
            async with held.turn:
                await self._stored(lambda: running.log_lines(*told, continued=continued))
            (within.discard if lines.endswith("\n") else within.add)(stream)

        return say

    def _told(self, held: _Held, job: Job) -> Told:
        """Lines are kept as they come, a second late."""
        within: set[str] = set()

        async def keep(lines: Lines) -> None:
            told = self._services, held.lease, job.step_name, lines, held.logged, job.hidden
            continued = frozenset(within)
            held.logged += await self._stored(
                lambda: running.keep_lines(*told, continued=continued)
            )
            for stream, text in lines:
                (within.discard if text.endswith("\n") else within.add)(stream)

        return Told(keep, held.spawn, held.turn)

    async def _complete(self, lease: Lease, job: Job, end: StepEnd) -> Work:
        return await running.complete_step(
            self._services,
            lease,
            job.step_name,
            end,
            attempt=job.attempt,
            postponed=job.postponed,
            go_on=not self.loop.stopping,
            hidden=job.hidden,
        )

    def _look(self, execution_id: str) -> None:
        """Somebody, or time, moved an execution that is held here: go on with it."""
        for held in self._of(execution_id):
            if held.tasks and not (held.looks or self.loop.stopping):
                held.looks = True
                held.spawn(self._go_on(held))

    async def _go_on(self, held: _Held) -> None:
        async with held.turn:
            held.looks = False
            about = self._services, held.lease, held.met
            self._take_up(held, await self._stored(lambda: running.go_on(*about)))

    async def _stored(self, write: Callable[[], Awaitable[R]]) -> R:
        """Repeat *write* while the store cannot write: what happened must not be lost."""
        tried = 0
        while True:
            tried += 1
            try:
                return await write()
            except StoreUnavailable as refusal:
                log.warning("store unavailable", extra={"detail": refusal.detail})
                await asyncio.sleep(STORE_BACKOFF.wait(tried))

    def _stop_steps(self, execution_id: str) -> None:
        """Somebody moved the execution from outside: end its steps, but not the caller."""
        me = asyncio.current_task()
        for held in self._of(execution_id):
            for task in held.tasks:
                if task is not me:
                    task.cancel()

    def _of(self, execution_id: str) -> list[_Held]:
        """
        What is held of an execution: its lease, and maybe one that it was given up with, of
        which a stopped step is still dying.
        """
        return [one for lease, one in self._held.items() if lease.execution_id == execution_id]

    async def _end_steps(self, held: _Held) -> None:
        for task in (ending := list(held.tasks)):
            task.cancel()
        if ending:
            await asyncio.wait(ending)

    async def _break(self, held: _Held) -> None:
        """After a defect of ours: FAILED at once. Handed back, it would come again for ever."""
        await self._end_steps(held)
        with suppress(LeaseLost, StoreUnavailable, Unreadable):
            await running.break_off(self._services, held.lease)

    async def _heartbeats(self) -> None:
        while True:
            await asyncio.sleep(self._services.policy.heartbeat_ms / 1_000)
            try:
                await self.keep_leases()
            except StoreUnavailable:
                continue
            except Exception:  # the scheduler, which keeps them too, fails with it and is seen
                log.exception("leases were not kept")
