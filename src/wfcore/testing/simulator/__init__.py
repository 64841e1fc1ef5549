"""
The simulator: the real core and use cases in small worlds where everything goes wrong.

A world has nodes, a disk, clients and a virtual clock. A seed decides which task runs next and
which call fails, is delayed, loses its answer or kills its process. Every change of the disk and
the end of each world are checked against the promises of the service. The same seed gives the same
trace.

    summary = simulate(range(1, 2_001))
    for failure in summary.failures:
        small = shrink_scenario(failure.scenario, failure.broken)
        print(*summarize_trace(play(small, traced=True).trace, failure.broken), sep="\n")

The simulator uses no event loop, no sleep and no thread. It needs only the core and attrs.
"""

from wfcore.testing.simulator.campaign import (
    BrokenWorld,
    CampaignSummary,
    simulate,
    with_drawn_faults,
)
from wfcore.testing.simulator.catalogue import Law, law_of, violation_kind
from wfcore.testing.simulator.extensions import Invariant, NewStore, Tables
from wfcore.testing.simulator.faults import FaultKind, InjectedFault
from wfcore.testing.simulator.generate import scenario_from
from wfcore.testing.simulator.scenario import Act, WorldScenario
from wfcore.testing.simulator.scheduler import Violation
from wfcore.testing.simulator.shrink import shrink_scenario
from wfcore.testing.simulator.trace_summary import summarize_trace
from wfcore.testing.simulator.world import WorldResult, play

__all__ = [
    "Act",
    "BrokenWorld",
    "CampaignSummary",
    "FaultKind",
    "InjectedFault",
    "Invariant",
    "Law",
    "NewStore",
    "Tables",
    "Violation",
    "WorldResult",
    "WorldScenario",
    "law_of",
    "play",
    "scenario_from",
    "shrink_scenario",
    "simulate",
    "summarize_trace",
    "violation_kind",
    "with_drawn_faults",
]
