"""The contract of dispatches, on the one in memory and on a real NATS server."""

from collections.abc import Callable
from itertools import count

import pytest

from adapters_runtime.engine.jetstream import NatsDispatch
from tests.support.nats_server import Broker
from wfcore.ports.queue import DueExecution
from wfcore.testing.contracts.dispatch import PATIENCE_S, DispatchContract, connected, taken
from wfcore.testing.dispatch import MemoryDispatch, SharedQueue

KEEP_S = 1.0
_NAMES = count()


class TestMemoryDispatch(DispatchContract):
    """The queue of one process."""

    @pytest.fixture
    def new_dispatch(self) -> Callable[[], MemoryDispatch]:
        queue = SharedQueue(KEEP_S)
        return lambda: MemoryDispatch(queue)


class TestNatsDispatch(DispatchContract):
    """Each handle has a connection of its own."""

    @pytest.fixture
    def new_dispatch(self, nats: Broker) -> Callable[[], NatsDispatch]:
        name = f"contract-{next(_NAMES)}"
        return lambda: NatsDispatch.at(f"{nats.url}?name={name}", KEEP_S)


async def test_the_queue_hands_out_no_more_at_once_than_its_limit(nats: Broker) -> None:
    """
    The limit is that of the queue, not of a worker: another one gets nothing until what is out is
    settled, and the next as soon as it is.
    """
    url = f"{nats.url}?name=contract-{next(_NAMES)}&in_flight=1"
    one, other = (NatsDispatch.at(url, PATIENCE_S) for _ in range(2))
    async with connected(one), connected(other):
        await one.tell([DueExecution(f"exec_{n}", f"k{n}") for n in range(2)])
        (first,) = await taken(one, 1)
        assert not await other.take(1)
        await first.settle()
        (second,) = await taken(other, 1)
        assert sorted([first.execution_id, second.execution_id]) == ["exec_0", "exec_1"]
        await second.settle()
