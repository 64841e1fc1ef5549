"""
The requests of a simulated port to the scheduler: perform a call, or wake the task later.

Code under simulation awaits only ports. Each await therefore ends in one of these requests, and is
a point at which the scheduler may run another task or inject a fault.
"""

from collections.abc import Callable, Generator
from types import coroutine
from typing import Any, Protocol, TypeVar

R = TypeVar("R")


class PortCall:
    """
    A request to perform *apply* in one uninterrupted step and to return the result.

    *writes*: the call changes something durable, so the answer may be lost after the change.
    *store*: the call goes to the store, which may be unavailable.
    """

    __slots__ = ("about", "apply", "name", "store", "writes")

    def __init__(
        self, name: str, about: object, apply: Callable[[], Any], writes: bool, store: bool
    ) -> None:
        self.name = name
        self.about = about
        self.apply = apply
        self.writes = writes
        self.store = store


class Wait:
    """
    A request to continue when *signal* is set or *ms* have passed. None: there is no such limit.
    """

    __slots__ = ("ms", "signal")

    def __init__(self, signal: "Signal | None", ms: int | None) -> None:
        self.signal = signal
        self.ms = ms


Request = PortCall | Wait


class Waiter(Protocol):
    """A task that waits for a signal."""

    def wake(self) -> None:
        """Continue, because the signal was set."""


class Signal:
    """
    A signal that wakes the tasks waiting for it. If no task is waiting, the next task to wait
    returns at once.
    """

    __slots__ = ("on", "waiting")

    def __init__(self) -> None:
        self.on = False
        self.waiting: list[Waiter] = []

    def set(self) -> None:
        """Wake every waiting task."""
        self.on = True
        woken, self.waiting = self.waiting, []
        for one in woken:
            one.wake()

    async def wait(self, ms: int | None) -> None:
        """Return when the signal is set, or after *ms*; then clear the signal."""
        if not self.on:
            await perform(Wait(self, ms))
        self.on = False


@coroutine
def perform(ask: Request) -> Generator[Request, Any, Any]:
    """Pass *ask* to the scheduler and return the scheduler's answer."""
    return (yield ask)


async def sleep(ms: int) -> None:
    """Let *ms* of virtual time pass."""
    await perform(Wait(None, ms))


class SimSchedulingPoint:
    """A `wfcore.memory.Gate` that passes every call to the scheduler."""

    __slots__ = ("_store",)

    def __init__(self, *, store: bool) -> None:
        self._store = store

    async def __call__(
        self, name: str, about: object, apply: Callable[[], R], *, writes: bool = False
    ) -> R:
        """Perform *apply* in one step when the scheduler chooses it; return the result."""
        found: R = await perform(PortCall(name, about, apply, writes, self._store))
        return found
