"""
The store and the counters in memory, for trials, embedding and simulation.

Honest about races, versions and visibility. They know no event loop: whoever makes one brings
a `Gate`, which decides when others run. What `__init__.pyi` names is loaded when it is asked for:
other stores count like `counters`, and need no tables.
"""

from wfcore._exports import exports

__all__, __getattr__, __dir__ = exports(__name__)
