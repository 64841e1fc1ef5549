"""Rows of `python -m bench` that reach into the code still run: a column more must not end them."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from attrs import astuple

from bench import dispatch, growth, largest, nodes, postgres, writer
from bench.profile import OTHER, phase_of
from tests.support.postgres_server import Cluster
from wfcore.model.access import OPERATOR
from wfcore.model.execution import Execution
from wfcore.usecases.executions.executions import read_execution
from wfserver.compose import open_system
from wfserver.settings.record import settings_from


@pytest.mark.parametrize("row", [writer.bare_group_commit, writer.transitions])
async def test_a_row_is_measured(row: Callable[[float, int], Awaitable[float]]) -> None:
    """Each side of the row about transitions commits what it says."""
    assert await row(0.01, 2) > 0


def test_the_largest_decision_is_measured(tmp_path: Path) -> None:
    """All rows that an approval may have are proposed by a step, edited and approved."""
    assert largest.held_ms(tmp_path) > 0


async def read(of: growth.Filled) -> Execution:
    async with open_system(settings_from({}, data=str(of.data))) as system:
        return await read_execution(system.services, OPERATOR, next(of.ids()))


def test_growth_is_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stores are filled with executions that can be read; sweeps and claims give figures."""
    for name in ("TURNS", "SAMPLES", "OPEN", "ROUNDS"):
        monkeypatch.setattr(growth, name, 1)
    monkeypatch.setattr(growth, "ACCOUNTS", 2)
    few, many = (growth.filled(tmp_path / name, growth.CYCLE) for name in ("few", "many"))
    assert asyncio.run(read(many)).owner_id == many.account_id
    assert all(row.few_ms > 0 and row.many_ms > 0 for row in growth.inside(few, many))
    fresh_kb, kept_kb = growth.kept_kb(tmp_path / "kept")
    assert 0 < kept_kb < fresh_kb


SHORT_S = 0.05


@pytest.mark.parametrize(
    "row",
    [
        lambda server: postgres.starts(server, SHORT_S),
        lambda server: postgres.drained(server, postgres.CLIENTS),
        lambda server: postgres.admissions(server, SHORT_S),
        lambda server: postgres.claims(server, 100).full_ms,
        lambda server: postgres.cost(server, postgres.CLIENTS).wal,
        lambda server: postgres.idle_transactions(server, 1, SHORT_S) + 1,
        lambda server: postgres.lock_waits(server, SHORT_S) + 1,
        lambda server: min(postgres.beside_listeners(server, SHORT_S)),
    ],
)
def test_a_row_of_postgresql_is_measured(
    server: Cluster, row: Callable[[Cluster], float], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each row about the store on PostgreSQL gives a figure."""
    monkeypatch.setattr(postgres, "LISTENING_TURNS", 1)
    assert row(server) > 0


def test_rows_between_servers_are_measured(
    server: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By hints and by NATS, without hints and without NATS: each row gives a figure."""
    few: dict[Any, dict[str, float]] = {
        nodes: {"TIMES": 1},
        dispatch: {"TIMES": 1, "IDLE_S": 0.1, "SETTLED_S": 0, "UNHEARD": 1, "UNHEARD_PAUSE_S": 0},
    }
    for module, sizes in few.items():
        for name, size in sizes.items():
            monkeypatch.setattr(module, name, size)
    with dispatch.nats() as own:
        figures = *astuple(nodes.woken(server)), *astuple(dispatch.measured(server, own))
    assert all(figure >= 0 for figure in figures)


def test_a_sample_belongs_to_the_innermost_phase() -> None:
    """Whoever called it; what no phase names is the rest."""
    stack = "run (asyncio/base.py:1);start (wfcore/usecases/executions/starting.py:9)"
    assert phase_of(f"{stack};proceed (wfcore/rules/execution/proceed.py:1);len") == "rules"
    assert phase_of(stack) == "use cases"
    assert phase_of("run (asyncio/base.py:1)") == OTHER
