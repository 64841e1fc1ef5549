"""The chaos bites: each of six mistakes, planted in three servers, is found within three runs."""

from collections.abc import Mapping
from pathlib import Path

import pytest
from attrs import frozen

from wfcore.testing.simulator import violation_kind

from .conftest import chaos_alone, site_of
from .planted import LEASES_BY_THE_PROCESS
from .scenarios import Scenario, bursts, clocks, connections_end, nobody_hears, stands_still
from .site import STACKS, Servers

RUNS = 3
STACK = STACKS["postgres"]
pytestmark = chaos_alone
TWICE = {"started twice", "result changed", "late result"}


@frozen
class Planted:
    """A mistake: in the processes, or in the database; how it is found, and as what."""

    name: str
    scenario: Scenario
    found_as: set[str]
    sql: str = ""
    ahead: Mapping[str, int] = {}


PLANTED = (
    Planted("no_group_lock", bursts, {"group too full"}),
    Planted("no_skip_locked", bursts, {*TWICE, "interrupted for nothing"}),
    Planted(
        "leases_by_the_process",
        clocks,
        {"interrupted for nothing", "started twice", "no end"},
        LEASES_BY_THE_PROCESS,
        {"one": 60_000},
    ),
    Planted("hints_only", nobody_hears, {"no end"}),
    Planted("sequence_instead_of_row", connections_end, {"events"}),
    Planted("fence_unchecked", stands_still, TWICE),
)


@pytest.mark.parametrize("planted", PLANTED, ids=lambda planted: planted.name)
async def test_a_planted_mistake_is_found(
    tmp_path: Path, servers_here: Servers, planted: Planted
) -> None:
    """Servers with this mistake break a promise, and the checker says which."""
    plants = () if planted.sql else (planted.name,)
    async with site_of(
        tmp_path, STACK, servers_here, plants=plants, sql=planted.sql, ahead=planted.ahead
    ) as chaos:
        chaos.settles_s = 12
        for run in range(1, RUNS + 1):
            await chaos.play(planted.scenario)
            found = [one for one in chaos.broken if violation_kind(one) in planted.found_as]
            if found:
                print(f"{planted.name}: run {run}: {found[0]}")
                return
        pytest.fail(f"not found: {chaos.broken[:10]}")
