"""
The store and the counters in memory, for trials, embedding and simulation.

Honest about races, versions and visibility. They know no event loop: whoever makes one brings
a `Gate`, which decides when others run.
"""

from wfcore.memory.counters import MemoryCounters
from wfcore.memory.disk import Disk
from wfcore.memory.gate import Gate
from wfcore.memory.store import MemoryStore

__all__ = ["Disk", "Gate", "MemoryCounters", "MemoryStore"]
