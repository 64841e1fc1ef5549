"""Rows of `python -m bench` that reach into the code still run: a column more must not end them."""

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from bench import largest, writer
from bench.profile import OTHER, phase_of


@pytest.mark.parametrize("row", [writer.bare_group_commit, writer.transitions])
async def test_a_row_is_measured(row: Callable[[float, int], Awaitable[float]]) -> None:
    """Each side of the row about transitions commits what it says."""
    assert await row(0.01, 2) > 0


def test_the_largest_decision_is_measured(tmp_path: Path) -> None:
    """All rows that an approval may have are proposed by a step, edited and approved."""
    assert largest.held_ms(tmp_path) > 0


def test_a_sample_belongs_to_the_innermost_phase() -> None:
    """Whoever called it; what no phase names is the rest."""
    stack = "run (asyncio/base.py:1);start (wfcore/usecases/executions/starting.py:9)"
    assert phase_of(f"{stack};proceed (wfcore/rules/execution/proceed.py:1);len") == "rules"
    assert phase_of(stack) == "use cases"
    assert phase_of("run (asyncio/base.py:1)") == OTHER
