from wfcore.memory.counters import MemoryCounters as MemoryCounters
from wfcore.memory.disk import Disk as Disk
from wfcore.memory.disk import Gate as Gate
from wfcore.memory.disk import MemoryFiles as MemoryFiles
from wfcore.memory.store import MemoryStore as MemoryStore

__all__: list[str]
