"""
The same proof with two servers on one PostgreSQL database, which are killed together.

`PG_KILL_ROUNDS` says how often (3), `KILL_SEED` repeats a run.
"""

import asyncio
import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from time import monotonic, time_ns

import pytest

from tests.proofs import record
from tests.support.postgres_server import Cluster, cluster, prepared

from .loop import SharedStore, kill_loop
from .machine import LATER_MS

ROUNDS = int(os.environ.get("PG_KILL_ROUNDS", "3"))
SEED = int(os.environ.get("KILL_SEED", str(time_ns() % 1_000_000)))
LATER = f"""CREATE OR REPLACE FUNCTION wfcore_now() RETURNS bigint LANGUAGE sql STABLE
    AS $$ SELECT (extract(epoch FROM statement_timestamp()) * 1000)::bigint + {LATER_MS} $$"""


@pytest.fixture
def server() -> Iterator[Cluster]:
    yield from cluster(fsync="on", synchronous_commit="on")


def shared(server: Cluster) -> SharedStore:
    """A database whose time can be set ahead."""
    return SharedStore(prepared(server, "shared"), partial(server.execute, LATER, "shared"))


async def test_kill_loop_of_two_servers(tmp_path: Path, server: Cluster) -> None:
    """All that the kill loop of one server proves: EX-1, EX-3, EX-7, EX-11, EX-15, IK-1, CB-1."""
    made = await asyncio.to_thread(shared, server)
    since = monotonic()
    report = await kill_loop(tmp_path, ROUNDS, SEED, shared=made)
    record.note("shared kills", SEED, since, report.figures, report.broken)
    assert not report.broken, f"KILL_SEED={SEED}: {report.broken[:20]}"
    ends = [report.counts[what] for what in ("work completed", "ask completed", "called back")]
    enough = min(report.counts["started"], sum(ends)) >= ROUNDS and min(ends) >= ROUNDS // 4
    assert enough, report.counts  # which of them, in a few rounds, is left to chance
