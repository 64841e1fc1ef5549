"""
The store and the counters in memory, for trials, embedding and simulation.

Honest about races, versions and visibility. They know no event loop: whoever makes one brings
a `Gate`, which decides when others run.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from wfcore.memory.counters import MemoryCounters
    from wfcore.memory.disk import Disk
    from wfcore.memory.gate import Gate
    from wfcore.memory.store import MemoryStore

__all__ = ["Disk", "Gate", "MemoryCounters", "MemoryStore"]

_HOMES = {"Disk": "disk", "Gate": "gate", "MemoryCounters": "counters", "MemoryStore": "store"}


def __getattr__(name: str) -> Any:
    """Loaded when it is asked for: other stores count like `counters`, and need no tables."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
