"""The defaults of the parameters of `open_store`."""

import time

from wfcore.time import EpochMs

CACHE_BYTES = 24 << 20
"""The bytes of memory that decoded records may take up."""


def wall_clock() -> EpochMs:
    """The wall-clock time of this machine, which jumps when the clock is set."""
    return EpochMs(time.time_ns() // 1_000_000)
