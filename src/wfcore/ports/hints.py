"""Hints that something changed: within a process, and between the processes on one store."""

from collections.abc import Awaitable, Callable, Collection
from contextlib import AbstractContextManager
from enum import StrEnum
from typing import Protocol, TypeAlias

from attrs import frozen

Rest: TypeAlias = Callable[[int], Awaitable[None]]
"""Waits for an event after the last call returned, at most the given number of milliseconds."""


class Wakeup(Protocol):
    """
    Hints sent after a commit to all listeners. A lost hint costs a polling delay, never work.

    An implementation that spans processes passes the hints of other processes to its listeners.
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
        """
        An execution is due, now or later: claim due executions, and compute the next due time
        again.
        """

    def stop(self, execution_id: str) -> None:
        """The execution was changed from outside: stop its steps in this process."""

    def reload(self, execution_id: str) -> None:
        """The execution has work to do: its worker loads the execution again."""

    def timer(self) -> None:
        """A deadline outside executions was set or moved: compute the next deadline again."""

    def events(self, execution_id: str) -> None:
        """The execution's event log grew: wake its subscribers."""

    def follow(self, execution_id: str) -> AbstractContextManager[Rest]:
        """
        Subscribe to the execution's event log while the context is open. A subscriber that reads
        first and then waits misses nothing: an event during the read ends the wait at once.
        """

    def release(self) -> None:
        """Wake all subscribers, so that each notices that this process is stopping."""


class HintKind(StrEnum):
    """The kinds of hints. DUE and TIMER name no particular execution."""

    DUE = "due"
    TIMER = "timer"
    RELOAD = "reload"
    EVENTS = "events"


@frozen
class Hint:
    """A hint between processes. `execution_id` is empty for kinds that name no execution."""

    kind: HintKind
    execution_id: str = ""


class Hints(Protocol):
    """
    The hints between the processes on one store: kinds and ids, never contents.

    Hints may be lost, repeated and late, so a listener acts only on data that it reads from the
    store.
    """

    async def tell(self, hints: Collection[Hint]) -> None:
        """
        Send *hints* to all other processes. Hints that cannot be sent are lost without an error.
        """

    async def hear(self, heard: Callable[[Hint], None]) -> None:
        """
        Call *heard* for each hint of other processes until cancelled. A lost connection is opened
        again; hints sent in the meantime are lost.
        """
