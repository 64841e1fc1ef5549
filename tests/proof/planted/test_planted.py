"""The kill loop bites: each planted bug is found, by the check that is there for it."""

from pathlib import Path

import pytest

from proof.loop import kill_loop

PLANTS = (
    ("begun_late", 4, {"step twice", "not recorded"}),
    ("keys_forgotten", 3, {"another answer", "start twice"}),
    ("frozen unfenced", 2, {"step twice"}),
    ("parent_told_late", 4, {"untold"}),
    ("question_interrupted", 4, {"waiting"}),
    ("requeued", 8, {"step twice", "not interrupted"}),
    ("start_acknowledged_early", 8, {"unknown", "another answer"}),
    ("decision_acknowledged_early", 8, {"decision undone", "decided twice"}),
    ("cancel_acknowledged_early", 8, {"cancel undone"}),
    ("steps_outlive", 8, {"alive"}),
    ("rows_forgotten", 1, {"other rows"}),
    ("gap_before_the_end", 1, {"events"}),
)
"""Modules beside this one, the most rounds they may take, and what they must be found as."""


@pytest.mark.parametrize(("plants", "rounds", "found_as"), PLANTS)
async def test_planted_bug_is_found(
    tmp_path: Path, plants: str, rounds: int, found_as: set[str]
) -> None:
    """A server with this bug does not pass the kill loop."""
    report = await kill_loop(tmp_path, rounds, seed=1, plants=plants.split())
    assert report.kinds & found_as, (report.broken[:5], report.counts)


async def test_a_frozen_server_is_no_bug(tmp_path: Path) -> None:
    """What it held was taken over; when it wakes up it does nothing of that. EX-16."""
    report = await kill_loop(tmp_path, 1, seed=1, plants=("frozen",))
    assert not report.broken, report.broken[:20]
    assert report.counts["taken over"] == 1
