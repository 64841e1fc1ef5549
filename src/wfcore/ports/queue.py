"""The queue of due executions beside the store, and the worker that claims them."""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Protocol

from attrs import frozen

from wfcore.time import DurationMs


@frozen
class DueExecution:
    """
    An execution that a worker with all the capabilities `needs` may claim in *in_ms*. `key`: a new
    one each time that the execution becomes due.
    """

    execution_id: str
    key: str
    in_ms: DurationMs = DurationMs(0)
    needs: tuple[str, ...] = ()


class DueDelivery(Protocol):
    """
    The message that an execution is due, held by one worker until the worker settles it or puts it
    back. A method that cannot reach the queue does nothing: lost and repeated messages do no harm.
    """

    @property
    def execution_id(self) -> str:
        """The execution to claim."""

    @property
    def tries(self) -> int:
        """How often the message was delivered, this time included."""

    async def keep(self) -> None:
        """The worker still works on it: do not deliver it to anybody else."""

    async def settle(self) -> None:
        """The work is done: never deliver the message again."""

    async def put_back(self, in_ms: DurationMs) -> None:
        """Deliver the message again, to any worker, in *in_ms*."""


class DispatchQueue(Protocol):
    """
    A queue beside the store that tells workers which executions to claim, and when.

    The store's rows are the truth. A message holds an id, and its worker claims exactly that
    execution, or finds nothing to claim. So messages may be lost, repeated or late: workers also
    poll the store, seldom while the queue is `up`, and otherwise as often as without a queue.
    """

    @property
    def up(self) -> bool:
        """Whether messages go out and arrive, as far as is known."""

    @property
    def keep_s(self) -> float:
        """
        The seconds within which a worker must `keep` each delivery. A delivery that was not kept
        for three times as long is delivered again, because its worker is gone.
        """

    async def run(self, changed: Callable[[], None]) -> None:
        """
        Connect, and connect again, until cancelled; *changed* is called when `up` has changed.
        """

    async def tell(self, due: Collection[DueExecution]) -> bool:
        """
        Deliver these executions once they are due. Executions with the same key may be delivered
        once. Returns False if some may be lost, so that workers must poll. A missing connection
        raises nothing.
        """

    async def take(self, limit: int, able: Collection[str] | None = None) -> Sequence[DueDelivery]:
        """
        Wait a moment for deliveries and return them: none, some, rarely more than *limit*. *able*:
        as for `Store.claim`; work for other workers may come all the same. With limit 0, `take`
        returns at once and requests nothing; deliveries requested before may still come.
        """

    async def gauges(self) -> Mapping[str, float]:
        """The figures for the metrics: whether the queue is up, and how many messages wait."""


class Worker(Protocol):
    """
    Claims due executions and runs their steps.

    If several workers share a store, exactly one of them gets each execution, and no step is begun
    by two workers. The sweep recovers the executions of a worker that died.
    """

    async def run(self) -> None:
        """Claim and run executions until `stop` is called, which must always happen."""

    async def stop(self, drain_s: float) -> None:
        """
        Stop claiming, give running steps up to *drain_s* seconds to end, then end them.

        On return no step runs and no lease is held: steps that had not begun are due for other
        workers, and an execution whose step was ended by force is INTERRUPTED.
        """
