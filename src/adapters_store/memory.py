"""
The store and the counters in memory, for asyncio: other tasks run before each read and commit.

Both are for tests, simulations and trials, and are lost with the process.
"""

import asyncio
from collections.abc import Callable
from typing import TypeVar

from adapters_store.defaults import wall_clock
from wfcore import memory
from wfcore.memory.disk import Disk
from wfcore.time import Now

R = TypeVar("R")


async def in_turn(name: str, about: object, apply: Callable[[], R], *, writes: bool = False) -> R:
    """A `SchedulingPoint`: let every other task that is ready run, then call *apply*."""
    await asyncio.sleep(0)
    return apply()


class MemoryStore(memory.MemoryStore):
    """Implements `wfcore.ports.store.Store` over dicts; may share its *disk* with another store."""

    def __init__(self, disk: Disk | None = None, now: Now = wall_clock) -> None:
        super().__init__(in_turn, disk, now=now)


class MemoryCounters(memory.MemoryCounters):
    """Implements `wfcore.ports.counters.Counters` over a dict."""

    def __init__(self) -> None:
        super().__init__(in_turn)
