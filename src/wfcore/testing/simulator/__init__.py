"""
The simulator: the real core and use cases in small worlds where everything goes wrong.

A world has nodes, a disk, clients and a virtual clock; a seed decides which task runs next and
which call fails, is delayed, loses its answer or kills its process. Every change of the disk and
the end of each world are checked against the promises of the service. The same seed gives the same
trace.

    summary = simulate(range(1, 2_001))
    for failure in summary.failures:
        small = shrunk(failure.recipe, failure.broken)
        print(*told(play(small, traced=True).trace, failure.broken), sep="\\n")

No event loop, no sleep, no thread; only the core and attrs are needed.
"""

from wfcore.testing.simulator.campaign import Failure, Summary, as_played, simulate
from wfcore.testing.simulator.catalogue import Law, kind_of, law_of
from wfcore.testing.simulator.extensions import Invariant, NewStore, Tables
from wfcore.testing.simulator.faults import Fault, Kind
from wfcore.testing.simulator.generate import recipe_from
from wfcore.testing.simulator.scenario import Act, Recipe
from wfcore.testing.simulator.scheduler import Violation
from wfcore.testing.simulator.shrink import shrunk
from wfcore.testing.simulator.trace_summary import told
from wfcore.testing.simulator.world import Played, play

__all__ = [
    "Act",
    "Failure",
    "Fault",
    "Invariant",
    "Kind",
    "Law",
    "NewStore",
    "Played",
    "Recipe",
    "Summary",
    "Tables",
    "Violation",
    "as_played",
    "kind_of",
    "law_of",
    "play",
    "recipe_from",
    "shrunk",
    "simulate",
    "told",
]
