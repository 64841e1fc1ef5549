"""
The store and the counters in memory, for trials, embedding and simulation.

They are honest about races, versions and visibility, and need no event loop: whoever makes a store
passes a `SchedulingPoint`, which decides when other tasks run. The names of `__init__.pyi` are
loaded on first use, because other stores share `counters` and need no tables.
"""

from wfcore._exports import exports

__all__, __getattr__, __dir__ = exports(__name__)
