"""The contract of dispatches, on the one in memory and on a real NATS server."""

from collections.abc import Callable
from itertools import count

import pytest

from adapters_runtime.engine.jetstream import NatsDispatch
from nats_server import Broker
from wfcore.testing.contracts.dispatch import DispatchContract
from wfcore.testing.dispatch import DispatchQueue, MemoryDispatch

KEEP_S = 1.0
_NAMES = count()


class TestMemoryDispatch(DispatchContract):
    """The queue of one process."""

    @pytest.fixture
    def new_dispatch(self) -> Callable[[], MemoryDispatch]:
        queue = DispatchQueue(KEEP_S)
        return lambda: MemoryDispatch(queue)


class TestNatsDispatch(DispatchContract):
    """Each handle has a connection of its own."""

    @pytest.fixture
    def new_dispatch(self, nats: Broker) -> Callable[[], NatsDispatch]:
        name = f"contract-{next(_NAMES)}"
        return lambda: NatsDispatch.at(f"{nats.url}?name={name}", KEEP_S)
