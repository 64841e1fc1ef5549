"""
The scheduler: runs coroutines one step at a time, advances virtual time, and may inject a fault at
each call.

There is no event loop. A task stops at every await of a port; the scheduler chooses the next task,
performs its request, and may let the request fail, delay it, or lose the answer.

The choice is by lot. A task's lots depend only on its label and on how often it has run, so they do
not change when other tasks are left out of the world.
"""

from collections.abc import Callable, Coroutine
from heapq import heappop, heappush
from typing import Any, Protocol
from zlib import crc32

from attrs import frozen

from wfcore.errors import StoreUnavailable, WfError
from wfcore.testing.simulator.calls import PortCall, Request, Signal
from wfcore.testing.simulator.faults import (
    AT_CLAIM,
    AT_COMMIT,
    AT_READ,
    AT_RUN,
    FaultKind,
    FaultSource,
    InjectedFault,
)

MOST_TURNS = 60_000
LOST = StoreUnavailable("the answer was lost")


class Violation(Exception):
    """A broken promise: the result that a simulation searches for."""


class SimProcess(Protocol):
    """A process: a node whose tasks live and die together."""

    @property
    def frozen_until(self) -> int:
        """The instant until which no task of the process continues."""


class WorldFaults(Protocol):
    """Faults that affect more than one task."""

    def strike(self, fault: InjectedFault, task: "Task") -> None:
        """Apply *fault*, which hit a call of *task*."""

    def disturbed(self, fault: InjectedFault, call: PortCall) -> None:
        """Note that *fault* hit *call*."""

    def refuses(self, call: PortCall) -> bool:
        """Whether the store cannot carry out *call* now."""


End = Callable[[Any, WfError | None], None]


class Task:
    """One coroutine, its pending request, and the number of requests that it has made."""

    __slots__ = (
        *("answer", "ask", "calls", "coroutine", "done", "scheduler", "error", "group", "label"),
        *("lot", "met", "on_end", "token"),
    )

    def __init__(
        self,
        scheduler: "WorldScheduler",
        label: str,
        coroutine: Coroutine[Request, Any, Any],
        group: SimProcess | None,
        on_end: End | None,
    ) -> None:
        self.scheduler = scheduler
        self.label = label
        self.coroutine = coroutine
        self.group = group
        self.on_end = on_end
        self.ask: Request | None = None
        self.answer: Any = None
        self.error: WfError | None = None
        self.calls = 0
        self.lot = 0
        self.token = 0
        self.met = False
        self.done = False

    def wake(self) -> None:
        """Make the task ready: the signal that it waits for was set."""
        if not self.done:
            self.token += 1
            self.ask = None
            self.scheduler.ready.append(self)


@frozen
class TurnOrder:
    """
    The order of tasks that are ready at the same time. With `seed` 0 the task that has waited
    longest runs next. Otherwise the task with the lowest lot runs next, and draws a new lot.
    `levels` is the number of different lots: a few mix the turns finely; with many, a task may wait
    for long.
    """

    seed: int = 0
    levels: int = 2


class WorldScheduler:
    """Runs tasks in virtual milliseconds from 0. *tick*: how long one call takes."""

    def __init__(
        self, chance: FaultSource, order: TurnOrder, tick: int, trace: list[str] | None = None
    ) -> None:
        self.chance = chance
        self._order = order
        self.now = 0
        self.turns = 0
        self.ready: list[Task] = []
        self.current: Task | None = None
        self.abrupt: WorldFaults | None = None
        self.trace = trace
        self._tasks: dict[Task, None] = {}
        self._tick = tick
        self._timers: list[tuple[int, int, int, Task]] = []
        self._parked = 0

    def say(self, text: str) -> None:
        """Add a line to the trace."""
        if self.trace is not None:
            self.trace.append(f"{self.now:>9,}  {text}")

    def spawn(
        self,
        label: str,
        coroutine: Coroutine[Request, Any, Any],
        group: SimProcess | None = None,
        on_end: End | None = None,
    ) -> Task:
        """Run *coroutine* beside the other tasks. *on_end* gets its result or its refusal."""
        task = Task(self, label, coroutine, group, on_end)
        self._tasks[task] = None
        if self._order.seed:
            task.lot = crc32(label.encode(), self._order.seed)
        self.ready.append(task)
        return task

    def drop(self, task: Task) -> None:
        """End *task* at once. The pending request of *task* is not performed."""
        if task is self.current or task.done:
            return
        task.done = True
        del self._tasks[task]
        task.coroutine.close()

    def close(self) -> None:
        """End all remaining tasks."""
        self.current = None
        for task in list(self._tasks):
            self.drop(task)

    def run(self, over: Callable[[], bool]) -> None:
        """Run the tasks until none is ready and either *over* returns true or no timer is left."""
        while True:
            self._ring()
            if not self.ready:
                if over() or not self._timers:
                    return
                self.now = max(self.now, self._timers[0][0])
                continue
            self._turn()

    def _ring(self) -> None:
        """Make the tasks ready whose time has come."""
        timers = self._timers
        while timers and timers[0][0] <= self.now:
            _, _, token, task = heappop(timers)
            if task.done or task.token != token:
                continue
            ask = task.ask
            if ask is not None and not isinstance(ask, PortCall):
                if ask.signal is not None:
                    ask.signal.waiting.remove(task)
                task.ask = None
            self.ready.append(task)

    def _turn(self) -> None:
        task = self._next()
        if task.done:
            return
        self.turns += 1
        if self.turns > MOST_TURNS:
            raise Violation(f"no end: {MOST_TURNS} turns, and still somebody runs")
        if task.group is not None and task.group.frozen_until > self.now:
            self._park(task, task.group.frozen_until)
        elif isinstance(task.ask, PortCall):
            self._carry_out(task, task.ask)
        else:
            self._resume(task)

    def _next(self) -> Task:
        """The next task: the task with the lowest lot, or the task that has waited longest."""
        ready, order = self.ready, self._order
        if not order.seed:
            return ready.pop(0)
        best, lowest = 0, order.levels
        for at, task in enumerate(ready):
            if task.lot % order.levels < lowest:
                best, lowest = at, task.lot % order.levels
        task = ready.pop(best)
        task.lot = (task.lot * 6_364_136_223_846_793_005 + 1_442_695_040_888_963_407) >> 16
        task.lot &= 0xFFFFFFFF
        return task

    def _carry_out(self, task: Task, call: PortCall) -> None:
        if not task.met:
            task.calls += 1
            if task.group is not None and self._met(task, call):
                return
        task.met = False
        self.now += self._tick
        abrupt = self.abrupt
        if call.store and abrupt is not None and abrupt.refuses(call):
            task.error = StoreUnavailable("the store is down")
            self._resume(task)
            return
        self.current = task
        try:
            task.answer = call.apply()
        except WfError as refusal:
            task.error = refusal
        self.current = None
        if self.trace is not None and call.writes:
            self.say(f"{task.label}: {call.name} {call.about}{_shown(task)}")
        if call.writes:
            task.ask = None
            self.ready.append(task)
        else:
            self._resume(task)

    def _met(self, task: Task, call: PortCall) -> bool:
        """Whether a fault hit *call* and took this turn."""
        fault = self.chance.fault(task.label, task.calls, _possible(call))
        if fault is None:
            return False
        if self.trace is not None:
            self.say(f"{task.label}#{task.calls}: {call.name} meets: {fault}")
        assert self.abrupt is not None
        self.abrupt.disturbed(fault, call)
        match fault.kind:
            case FaultKind.FAIL:
                task.error = StoreUnavailable("the store refused")
                self._resume(task)
                return True
            case FaultKind.LOSE | FaultKind.LOSE_CLAIM:
                self._apply_unheard(task, call)
                task.error = task.error or LOST
                task.ask = None
                self.ready.append(task)
                return True
            case FaultKind.DELAY:
                task.met = True
                self._park(task, self.now + fault.amount)
                return True
            case FaultKind.CRASH_AFTER:
                self._apply_unheard(task, call)
        self.abrupt.strike(fault, task)
        task.met = True
        if not task.done:
            self.ready.append(task)
        return True

    def _apply_unheard(self, task: Task, call: PortCall) -> None:
        """Perform *call* and lose the answer."""
        if self.abrupt is not None and call.store and self.abrupt.refuses(call):
            task.error = StoreUnavailable("the store is down")
            return
        self.current = task
        try:
            call.apply()
        except WfError as refusal:
            task.error = refusal
        self.current = None

    def _resume(self, task: Task) -> None:
        """Run *task* with its answer until its next request."""
        error, answer, task.error, task.answer = task.error, task.answer, None, None
        self.current = task
        try:
            if error is not None:
                task.ask = task.coroutine.throw(error)
            else:
                task.ask = task.coroutine.send(answer)
        except StopIteration as end:
            self._end(task, end.value, None)
            return
        except WfError as refusal:
            self._end(task, None, refusal)
            return
        finally:
            self.current = None
        ask = task.ask
        if isinstance(ask, PortCall):
            self.ready.append(task)
            return
        if ask.signal is not None:
            ask.signal.waiting.append(task)
        if ask.ms is not None:
            self._park(task, self.now + max(ask.ms, 0))

    def _end(self, task: Task, result: Any, refusal: WfError | None) -> None:
        task.done = True
        del self._tasks[task]
        if task.on_end is not None:
            task.on_end(result, refusal)
        elif refusal is not None:
            raise Violation(f"defect: {task.label} ended with {refusal!r}")

    def _park(self, task: Task, until: int) -> None:
        self._parked += 1
        heappush(self._timers, (until, self._parked, task.token, task))


def at_once(work: Coroutine[Request, Any, Any]) -> Any:
    """The result of *work*, performed without other tasks and without faults."""
    answer: Any = None
    while True:
        try:
            ask = work.send(answer)
        except StopIteration as end:
            return end.value
        assert isinstance(ask, PortCall), "nothing else may be waited for here"
        answer = ask.apply()


class Mailbox:
    """A mailbox for the result of a task."""

    def __init__(self) -> None:
        self.result: Any = None
        self.refusal: WfError | None = None
        self._posted = Signal()

    def post(self, result: Any, refusal: WfError | None) -> None:
        """Deliver the result, or the refusal, of the task."""
        self.result, self.refusal = result, refusal
        self._posted.set()

    async def read(self) -> Any:
        """Wait for the result and return it. Raises the refusal."""
        await self._posted.wait(None)
        if self.refusal is not None:
            raise self.refusal
        return self.result


def _possible(call: PortCall) -> frozenset[FaultKind]:
    """The faults that *call* may meet."""
    if not call.store:
        return AT_RUN
    if not call.writes:
        return AT_READ
    return AT_COMMIT if call.name == "commit" else AT_CLAIM


def _shown(task: Task) -> str:
    return f" -> {task.error!r}" if task.error is not None else ""
