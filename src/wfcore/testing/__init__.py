"""
For tests, ours and yours: what this project's own tests are built from.

The names listed in `__init__.pyi` are public: `from wfcore.testing import values_of`. Each is
loaded when it is first used: contracts, strategies and walks need pytest and hypothesis
(`wfcore[testing]`); builders, fakes, vectors and the simulator need nothing. Production code never
imports any of it. It is no distribution of its own, so that it always has the version whose
promises it tests.
"""

import sys

from wfcore._exports import exports

__all__, __getattr__, __dir__ = exports(__name__)

_SPEAKING = ("contracts", "comparison", "walks", "walks.decisions", "walks.execution")
"""Modules whose assertions users read."""

if (_pytest := sys.modules.get("pytest")) is not None:  # a failure then shows what was compared
    _pytest.register_assert_rewrite(*(f"{__name__}.{module}" for module in _SPEAKING))
