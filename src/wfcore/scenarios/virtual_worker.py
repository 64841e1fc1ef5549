"""
A worker without an event loop. The worker is called when work is due, and never waits.

The use cases run over a store that answers at once, so each use case completes in one call. Steps
do not run; the duration and the end of each step are known when the step begins.
"""

from collections.abc import Awaitable, Callable, Iterator
from contextlib import AbstractContextManager
from typing import TypeVar

from attrs import define, field, frozen

from wfcore.errors import LeaseLost
from wfcore.ports.hints import Rest
from wfcore.ports.runtime import Job, StepEnd
from wfcore.time import EpochMs, later
from wfcore.usecases.executions import worker as running
from wfcore.usecases.executions.worker import Lease, Work
from wfcore.usecases.services import Services

R = TypeVar("R")

WORKER = "scenario"


async def at_once(name: str, about: object, apply: Callable[[], R], *, writes: bool = False) -> R:
    """A `SchedulingPoint` that lets every operation through at once."""
    return apply()


def done(work: Awaitable[R]) -> R:
    """The result of *work*, which never suspends because every gate passes at once."""
    try:
        next(work.__await__())
    except StopIteration as end:
        result: R = end.value
        return result
    raise AssertionError("a scenario waits for nothing")


class NotedMoves:
    """A `Wakeup` that records the executions that were changed from outside."""

    def __init__(self) -> None:
        self.moved: set[str] = set()
        self.stopped: set[str] = set()

    def listen(self, **hear: Callable[..., None] | None) -> None:
        """Does nothing: this worker reads the hints between two steps."""

    def runner(self) -> None:
        """Does nothing: this worker polls for due executions."""

    def timer(self) -> None:
        """Does nothing: this worker polls for deadlines."""

    def events(self, execution_id: str) -> None:
        """Does nothing: no task follows an execution in a scenario."""

    def follow(self, execution_id: str) -> AbstractContextManager[Rest]:
        raise AssertionError("a scenario waits for nothing")

    def reload(self, execution_id: str) -> None:
        self.moved.add(execution_id)

    def stop(self, execution_id: str) -> None:
        self.stopped.add(execution_id)

    def release(self) -> None:
        """Does nothing: no task follows an execution in a scenario."""


@frozen
class Ending:
    """The duration and the result of an attempt."""

    takes_ms: int
    end: StepEnd


@frozen
class _Begun:
    ends_at: EpochMs
    end: StepEnd


@define(eq=False)
class _Claimed:
    """A claimed execution."""

    lease: Lease
    steps: dict[tuple[str, int], _Begun] = field(factory=dict)
    started_attempts: set[tuple[str, int]] = field(factory=set)
    due_at: EpochMs | None = None


class VirtualWorker:
    """Does all due work. *begin* is called for each attempt when the attempt begins."""

    def __init__(
        self, services: Services, hints: NotedMoves, begin: Callable[[Job], Ending]
    ) -> None:
        self._services = services
        self._hints = hints
        self._begin = begin
        self._held: dict[str, _Claimed] = {}

    def work(self) -> None:
        """Do everything that is due at this instant, once."""
        services, now = self._services, self._services.clock.service_now()
        for lease in done(running.claim(services, WORKER, services.policy.places)):
            held = self._held[lease.execution_id] = _Claimed(lease)
            self._moved(held, running.begin(services, lease))
        for held in list(self._held.values()):
            self._end_steps(held, now)
            moved = held.lease.execution_id in self._hints.moved
            if moved or (held.due_at is not None and held.due_at <= now):
                self._hints.moved.discard(held.lease.execution_id)
                self._moved(held, running.go_on(services, held.lease, held.started_attempts))
        for id in self._hints.stopped:
            self._held.pop(id, None)
        self._hints.stopped.clear()

    def instants(self) -> Iterator[EpochMs | None]:
        """The next instants at which work is due."""
        yield done(running.next_due(self._services))
        for held in self._held.values():
            yield held.due_at
            yield from (one.ends_at for one in held.steps.values())

    def _moved(self, held: _Claimed, work: Awaitable[Work]) -> None:
        """
        Begin the jobs that *work* returns; drop the execution if its lease is lost or no steps are
        left.
        """
        try:
            todo = done(work)
        except LeaseLost:
            self._held.pop(held.lease.execution_id, None)
            return
        held.steps = {key: one for key, one in held.steps.items() if key[0] in todo.in_flight}
        for job in todo.jobs:
            key = (job.step_name, job.attempt)
            if key not in held.started_attempts:
                held.started_attempts.add(key)
                ending = self._begin(job)
                ends_at = later(self._services.clock.service_now(), ending.takes_ms)
                held.steps[key] = _Begun(ends_at, ending.end)
        held.due_at = todo.due_at
        if not held.steps:
            self._held.pop(held.lease.execution_id, None)

    def _end_steps(self, held: _Claimed, now: EpochMs) -> None:
        for key, one in list(held.steps.items()):
            if one.ends_at <= now and key in held.steps:
                del held.steps[key]
                name, attempt = key
                lease = held.lease
                self._moved(
                    held,
                    running.complete_step(self._services, lease, name, one.end, attempt=attempt),
                )
