"""Who takes due executions and runs their steps, and the hints that save it a look."""

from collections.abc import Callable
from typing import Protocol


class Wakeup(Protocol):
    """
    Hints after commit, for whoever listens. Losing one costs a polling delay, never work.

    One that spans processes brings the hints of the others to those who listen here.
    """

    def listen(
        self,
        *,
        runner: Callable[[], None] | None = None,
        timer: Callable[[], None] | None = None,
        stop: Callable[[str], None] | None = None,
        look: Callable[[str], None] | None = None,
    ) -> None:
        """
        From now on each of these is called at every hint of its name, in the event loop that
        listens. They return at once and never raise.
        """

    def runner(self) -> None:
        """Something may be due: look now."""

    def stop(self, execution_id: str) -> None:
        """That execution was moved from outside: stop what runs for it here."""

    def look(self, execution_id: str) -> None:
        """There is something to do in that execution: whoever holds it here looks again."""

    def timer(self) -> None:
        """A deadline was set or moved: reconsider when to look next."""

    def events(self, execution_id: str) -> None:
        """The execution's log grew: wake those who follow it."""

    async def rest(self, execution_id: str, timeout_ms: int) -> None:
        """Return when the execution's log grew, or after *timeout_ms*."""

    def release(self) -> None:
        """Wake all who rest: they look again, and find that this process ends."""


class Worker(Protocol):
    """
    Takes due executions and runs their steps, for one worker.

    Of several dispatchers on one store exactly one gets each execution, and a step that one
    has begun is begun by no other. A worker that dies leaves its executions to the sweep.
    """

    async def run(self) -> None:
        """Claim and run until `stop`, which must be called in the end."""

    async def stop(self, drain_s: float) -> None:
        """
        Claim nothing more, let running steps end for up to *drain_s*, then end them.

        On return nothing runs any more, and nothing is held: what had not begun is due for
        others, and an execution whose step had to be ended is INTERRUPTED.
        """
