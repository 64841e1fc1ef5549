"""
When garbage is looked for: not while a server starts, and later less often than usual.

What a start loads stays for good. Looking through it again and again, as it grows, would take
longer than all that is left over from it is worth.
"""

import gc
from collections.abc import Iterator
from contextlib import contextmanager

_THRESHOLDS = (20_000, 20, 50)
"""Requests make few cycles."""


@contextmanager
def no_collecting() -> Iterator[None]:
    """No garbage is looked for in here, or until `settle_memory`."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def settle_memory() -> None:
    """What is loaded by now is never looked at again; from now on there is collecting."""
    gc.freeze()
    gc.set_threshold(*_THRESHOLDS)
    gc.enable()
