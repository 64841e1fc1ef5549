"""The kill loop bites: each planted bug is found, by the check that is there for it."""

from pathlib import Path

import pytest

from proof.loop import kill_loop

ROUNDS = 8
FOUND_AS = {
    "begun_late": {"step twice"},
    "requeued": {"step twice", "not interrupted"},
    "start_acknowledged_early": {"unknown", "another answer"},
    "decision_acknowledged_early": {"decision undone", "decided twice"},
    "cancel_acknowledged_early": {"cancel undone"},
    "keys_forgotten": {"another answer"},
    "steps_outlive": {"alive"},
    "gap_before_the_end": {"events"},
}


@pytest.mark.parametrize("plant", FOUND_AS)
async def test_planted_bug_is_found(tmp_path: Path, plant: str) -> None:
    """A server with this bug does not pass the kill loop."""
    report = await kill_loop(tmp_path, ROUNDS, seed=1, plants=(plant,))
    print(plant, report.kinds, report.counts["kills"])
    assert report.kinds & FOUND_AS[plant], (report.broken[:5], report.counts)
