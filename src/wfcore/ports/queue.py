"""The queue of due executions beside the store, and the worker that claims them."""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Protocol

from attrs import frozen

from wfcore.time import DurationMs


@frozen
class DueExecution:
    """
    An execution that a worker with all the capabilities `needs` may claim in *in_ms*. `key`: a new
    key each time that the execution becomes due.
    """

    execution_id: str
    key: str
    in_ms: DurationMs = DurationMs(0)
    needs: tuple[str, ...] = ()


class DueDelivery(Protocol):
    """
    The message that an execution is due. One worker holds the message until that worker settles the
    message or puts it back. A method that cannot reach the queue does nothing: lost and repeated
    messages do no harm.
    """

    @property
    def execution_id(self) -> str:
        """The execution to claim."""

    @property
    def tries(self) -> int:
        """The number of times that the message was delivered, including this one."""

    async def keep(self) -> None:
        """
        Keep the message: the worker is still working on the execution, so no other worker gets the
        message.
        """

    async def settle(self) -> None:
        """Settle the message: the work is done, so the message is never delivered again."""

    async def put_back(self, in_ms: DurationMs) -> None:
        """Deliver the message again, to any worker, in *in_ms*."""


class DispatchQueue(Protocol):
    """
    A queue beside the store that tells workers which executions to claim, and when.

    The store's rows are the truth. A message holds an id, and its worker claims exactly that
    execution, or finds nothing to claim. So messages may be lost, repeated or late. Workers also
    poll the store: seldom while the queue is `up`, otherwise as often as without a queue.
    """

    @property
    def up(self) -> bool:
        """Whether messages go out and arrive, as far as is known."""

    @property
    def keep_s(self) -> float:
        """
        The seconds within which a worker must `keep` each delivery. A delivery that was not kept
        for three times as long is delivered again: its worker counts as gone.
        """

    async def run(self, changed: Callable[[], None]) -> None:
        """
        Connect, and reconnect as needed, until cancelled. *changed* is called after each change of
        `up`.
        """

    async def tell(self, due: Collection[DueExecution]) -> bool:
        """
        Deliver these executions once they are due. Executions with the same key may be delivered
        once. Returns False if a message may be lost, so that workers must poll. A missing
        connection raises nothing.
        """

    async def take(self, limit: int, able: Collection[str] | None = None) -> Sequence[DueDelivery]:
        """
        Wait a moment for deliveries and return them: often none, rarely more than *limit*. *able*:
        as for `Store.claim`; work for other workers may come all the same. With limit 0, `take`
        returns at once and requests no deliveries; deliveries requested before may still come.
        """

    async def gauges(self) -> Mapping[str, float]:
        """
        The figures for the metrics: whether the queue is up, and the number of waiting messages.
        """


class Worker(Protocol):
    """
    Claims due executions and runs their steps.

    If several workers share a store, exactly one worker gets each execution, and no step is begun
    by two workers. The sweep recovers the executions of a worker that died.
    """

    async def run(self) -> None:
        """Claim and run executions until `stop` is called. Every `run` needs a `stop`."""

    async def stop(self, drain_s: float) -> None:
        """
        Stop claiming, give running steps up to *drain_s* seconds to end, then end them.

        On return no step runs and no lease is held. Steps that had not begun are due for other
        workers. An execution whose step was ended by force is INTERRUPTED.
        """
