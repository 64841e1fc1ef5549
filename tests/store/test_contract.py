"""The stores keep the contract that wfcore ships."""

from collections.abc import AsyncIterator

import pytest

from adapters_store.memory import MemoryCounters, MemoryStore
from wfcore.ports.counters import Counters
from wfcore.ports.store import Store
from wfcore.testing.contracts import CountersContract, StoreContract


class TestMemoryStore(StoreContract):
    @pytest.fixture
    async def store(self) -> AsyncIterator[Store]:
        store = MemoryStore()
        yield store
        await store.close()


class TestMemoryCounters(CountersContract):
    @pytest.fixture
    async def counters(self) -> AsyncIterator[Counters]:
        counters = MemoryCounters()
        yield counters
        await counters.close()
