"""
The memory of a server: garbage collection during its start, and memory returned after a load.

**During the start**, the collector visits each object once, soon after it was made. Most objects of
a start stay for good, and visiting all of them repeatedly would take a sixth of the start. Without
any collection, garbage would remain between them, above all classes that decorators have replaced,
and its memory could not be used again.

**After a load**, a server holds caches: decoded records, encoded answers, pages of the database.
Once the server has been nearly idle for a while, it drops the caches.
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
"""Thresholds of `gc`: only the young generation is collected."""
_SERVING = (20_000, 20, 50)
"""Thresholds of `gc` while serving: requests make few cycles."""

MEASURE_EVERY_S = 10.0
QUIET = 0.05
"""The share of one processor below which a server is idle; background work takes 0.01."""


class _Sources(dict[str, Any]):
    """A `linecache` that ignores the methods that attrs generates: 2 MB that nobody reads."""

    def setdefault(self, name: str, lines: Any = None) -> Any:
        return lines


@contextmanager
def collecting_once() -> Iterator[None]:
    """Collect only young objects until this is left, or until `settle_memory`."""
    thresholds, sources = gc.get_threshold(), linecache.cache
    gc.set_threshold(*_STARTING)
    linecache.cache = _Sources(sources)
    try:
        yield
    finally:
        gc.set_threshold(*thresholds)
        linecache.cache = sources


def settle_memory() -> None:
    """Exclude all present objects from collection, and collect normally from now on."""
    gc.freeze()
    gc.set_threshold(*_SERVING)


@define
class Trimming:
    """
    Decides when to return memory: after `MEASURE_EVERY_S` with nearly no work, once for each load.
    *busy_s*: the processor time that this process has used.
    """

    busy_s: float
    loaded: bool = False

    def due(self, busy_s: float) -> bool:
        """Whether the time since the last call was quiet, after a time that was not."""
        quiet = busy_s - self.busy_s < MEASURE_EVERY_S * QUIET
        due, self.loaded, self.busy_s = quiet and self.loaded, not quiet, busy_s
        return due


@asynccontextmanager
async def trimming(give_back: Callable[[], Awaitable[None]]) -> AsyncIterator[None]:
    """Until this is left, await *give_back* after each load, and return freed memory."""
    when = Trimming(process_time())

    async def measure() -> float:
        if when.due(process_time()):
            await give_back()
            return_memory()
            when.busy_s = process_time()
        return MEASURE_EVERY_S

    loop = Loop("return of memory", measure, asyncio.Event())
    going = asyncio.create_task(loop.run(), name=loop.name)
    try:
        yield
    finally:
        loop.stop()
        await going


def return_memory() -> None:
    """Collect garbage, and return free memory to the system if the C library can."""
    gc.collect()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # of glibc
    if trim is not None:
        trim(0)
