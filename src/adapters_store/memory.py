"""
The store and the counters in memory, for asyncio: other tasks run before each read and commit.

For tests, simulations and trials; lost with their process.
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
    """A `SchedulingPoint`: first every other task that is ready runs, then *apply*."""
    await asyncio.sleep(0)
    return apply()


class MemoryStore(memory.MemoryStore):
    """Implements `wfcore.ports.store.Store` over dicts; may share its *disk* with another one."""

    def __init__(self, disk: Disk | None = None, now: Now = wall_clock) -> None:
        super().__init__(in_turn, disk, now=now)


class MemoryCounters(memory.MemoryCounters):
    """Implements `wfcore.ports.counters.Counters` over a dict."""

    def __init__(self) -> None:
        super().__init__(in_turn)
