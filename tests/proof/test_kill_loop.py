"""
The proof from outside: kill -9 at any moment loses nothing acknowledged and repeats nothing.

`KILL_ROUNDS` says how often (25), `KILL_SEED` repeats a run.
"""

import os
from pathlib import Path
from time import time_ns

from proof.loop import kill_loop

ROUNDS = int(os.environ.get("KILL_ROUNDS", "25"))
SEED = int(os.environ.get("KILL_SEED", str(time_ns() % 1_000_000)))
LEAST_IN_25 = {
    "kills": 25,
    "started": 100,
    "replayed": 40,
    "APPROVED": 20,
    "REJECTED": 8,
    "cancelled": 15,
    "cut off": 25,
    "interrupted": 20,
    "waited on": 20,
    "completed": 50,
}
"""How much must have happened, or the loop proved nothing."""


async def test_kill_loop(tmp_path: Path) -> None:
    """
    Over any number of kills each 202, decision and cancel stands, nothing starts twice, what
    had begun is INTERRUPTED, what waits goes on waiting, and nothing of a step outlives its
    server. EX-1, EX-3, EX-7, EX-9, EX-11, EX-14, EX-15, EX-20, AP-6, IK-1, CS-7.
    """
    report = await kill_loop(tmp_path, ROUNDS, SEED)
    assert not report.broken, f"KILL_SEED={SEED}: {report.broken[:20]}"
    for what, least in LEAST_IN_25.items():
        assert report.counts[what] >= least * ROUNDS // 25, (what, report.counts)
