"""What a store is opened with unless its caller says otherwise."""

import time

from wfcore.time import EpochMs

CACHE_BYTES = 24 << 20
"""The bytes of memory that decoded records may take up."""


def wall_clock() -> EpochMs:
    """The time of a store that was given no clock: it jumps when the machine's clock is set."""
    return EpochMs(time.time_ns() // 1_000_000)
