"""
The worker: claims due executions, runs their steps, and records the results.

The core makes every decision. This file only owns tasks: one driver for each claimed execution, and
one task for each running step. Read `_Held` first.

**An execution has one unit of work at a time.** Several steps of an execution may run in parallel,
and each of their ends is a unit of work that reads the execution, folds a fact into it and commits.
Two such units at once would only make each other `Stale`, so every unit of an execution waits for
`held.turn`. The result of a unit (`Work`) is applied before the next unit begins: `_apply` cancels
the steps that are no longer in flight and starts the new ones.

**A step is started once.** `Work.jobs` may name a step that this process has already started,
because a unit whose answer got lost is simply repeated. `held.started_attempts` holds every attempt
that was started, so that the repetition does no harm. An attempt is removed only when it was
postponed: the machine could not start it, none of it ran, and the same attempt begins again.

**A lease is kept by writing, and lost by reading.** `keep_leases` extends the leases of all held
executions in one statement. An execution that the store does not confirm was taken away or
cancelled by another process. Its steps are cancelled here, but its driver is not: the driver finds
`LeaseLost` in its next unit and cleans up. Leases are extended even for executions that are only
beginning, since a slow store may take longer than a lease. When the store cannot write, a step's
end is retried for as long as it takes: the step did its work, and without that result it would run
again.

**Claimed again while still held.** After a pause longer than a lease, this process may claim an
execution that it still holds. The older lease can no longer write (its fencing number is too low),
so `_take` cancels what runs under it before the new lease begins anything.

**Stopping.** `stop` sets the loop's flag and waits for the end of the current round, so that no
claim is left half done. Running steps then have the time of the drain to finish. An execution
between two steps is handed back. A step that had to be killed becomes INTERRUPTED by the sweep of a
process that is alive.

The simulator (`wfcore.testing.simulator`) has no event loop, and so a small worker of its own, with
the same functions. A change of one worker needs a check of the other.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Coroutine, Sequence
from contextlib import suppress
from typing import Any, TypeVar

from attrs import define, evolve, field

from adapters_runtime.engine.dispatching import PollSchedule
from adapters_runtime.engine.live_lines import Lines, LiveLines
from adapters_runtime.engine.loops import Loop
from adapters_runtime.sandbox.shortage import Shortages
from wfcore.errors import LeaseLost, StoreUnavailable, Unreadable
from wfcore.ports.queue import DispatchQueue
from wfcore.ports.runtime import Job, JobRunner, Say, StepEnd, StepJob
from wfcore.rules.backoff import Backoff
from wfcore.time import EpochMs
from wfcore.usecases.executions import worker as worker_usecases
from wfcore.usecases.executions.worker import Lease, Work
from wfcore.usecases.services import Services

R = TypeVar("R")
log = logging.getLogger("wfcore.worker")

STORE_BACKOFF = Backoff(first=0.05, longest=2.0)
"""The seconds before a write is repeated while the store cannot write."""


@define(eq=False)
class _Held:
    """
    An execution that this process works on.

    `tasks` run its steps, by key, or reload it (None). `ended` is done when no task is left, or
    with the error of the first task that raised. `started_attempts`: all attempts that were
    started, so that no attempt is started twice. `turn` admits one unit of work at a time, whose
    result is applied before the next one. `logged`: how many rows of output lines were stored while
    steps ran.
    """

    lease: Lease
    ended: asyncio.Future[BaseException | None]
    tasks: dict[asyncio.Task[None], str | None] = field(factory=dict)
    started_attempts: set[tuple[str, int]] = field(factory=set)
    turn: asyncio.Lock = field(factory=asyncio.Lock)
    reloads: bool = False
    logged: int = 0
    alarm: asyncio.TimerHandle | None = None
    driver: asyncio.Task[None] | None = None

    def spawn(
        self, work: Coroutine[Any, Any, None], step: str | None = None
    ) -> "asyncio.Task[None]":
        """Run *work* as a task of this execution."""
        task = asyncio.create_task(work)
        self.tasks[task] = step
        task.add_done_callback(self._on_end)
        return task

    def _on_end(self, task: asyncio.Task[None]) -> None:
        del self.tasks[task]
        failure = None if task.cancelled() else task.exception()
        if (failure or not self.tasks) and not self.ended.done():
            self.ended.set_result(failure)


class Worker:
    """
    Runs steps for one process. *worker* must be unique for each start of a process.

    The worker listens to the `wakeup` of *services*, whose policy says how often it polls and
    extends leases. *able*: the capabilities of the executions to claim, see `Store.claim`. While
    *dispatch* is up, its deliveries go to `take_named`, and `on_release` is called with the id of
    each execution that the worker has released.
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
        self._polls = PollSchedule(services.policy, dispatch)
        self.on_release: Callable[[str], None] | None = None
        self._claiming, self._draining = asyncio.Lock(), False
        self._services = services
        self._runner = runner
        self._held: dict[Lease, _Held] = {}
        due = asyncio.Event()
        self.loop = Loop("worker", self._round, due)
        self._enlisted = False
        self._last_taken = self._poll_again_at = 0.0
        self._unseen, self._ended = False, 0
        self._heart: asyncio.Task[None] | None = None
        self.shortages = Shortages()
        services.wakeup.listen(runner=due.set, stop=self._stop_steps, reload=self._reload)

    @property
    def running(self) -> int:
        """How many executions this process works on."""
        return len(self._held)

    @property
    def free(self) -> int:
        """How many more executions this process takes now."""
        places = 0 if self._draining or self.loop.stopping else self._services.policy.places
        return max(places - len(self._held), 0)

    async def run(self) -> None:
        """Claim and run executions until `stop`, which must be called in the end."""
        self._last_taken = asyncio.get_running_loop().time()
        if not self.loop.stopping:
            self._heart = asyncio.create_task(self._heartbeats())
        await self.loop.run()

    def set_draining(self, draining: bool) -> None:
        """Take no more executions if *draining*, else take some again."""
        if self._draining and not draining:
            self.loop.due.set()
        self._draining = draining

    async def stop(self, drain_s: float) -> None:
        """
        Claim nothing more, let running steps end for up to *drain_s*, then kill them.

        Executions between two steps are handed back; executions with a killed step are interrupted.
        Leases are kept until the last execution is released.
        """
        self.loop.stop()
        await self.loop.at_rest.wait()
        async with self._claiming:  # the last delivery is claimed or refused
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
        Why due executions do not begin here, or None if they do, or wait for a good reason.

        Executions due for longer than *bound_s* count as left here if no execution was taken for as
        long although less than half of the places are used: no rule of fairness leaves so many
        free.
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
        Extend the leases of all held executions.

        Steps of an execution that was taken away (cancelled by another process, say) are cancelled;
        an execution that another process changed (approved, say) is reloaded. Leases of executions
        that are only beginning are extended, too: with a slow store a beginning may take as long as
        a lease.
        """
        mine = {lease.execution_id for lease in self._held}
        if mine:
            kept = await worker_usecases.heartbeat(self._services, self.worker, mine)
            now = self._services.store.now()
            for execution_id in mine:
                if execution_id not in kept:
                    self._stop_steps(execution_id)
                elif (due := kept[execution_id]) is not None and due <= now:
                    self._reload(execution_id)

    async def _round(self) -> float:
        """
        Fill the free places; returns how many seconds to sleep.

        If a due execution is left, the claim has refused the execution, and the next claim is
        later. The next claim is at once if the execution became due after the claim, if the claim
        took other executions and left free places, or if a place became free meanwhile.
        """
        poll_s = self._services.policy.poll_ms / 1_000
        if not self._enlisted:
            await self._services.store.enlist(self.worker)
            self._enlisted = True
        if self._draining:
            self.loop.oldest_due = None
            return poll_s
        if not self.loop.hinted and not self._is_due():
            # No hint, and no due work known: a query shows whether a claim would find any.
            self.loop.oldest_due = await worker_usecases.next_due(self._services, self.able)
            if not self._is_due():
                due, now = self.loop.oldest_due, self._services.store.now()
                return self._polls.pause_ms(due, EpochMs(0), now) / 1_000
        claimed_at, ended = self._services.store.now(), self._ended
        taken = await self._claimed() if self.free else ()
        time = asyncio.get_running_loop().time()
        self._unseen = not self.free and time < self._poll_again_at  # until a place is free
        if not self._unseen:
            self._poll_again_at = time + poll_s
            self.loop.oldest_due = await worker_usecases.next_due(self._services, self.able)
        if self.free and (taken or self._ended != ended):
            claimed_at = EpochMs(0)  # nothing is known to have been refused
        oldest, now = self.loop.oldest_due, self._services.store.now()
        return self._polls.pause_ms(oldest, claimed_at, now) / 1_000

    def _is_due(self) -> bool:
        """Whether the oldest work of the last round is due now."""
        due = self.loop.oldest_due
        return due is not None and due <= self._services.store.now()

    async def take_named(self, ids: Collection[str]) -> Collection[str]:
        """
        Claim executions of *ids*, as many as places are free; returns the ids of the claimed
        executions.
        """
        return [lease.execution_id for lease in await self._claimed(ids)]

    async def _claimed(self, ids: Collection[str] | None = None) -> Sequence[Lease]:
        which = {"ids": ids, "able": self.able}
        async with self._claiming:
            if not (free := self.free):
                return ()
            leases = await worker_usecases.claim(self._services, self.worker, free, **which)
            for lease in leases:
                self._take(lease)
            return leases

    def _forget(self, lease: Lease) -> None:
        was_full = not self.free
        del self._held[lease]
        self._ended += 1
        if self.on_release is not None:
            self.on_release(lease.execution_id)
        due, now = self.loop.oldest_due, self._services.store.now()
        if self._unseen or self._polls.has_more(was_full, due, now):
            self.loop.due.set()

    def _take(self, lease: Lease) -> None:
        self._stop_steps(lease.execution_id)  # whatever runs for it here has an older lease
        held = _Held(lease, asyncio.get_running_loop().create_future())
        self._held[lease] = held
        self._last_taken = asyncio.get_running_loop().time()
        held.driver = asyncio.create_task(self._drive(held))

    async def _drive(self, held: _Held) -> None:
        """Run one execution as far as possible, then release it."""
        try:
            await self._run_all(held)
        except LeaseLost:
            await self._end_steps(held)
        except asyncio.CancelledError:
            await self._end_steps(held)
            with suppress(LeaseLost, StoreUnavailable, Unreadable):
                await worker_usecases.hand_back(self._services, held.lease)
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
        """
        Run until no task of the execution is left. Raises the error of the first task that failed.
        """
        services, lease = self._services, held.lease
        self._apply(held, await self._stored(lambda: worker_usecases.begin(services, lease)))
        failure = await held.ended if held.tasks else None
        if failure is not None:
            raise failure

    def _apply(self, held: _Held, work: Work) -> None:
        """Cancel steps that are no longer in flight, start new jobs, set the alarm to reload."""
        me = asyncio.current_task()
        for task, step in held.tasks.items():
            if step is not None and step not in work.in_flight and task is not me:
                task.cancel()
        for job in work.jobs:
            attempt = (job.step_name, job.attempt)
            if attempt not in held.started_attempts:
                held.started_attempts.add(attempt)
                held.spawn(self._run_step(held, job), job.step_name)
        if held.alarm is not None:
            held.alarm.cancel()
            held.alarm = None
        if work.due_at is not None:
            left = max(work.due_at - self._services.store.now(), 0) / 1_000
            later = asyncio.get_running_loop().call_later
            held.alarm = later(left, self._reload, held.lease.execution_id)

    async def _run_step(self, held: _Held, job: Job) -> None:
        live = self._live_lines(held, job)
        say = live.say if isinstance(job, StepJob) and not job.monitored else self._say(held, job)
        try:
            end = await self._runner.run(job, say)
        finally:
            live.stop()
        if not end.alone:
            self.shortages.note(type(job).__name__, end.postponed)
        async with held.turn:
            if live.stored:
                await live.store()
            elif lines := live.rest():
                end = evolve(end, lines=lines)
            if end.postponed is not None:  # the same attempt begins again
                held.started_attempts.discard((job.step_name, job.attempt))
            self._apply(held, await self._stored(lambda: self._complete(held.lease, job, end)))

    def _say(self, held: _Held, job: Job) -> Say:
        """A `Say` that stores lines as events at once, for a monitored step."""
        unfinished: set[str] = set()  # streams whose last line has no end yet

        async def say(stream: str, lines: str) -> None:
            row = self._services, held.lease, job.step_name, stream, lines, job.hidden
            continued = stream in unfinished
            async with held.turn:
                await self._stored(lambda: worker_usecases.log_lines(*row, continued=continued))
            (unfinished.discard if lines.endswith("\n") else unfinished.add)(stream)

        return say

    def _live_lines(self, held: _Held, job: Job) -> LiveLines:
        """The lines of a step, which are stored within a second."""
        unfinished: set[str] = set()

        async def keep(lines: Lines) -> None:
            rows = self._services, held.lease, job.step_name, lines, held.logged, job.hidden
            continued = frozenset(unfinished)
            held.logged += await self._stored(
                lambda: worker_usecases.keep_lines(*rows, continued=continued)
            )
            for stream, text in lines:
                (unfinished.discard if text.endswith("\n") else unfinished.add)(stream)

        return LiveLines(keep, held.spawn, held.turn)

    async def _complete(self, lease: Lease, job: Job, end: StepEnd) -> Work:
        return await worker_usecases.complete_step(
            self._services,
            lease,
            job.step_name,
            end,
            attempt=job.attempt,
            postponed=job.postponed,
            go_on=not self.loop.stopping,
            hidden=job.hidden,
        )

    def _reload(self, execution_id: str) -> None:
        """Reload a held execution that another process or a deadline changed, and continue it."""
        for held in self._of(execution_id):
            if held.tasks and not (held.reloads or self.loop.stopping):
                held.reloads = True
                held.spawn(self._go_on(held))

    async def _go_on(self, held: _Held) -> None:
        async with held.turn:
            held.reloads = False
            about = self._services, held.lease, held.started_attempts
            self._apply(held, await self._stored(lambda: worker_usecases.go_on(*about)))

    async def _stored(self, write: Callable[[], Awaitable[R]]) -> R:
        """Call *write*, and again while the store cannot write, so that no result is lost."""
        tried = 0
        while True:
            tried += 1
            try:
                return await write()
            except StoreUnavailable as refusal:
                log.warning("store unavailable", extra={"detail": refusal.detail})
                await asyncio.sleep(STORE_BACKOFF.wait(tried))

    def _stop_steps(self, execution_id: str) -> None:
        """Cancel all tasks of an execution that was changed from outside, except the caller's."""
        me = asyncio.current_task()
        for held in self._of(execution_id):
            for task in held.tasks:
                if task is not me:
                    task.cancel()

    def _of(self, execution_id: str) -> list[_Held]:
        """
        The held leases of an execution: the present one, and perhaps an older one with a cancelled
        step that has not ended yet.
        """
        return [one for lease, one in self._held.items() if lease.execution_id == execution_id]

    async def _end_steps(self, held: _Held) -> None:
        for task in (ending := list(held.tasks)):
            task.cancel()
        if ending:
            await asyncio.wait(ending)

    async def _break(self, held: _Held) -> None:
        """
        Fail the execution after a defect of ours. If handed back, the execution would fail again
        for ever.
        """
        await self._end_steps(held)
        with suppress(LeaseLost, StoreUnavailable, Unreadable):
            await worker_usecases.break_off(self._services, held.lease)

    async def _heartbeats(self) -> None:
        while True:
            await asyncio.sleep(self._services.policy.heartbeat_ms / 1_000)
            try:
                await self.keep_leases()
            except StoreUnavailable:
                continue
            except Exception:  # the scheduler, which keeps them too, fails as well and reports it
                log.exception("leases were not kept")
