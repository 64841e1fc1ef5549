"""
The store and the counters in memory, for trials, embedding and simulation.

Races, versions and visibility are as in a real store, and no event loop is needed: the maker of a
store passes a `SchedulingPoint`, which decides when other tasks run. The names of `__init__.pyi`
are loaded on first use, because other stores share `counters` and need no tables.
"""

from wfcore._exports import exports

__all__, __getattr__, __dir__ = exports(__name__)
