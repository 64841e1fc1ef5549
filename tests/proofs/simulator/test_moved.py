"""
Simulated worlds that are moved to another database in the middle of their work.

`MOVED_WORLDS` says how many (16); every fourth of them goes through PostgreSQL.
"""

import asyncio
import os
from collections.abc import AsyncIterator, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from adapters_store.sql import moving
from adapters_store.sql.moving import MOVED, MovedTable, Row, Side, Walk
from adapters_store.sqlite.moving import SqliteSide
from tests.adapters_store.test_moving import blank, folder
from tests.support.postgres_server import Cluster
from wfcore.memory import Disk
from wfcore.memory.tables import EXECUTIONS
from wfcore.model.execution import Execution, ExecutionStatus
from wfcore.testing.simulator import WorldResult, violation_kind
from wfcore.time import DAY

from .moved import Carry, Where, played, stay, through

WORLDS = int(os.environ.get("MOVED_WORLDS", "16"))
THROUGH_POSTGRES = 4
"""One in so many."""
NOT_IN_WORLDS = frozenset(
    {"sessions", "logins", "login_links", "api_keys", "signing_keys", "seal_keys"}
    | {"people_groups"}
    | {"logs", "artifacts", "callbacks", "approval_approvers", "group_checks"}
)
"""Of the last two, stores make what they need for lists and groups of their own."""


@pytest.fixture(scope="module")
def fresh(server: Cluster) -> Iterator[str]:
    """The URL of a database of this module's own; see `blank`."""
    server.execute("CREATE DATABASE moved_worlds")
    yield server.url("moved_worlds")
    server.execute("DROP DATABASE moved_worlds WITH (FORCE)")


@cache
def stayed(seed: int) -> tuple[WorldResult, Disk]:
    """The world that is cut and goes on where it was."""
    return played(seed, stay)


def difference(seed: int, carry: Carry) -> str | None:
    """What a moved world breaks, or does otherwise than one that stays; None: nothing."""
    there, brought = played(seed, carry)
    if there.broken is not None:
        return there.broken
    here, kept = stayed(seed)
    if there.trace != here.trace:
        new = next(line for line in there.trace if line not in here.trace)
        return f"another way: {new}"
    differs = [name for name, rows in brought.tables.items() if rows != kept.tables[name]]
    return f"another end: {differs}" if differs else None


@pytest.mark.parametrize("seed", range(1, WORLDS + 1))
def test_a_moved_world_comes_to_the_same_end(
    seed: int, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """
    Killed at any moment, moved and started again, a world keeps every promise, and does to its end
    exactly what it does where it stays.
    """
    stops: list[Where] = [folder(tmp_path, "old"), folder(tmp_path, "new")]
    if seed % THROUGH_POSTGRES == 0:
        stops.insert(1, asyncio.run(blank(request.getfixturevalue("fresh"))))
    if seed % (2 * THROUGH_POSTGRES) == 0:
        stops.pop()
    assert difference(seed, through(*stops)) is None


def test_worlds_are_moved_in_mid_flight() -> None:
    """Nearly each is moved, and executions run, wait and are asked about at that moment."""
    moves = 0
    seen: set[tuple[ExecutionStatus, bool]] = set()

    def look(disk: Disk) -> None:
        nonlocal moves
        moves += 1
        runs: Sequence[Execution] = list(disk.tables[EXECUTIONS.name].values())
        seen.update((run.status, run.worker is not None) for run in runs)

    for seed in range(1, 31):
        played(seed, look)
    assert moves > 25
    assert seen >= {
        (ExecutionStatus.PENDING, False),
        (ExecutionStatus.PENDING, True),
        (ExecutionStatus.RUNNING, False),
        (ExecutionStatus.RUNNING, True),
        (ExecutionStatus.AWAITING_APPROVAL, False),
    }


def found(folder: Path) -> str:
    """The first difference that worlds show, moved between two files."""
    for seed in range(1, 31):
        stops = [folder / f"{seed}" / name / "wfcore.db" for name in ("old", "new")]
        for path in stops:
            path.parent.mkdir(parents=True)
        if told := difference(seed, through(*stops)):
            return told
    raise AssertionError("no world noticed")


JUDGED = {"executions": "unknown", "step_results": "started twice", "events": "events"}
"""Which promise a world breaks at once that lacks them."""


@pytest.mark.parametrize("table", sorted(MOVED.keys() - NOT_IN_WORLDS))
def test_a_kind_that_is_not_moved_is_missed(
    table: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever a world keeps is needed for what it does, or missing at its end."""
    walked = moving._walked

    async def forgets(source: Side, target: Side, name: str, walk: Walk) -> MovedTable:
        return (
            MovedTable(name, 0, "") if name == table else await walked(source, target, name, walk)
        )

    monkeypatch.setattr(moving, "_walked", forgets)
    told = violation_kind(found(tmp_path))
    assert told == JUDGED.get(table, told)


def test_a_lease_that_is_kept_alive_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the dead held would never be taken up."""
    rows = SqliteSide.rows

    async def alive(self: Any, table: str, columns: Sequence[str]) -> AsyncIterator[Row]:
        place = columns.index("lease_until") if "lease_until" in columns else None
        async for row in rows(self, table, columns):
            if place is not None and row[place] is not None:
                row = (*row[:place], row[place] + DAY, *row[place + 1 :])
            yield row

    monkeypatch.setattr(SqliteSide, "rows", alive)
    assert violation_kind(found(tmp_path)) == "no end"
