"""
For tests, ours and yours: what this project's own tests are made of.

The names that `__init__.pyi` lists are public: `from wfcore.testing import values_of`.
What a name needs is loaded when it is asked for: pytest and hypothesis (`wfcore[testing]`) for
contracts, strategies and walks, nothing for builders, fakes, vectors and the simulator. Code
that is shipped to run never imports any of it.
"""

import sys

from wfcore._exports import exports

__all__, __getattr__, __dir__ = exports(__name__)

_SPEAKING = ("contracts", "comparison", "walks", "walks.decisions", "walks.execution")
"""Modules whose assertions users read."""

if (_pytest := sys.modules.get("pytest")) is not None:  # a failure then shows what was compared
    _pytest.register_assert_rewrite(*(f"{__name__}.{module}" for module in _SPEAKING))
