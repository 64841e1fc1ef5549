"""What `python -m bench` measures of the store still runs: a column more must not end it."""

from collections.abc import Awaitable, Callable

import pytest
from bench import writer


@pytest.mark.parametrize("row", [writer.bare_group_commit, writer.transitions])
async def test_a_row_is_measured(row: Callable[[float, int], Awaitable[float]]) -> None:
    """Each side of the row about transitions commits what it says."""
    assert await row(0.01, 2) > 0
