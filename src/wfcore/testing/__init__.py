"""
A testing kit for this project and its users: the parts from which this project's tests are built.

The names listed in `__init__.pyi` are public: `from wfcore.testing import values_of`. Each name is
loaded at its first use: contracts, strategies and walks need pytest and hypothesis
(`wfcore[testing]`); builders, fakes, vectors and the simulator need no other package. Production
code never imports the kit. The kit is part of this distribution, so that its version is always that
of the promises it tests.
"""

import sys

from wfcore._exports import exports

__all__, __getattr__, __dir__ = exports(__name__)

_SPEAKING = ("contracts", "comparison", "walks", "walks.decisions", "walks.execution")
"""The modules whose assertions users read."""

if (_pytest := sys.modules.get("pytest")) is not None:  # a failure then shows what was compared
    _pytest.register_assert_rewrite(*(f"{__name__}.{module}" for module in _SPEAKING))
