"""
What a port of the simulator asks its driver: to carry something out, or to be woken later.

Code under simulation awaits ports and nothing else, so every await of it ends in one of these
and is a moment at which the driver may run somebody else, or let something go wrong.
"""

from collections.abc import Callable, Generator
from types import coroutine
from typing import Any, Protocol, TypeVar

R = TypeVar("R")


class Call:
    """
    Carry out *apply*, one step that nothing interrupts, and answer with what it returns.

    *writes*: something lasting changes, so the answer can get lost after it was done. *store*:
    it travels to the store, which may be down.
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
    """Go on when *signal* is set, or after *ms* (None: whenever it is set)."""

    __slots__ = ("ms", "signal")

    def __init__(self, signal: "Signal | None", ms: int | None) -> None:
        self.signal = signal
        self.ms = ms


Ask = Call | Wait


class Woken(Protocol):
    """Who waits for a signal."""

    def wake(self) -> None:
        """The signal was set."""


class Signal:
    """Wakes who waits for it; set while nobody does, the next one does not wait."""

    __slots__ = ("on", "waiting")

    def __init__(self) -> None:
        self.on = False
        self.waiting: list[Woken] = []

    def set(self) -> None:
        """Wake everybody who waits."""
        self.on = True
        woken, self.waiting = self.waiting, []
        for one in woken:
            one.wake()

    async def wait(self, ms: int | None) -> None:
        """Return when it is set, or after *ms*; it is clear afterwards."""
        if not self.on:
            await asked(Wait(self, ms))
        self.on = False


@coroutine
def asked(ask: Ask) -> Generator[Ask, Any, Any]:
    """Hand *ask* to the driver; its answer."""
    return (yield ask)


async def sleep(ms: int) -> None:
    """Let *ms* of virtual time pass."""
    await asked(Wait(None, ms))


class DriverGate:
    """A `wfcore.memory.Gate`: every passage is asked of the driver."""

    __slots__ = ("_store",)

    def __init__(self, *, store: bool) -> None:
        self._store = store

    async def __call__(
        self, name: str, about: object, apply: Callable[[], R], *, writes: bool = False
    ) -> R:
        """Carry out *apply* in one step, when its turn comes; its result."""
        found: R = await asked(Call(name, about, apply, writes, self._store))
        return found
