"""
The memory of a server: garbage of its start, and what is given back once a load is over.

**While it starts**, every object is looked at once, soon after it was made. What a start loads
stays for good: looking through all of it again and again, as it grows, would take a sixth of the
start. Not looking at all would leave garbage among what stays, above all the classes that
decorators have replaced, and its memory would never be used for what is loaded next.

**After a load** a server would keep what made it fast: decoded records, encoded answers, pages of
the database. Once it has had next to nothing to do for a while, it lets go of them.
"""

import asyncio
import ctypes
import gc
import linecache
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from time import process_time
from typing import Any

from attrs import define

from adapters_runtime.engine.loops import Loop

_STARTING = (3_000, 1_000_000, 1_000_000)
"""The young generation alone: what was looked at once is not looked at again."""
_SERVING = (20_000, 20, 50)
"""Requests make few cycles."""

LOOK_EVERY_S = 10.0
QUIET = 0.05
"""The part of a processor below which a server is idle; by itself it takes a hundredth."""


class _Sources(dict[str, Any]):
    """Lines of sources, without those that attrs adds for its methods: 2 MB that nobody reads."""

    def setdefault(self, name: str, lines: Any = None) -> Any:
        return lines


@contextmanager
def collecting_once() -> Iterator[None]:
    """Each object is looked at once in here, or until `settle_memory`."""
    thresholds, sources = gc.get_threshold(), linecache.cache
    gc.set_threshold(*_STARTING)
    linecache.cache = _Sources(sources)
    try:
        yield
    finally:
        gc.set_threshold(*thresholds)
        linecache.cache = sources


def settle_memory() -> None:
    """What is loaded by now is never looked at again; from now on there is collecting."""
    gc.freeze()
    gc.set_threshold(*_SERVING)


@define
class Trimming:
    """
    When to give memory back: after `LOOK_EVERY_S` with next to no work, once for each load.
    *busy_s*: the processor time that this process has taken.
    """

    busy_s: float
    loaded: bool = False

    def due(self, busy_s: float) -> bool:
        """Whether the time since the last look was quiet, and one before it was not."""
        quiet = busy_s - self.busy_s < LOOK_EVERY_S * QUIET
        due, self.loaded, self.busy_s = quiet and self.loaded, not quiet, busy_s
        return due


@asynccontextmanager
async def trimming(give_back: Callable[[], Awaitable[None]]) -> AsyncIterator[None]:
    """Until this is left, *give_back* is awaited after each load, and freed memory returned."""
    when = Trimming(process_time())

    async def look() -> float:
        if when.due(process_time()):
            await give_back()
            return_memory()
            when.busy_s = process_time()
        return LOOK_EVERY_S

    loop = Loop("return of memory", look, asyncio.Event())
    going = asyncio.create_task(loop.run(), name=loop.name)
    try:
        yield
    finally:
        loop.stop()
        await going


def return_memory() -> None:
    """Collect garbage, and return free memory to the system where the C library can."""
    gc.collect()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # of glibc
    if trim is not None:
        trim(0)
