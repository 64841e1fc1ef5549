"""
The proof from outside: kill -9 at any moment loses nothing acknowledged, and begins again only
what the execution's own promise allows.

`KILL_ROUNDS` says how often (15), `KILL_SEED` repeats a run.
"""

import os
from pathlib import Path
from time import monotonic, time_ns

from tests.proofs import record

from .loop import kill_loop

ROUNDS = int(os.environ.get("KILL_ROUNDS", "15"))
SEED = int(os.environ.get("KILL_SEED", str(time_ns() % 1_000_000)))
LEAST_IN_25 = {
    "kills": 25,
    "started": 100,
    "replayed": 40,
    "APPROVED": 20,
    "REJECTED": 6,
    "edited": 4,
    "fetched": 30,
    "results": 20,
    "cancelled": 15,
    "cut off": 25,
    "cut off at once": 5,
    "rounds cut off": 8,
    "gone on": 3,
    "by hand": 20,
    "interrupted": 20,
    "waited on": 10,
    "work completed": 20,
    "ask completed": 8,
    "tree completed": 6,
    "leaf completed": 10,
    "after completed": 15,
    "few completed": 3,
    "tick completed": 6,
    "skip completed": 1,
    "called back": 25,
    "count completed": 5,
    "mailed": 5,
}
"""The least that 25 rounds must contain, or the loop proved nothing."""

ENOUGH_ROUNDS = 15
"""With fewer rounds chance may leave out any kind of work; kills and starts alone are counted."""


async def test_kill_loop(tmp_path: Path) -> None:
    """
    Over any number of kills, in the middle of branches, rounds, delays, children, chains and
    callbacks: each 202, decision, edited row, cancel, result and artifact stands, no attempt of
    a step starts twice, what had begun is INTERRUPTED, what waits goes on waiting, nothing of a
    step outlives its server, all comes to an end when it is decided, or its grace is over; each
    completion is followed once, each instant starts one execution at most, and who wants to hear
    of an end is told; a count is the number of those who counted, a step reads the file of the
    one before it, a chain has its inputs, and an execution sends one message. CB-1, CB-2, CB-3,
    CH-1, CH-3, SH-1, SH-3, SH-4, SH-12, EX-1, EX-3, EX-7, EX-9, EX-11, EX-12, EX-13, EX-14, EX-15,
    EX-18, EX-20, EX-24, EX-25, AP-6, AP-7, AR-1, IK-1, CS-7, FI-2, FL-1, FL-2, FL-5, FL-6, FL-10,
    ML-1, SV-3.
    """
    since = monotonic()
    report = await kill_loop(tmp_path, ROUNDS, SEED)
    record.note("kills", SEED, since, report.figures, report.broken)
    assert not report.broken, f"KILL_SEED={SEED}: {report.broken[:20]}"
    counted = LEAST_IN_25 if ROUNDS >= ENOUGH_ROUNDS else ("kills", "started")
    for what in counted:
        assert report.counts[what] >= LEAST_IN_25[what] * ROUNDS // 25, (what, report.counts)
