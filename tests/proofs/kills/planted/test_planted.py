"""The kill loop bites: each planted bug is found, by the check that is there for it."""

from pathlib import Path
from typing import Any

import pytest

from tests.proofs.kills.loop import kill_loop

PLANTS: tuple[tuple[Any, ...], ...] = (
    ("begun_late", 8, {"step twice", "not recorded"}),
    ("keys_forgotten", 3, {"another answer", "start twice"}),
    ("frozen unfenced", 4, {"step twice"}),
    ("parent_told_late", 8, {"untold"}),
    ("chain_consumed_late", 8, {"chain twice"}),
    ("schedule_advanced_late", 8, {"schedule twice"}),
    ("delivered_early", 8, {"callback untold"}),
    ("called_meanwhile", 8, {"callback overlaps"}),
    ("question_interrupted", 8, {"waiting"}),
    ("requeued", 8, {"step twice", "not interrupted"}),
    ("child_asked", 8, {"step twice", "not interrupted"}),
    ("word_ignored", 8, {"step twice", "not interrupted"}),
    ("start_acknowledged_early", 8, {"unknown", "another answer"}),
    ("decision_acknowledged_early", 8, {"decision undone", "decided twice"}),
    ("cancel_acknowledged_early", 8, {"cancel undone"}),
    ("steps_outlive", 8, {"alive"}),
    ("state_taken_early", 8, {"state without result"}),
    ("inputs_forgotten", 8, {"started without its inputs"}),
    ("mailed_anew", 3, {"mailed twice"}),
    ("gap_before_the_end rows_forgotten", 1, {"events"}, {"other rows"}),
)
"""
Modules beside this one, the most rounds they may take, and what each bug must be found as. What
only the end of the loop shows is planted together.
"""


@pytest.mark.parametrize("planted", PLANTS, ids=lambda planted: planted[0])
async def test_planted_bug_is_found(tmp_path: Path, planted: tuple[Any, ...]) -> None:
    """A server with this bug does not pass the kill loop."""
    plants, rounds, *found_as = planted
    report = await kill_loop(tmp_path, rounds, seed=1, plants=plants.split())
    for kinds in found_as:
        assert report.kinds & kinds, (report.broken[:5], report.counts)


async def test_a_frozen_server_is_no_bug(tmp_path: Path) -> None:
    """What it held was taken over; when it wakes up it does nothing of that. EX-16."""
    report = await kill_loop(tmp_path, 1, seed=1, plants=("frozen",))
    assert not report.broken, report.broken[:20]
    assert report.counts["taken over"] == 1
