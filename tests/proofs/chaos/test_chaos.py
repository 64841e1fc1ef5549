"""
Servers under load, and everything around them fails: nothing accepted is lost, nothing is done
twice.

`CHAOS_S` says for how many seconds something lasts (`make chaos`: 12; `make storm`, which plays the
worst of it at once: 4), `CHAOS_ROUNDS` how often all of it is played, `CHAOS_STACK` on which stack
alone, `CHAOS_ONLY` which scenarios alone; `CHAOS_SEED` repeats what chance decided.
"""

import asyncio
import os
from collections import Counter
from pathlib import Path
from time import monotonic

import pytest

from tests.proofs import record

from .conftest import LONG_S, SEED, chaos_alone, site_of
from .scenarios import Chaos, scenarios_of, storm
from .site import STACKS, WHOLE, Servers

ROUNDS = int(os.environ.get("CHAOS_ROUNDS", "1"))
ONLY = os.environ.get("CHAOS_ONLY", "").split()
CHOSEN = os.environ.get("CHAOS_STACK", "").split() or list(STACKS)
SCENARIO_S = 180 + 2 * LONG_S
STORM_S = 600
pytestmark = chaos_alone


@pytest.mark.parametrize("name", CHOSEN)
async def test_whatever_fails_nothing_is_lost_or_done_twice(
    tmp_path: Path, servers_here: Servers, name: str
) -> None:
    """
    Servers and processes are killed, replaced, frozen and set wrong, the database restarts, is
    locked, drops connections and loses answers, hints, queue and bucket go away, a disk is full:
    every 202 ends or rests, nothing is begun twice, one execution per key, one decision per
    approval, groups, chains and quotas keep to their limits, logs have no gaps, and downloads and
    live pages work at every node afterwards.
    EX-1, EX-3, EX-11, EX-16, EX-20, IK-1, AP-6, CC-1, CH-3, RL-4, ST-2.
    """
    stack, since, played = STACKS[name], monotonic(), Counter[str]()
    chosen = [one for one in scenarios_of(stack) if not ONLY or one.__name__ in ONLY]
    async with site_of(tmp_path, stack, servers_here) as chaos:
        try:
            for scenario in chosen * ROUNDS:
                begun = monotonic()
                async with asyncio.timeout(SCENARIO_S):
                    await chaos.play(scenario)
                print(f"{scenario.__name__}: {monotonic() - begun:.1f} s", dict(chaos.load.counts))
                assert not chaos.broken, f"CHAOS_SEED={SEED}: {chaos.broken[:20]}"
                played[scenario.__name__] += 1
            await well(chaos)
        finally:
            figures = {"scenarios": played.total(), **chaos.figures()}
            record.note(f"chaos {name}", SEED, since, figures, chaos.broken)


@pytest.mark.skipif(bool(ONLY) or WHOLE.name not in CHOSEN, reason="something else is chosen")
async def test_the_worst_at_once(tmp_path: Path, servers_here: Servers) -> None:
    """
    The same of kill -9 of each node in turn, a restart of the database, the loss of all that NATS
    had and a worker that is frozen, in one play: what begins while nothing is wrong is never
    interrupted. EX-1, EX-3, EX-11, EX-16, EX-20, IK-1, AP-6, CC-1, CH-3, ST-2.
    """
    async with site_of(tmp_path, WHOLE, servers_here, lease_s=10) as chaos:
        chaos.stop_s = 13
        async with asyncio.timeout(STORM_S):
            await chaos.play(storm)
        print(dict(chaos.load.counts))
        await well(chaos)


async def well(chaos: Chaos) -> None:
    """Nothing was wrong, and each node that answers hands out every artifact."""
    assert await chaos.downloads() > 0
    assert not chaos.broken, f"CHAOS_SEED={SEED}: {chaos.broken[:20]}"
