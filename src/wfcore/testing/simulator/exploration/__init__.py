"""
Exhaustive exploration: every interleaving of a small world, with the real core.

    exploration = explore(SCOPES["steps"])
    assert exploration.broken is None, exploration.path

`search` says what a step of the exploration is, and what is not covered.
"""

from wfcore.testing.simulator.exploration.scopes import FAULTS, SCOPES, Scope
from wfcore.testing.simulator.exploration.search import (
    Exploration,
    ReplayedPath,
    explore,
    replay_path,
)

__all__ = [
    "FAULTS",
    "SCOPES",
    "Exploration",
    "ReplayedPath",
    "Scope",
    "explore",
    "replay_path",
]
