"""Hints that something changed: within a process, and between the processes on one store."""

from collections.abc import Awaitable, Callable, Collection
from contextlib import AbstractContextManager
from enum import StrEnum
from typing import Protocol, TypeAlias

from attrs import frozen

Rest: TypeAlias = Callable[[int], Awaitable[None]]
"""Wait until something was told since the last call returned, at most so many milliseconds."""


class Wakeup(Protocol):
    """
    Hints sent after a commit to all listeners. A lost hint costs a polling delay, never work.

    An implementation that spans processes passes the hints of the others to its own listeners.
    """

    def listen(
        self,
        *,
        runner: Callable[[], None] | None = None,
        timer: Callable[[], None] | None = None,
        stop: Callable[[str], None] | None = None,
        reload: Callable[[str], None] | None = None,
    ) -> None:
        """
        Register callbacks for hints: each is called for every hint of its name, in the event loop
        in which `listen` was called. Callbacks return at once and never raise.
        """

    def runner(self) -> None:
        """An execution is due, now or later: claim, and compute the next due time again."""

    def stop(self, execution_id: str) -> None:
        """The execution was changed from outside: stop whatever runs for it in this process."""

    def reload(self, execution_id: str) -> None:
        """The execution has something to do: whichever worker holds it should load it again."""

    def timer(self) -> None:
        """The deadline of something else was set or moved: compute the next one again."""

    def events(self, execution_id: str) -> None:
        """The execution's event log grew: wake its subscribers."""

    def follow(self, execution_id: str) -> AbstractContextManager[Rest]:
        """
        Subscribe to the execution's event log while the context is open. Whoever follows, looks,
        and then rests misses nothing: what was told during the look ends the rest at once.
        """

    def release(self) -> None:
        """Wake all subscribers, so that they notice that this process is stopping."""


class HintKind(StrEnum):
    """What a process is told to look at. The first two concern no particular execution."""

    DUE = "due"
    TIMER = "timer"
    RELOAD = "reload"
    EVENTS = "events"


@frozen
class Hint:
    """One hint between processes; `execution_id` is empty where the kind needs none."""

    kind: HintKind
    execution_id: str = ""


class Hints(Protocol):
    """
    How the processes on one store tell each other where to look: kinds and ids, never contents.

    Hints may be lost, repeated and late, so a listener only ever looks into the store.
    """

    async def tell(self, hints: Collection[Hint]) -> None:
        """Send *hints* to all other processes. What cannot be sent is lost; nothing is raised."""

    async def hear(self, heard: Callable[[Hint], None]) -> None:
        """
        Call *heard* for each hint of other processes until cancelled. A lost connection is made
        again; what was told meanwhile is lost.
        """
