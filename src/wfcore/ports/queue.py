"""The queue of due executions beside the store, and the worker that claims them."""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Protocol

from attrs import frozen

from wfcore.time import DurationMs


@frozen
class DueExecution:
    """
    What a unit of work has made due: an execution that a worker with all the capabilities `needs`
    may claim in *in_ms*. `key`: one for each time that it becomes due.
    """

    execution_id: str
    key: str
    in_ms: DurationMs = DurationMs(0)
    needs: tuple[str, ...] = ()


class DueDelivery(Protocol):
    """
    The message that an execution is due, handed to one worker until that settles it or puts it
    back. Each method says so if it can; a message that is lost, or comes again, does no harm.
    """

    @property
    def execution_id(self) -> str:
        """What to claim."""

    @property
    def tries(self) -> int:
        """How often it was delivered, this time included."""

    async def keep(self) -> None:
        """It is still worked on: deliver it to nobody else meanwhile."""

    async def settle(self) -> None:
        """Nothing is left to do about it: never deliver it again."""

    async def put_back(self, in_ms: DurationMs) -> None:
        """Deliver it again, to any worker, in *in_ms*."""


class DispatchQueue(Protocol):
    """
    Tells workers which executions to claim, and when: a queue beside the store.

    The store's rows are the truth. A message holds an id, and a worker that gets it claims exactly
    that execution, or finds that there is nothing to claim. So messages may be lost, repeated or
    late: workers also look into the store themselves, seldom while this is `up`, and as
    often as without it while it is not.
    """

    @property
    def up(self) -> bool:
        """Whether messages go out and arrive, as far as is known."""

    @property
    def keep_s(self) -> float:
        """
        How often whoever has a delivery must `keep` it, in seconds. One that was not kept for three
        times as long is delivered again: its worker is gone.
        """

    async def run(self, changed: Callable[[], None]) -> None:
        """
        Connect, and connect again, until cancelled; *changed* is called when `up` has changed.
        """

    async def tell(self, due: Collection[DueExecution]) -> bool:
        """
        Have these executions delivered once they are due. False: some of it may be lost, and
        workers have to look. Never raises for want of a connection. What has the same key may be
        delivered once.
        """

    async def take(self, limit: int, able: Collection[str] | None = None) -> Sequence[DueDelivery]:
        """
        Wait a moment for deliveries, and return what has come: none, some, rarely more than
        *limit*. *able*: as for `Store.claim`; what somebody else has to do may come all the same.
        *limit* 0: do not wait and ask for nothing; what was asked for before may still come.
        """

    async def gauges(self) -> Mapping[str, float]:
        """For the metrics: whether it is up, and how much waits."""


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
