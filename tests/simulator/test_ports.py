"""The simulator's store and counters keep the contracts that all stores and counters keep."""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import TypeVar

import pytest

from wfcore.ports.counters import Counters
from wfcore.ports.store import Store
from wfcore.testing.contracts import CountersContract, StoreContract
from wfcore.testing.simulator.counters import SimCounters
from wfcore.testing.simulator.store import SimStore

R = TypeVar("R")


async def in_turn(name: str, about: object, apply: Callable[[], R], *, writes: bool = False) -> R:
    """A gate for asyncio: others run first, then the thing is done in one step."""
    await asyncio.sleep(0)
    return apply()


class TestSimStore(StoreContract):
    @pytest.fixture
    async def store(self) -> AsyncIterator[Store]:
        store = SimStore(in_turn)
        yield store
        await store.close()


class TestSimCounters(CountersContract):
    @pytest.fixture
    async def counters(self) -> AsyncIterator[Counters]:
        counters = SimCounters(in_turn)
        yield counters
        await counters.close()
