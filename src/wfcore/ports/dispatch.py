"""The worker that runs due executions, and the hints that save it from polling."""

from collections.abc import Callable
from typing import Protocol


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
        look: Callable[[str], None] | None = None,
    ) -> None:
        """
        Register callbacks for hints: each is called for every hint of its name, in the event loop
        in which `listen` was called. Callbacks return at once and never raise.
        """

    def runner(self) -> None:
        """An execution may be due: claim now."""

    def stop(self, execution_id: str) -> None:
        """The execution was changed from outside: stop whatever runs for it in this process."""

    def look(self, execution_id: str) -> None:
        """The execution has something to do: whichever worker holds it should load it again."""

    def timer(self) -> None:
        """A deadline was set or moved: compute the next due time again."""

    def events(self, execution_id: str) -> None:
        """The execution's event log grew: wake its subscribers."""

    async def rest(self, execution_id: str, timeout_ms: int) -> None:
        """Wait until the execution's event log grows, at most *timeout_ms*."""

    def release(self) -> None:
        """Wake all waiting subscribers, so that they notice that this process is stopping."""


class Worker(Protocol):
    """
    Claims due executions and runs their steps.

    If several workers share a store, exactly one of them gets each execution, and a step that one
    has begun is never begun by another. The executions of a worker that died are recovered by the
    sweep.
    """

    async def run(self) -> None:
        """Claim and run until `stop` is called, which must always happen."""

    async def stop(self, drain_s: float) -> None:
        """
        Stop claiming, give running steps up to *drain_s* seconds to end, then end them.

        On return nothing runs and no lease is held: steps that had not begun are due for other
        workers, and an execution whose step had to be ended is INTERRUPTED.
        """
