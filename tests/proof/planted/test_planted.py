"""The kill loop bites: each planted bug is found, by the check that is there for it."""

from pathlib import Path

import pytest

from proof.loop import kill_loop

PLANTS = (
    ("requeued", 8, {"step twice", "not interrupted"}),
    ("start_acknowledged_early", 8, {"unknown", "another answer"}),
    ("decision_acknowledged_early", 8, {"decision undone", "decided twice"}),
    ("cancel_acknowledged_early", 8, {"cancel undone"}),
    ("steps_outlive", 8, {"alive"}),
    ("gap_before_the_end", 1, {"events"}),
)
"""A module beside this one, the most rounds it may take, and what it must be found as."""


@pytest.mark.parametrize(("plant", "rounds", "found_as"), PLANTS)
async def test_planted_bug_is_found(
    tmp_path: Path, plant: str, rounds: int, found_as: set[str]
) -> None:
    """A server with this bug does not pass the kill loop."""
    report = await kill_loop(tmp_path, rounds, seed=1, plants=(plant,))
    assert report.kinds & found_as, (report.broken[:5], report.counts)
