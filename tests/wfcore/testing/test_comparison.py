"""Our stores beside plain dicts; and what is said of a store that loses an update."""

import inspect
import re
from pathlib import Path
from typing import get_origin
from unittest import mock

import pytest
from hypothesis import Phase, find, seed, settings
from hypothesis.internal.conjecture import engine
from hypothesis.stateful import run_state_machine_as_test

from adapters_store.memory import MemoryStore
from adapters_store.sqlite.store import SqliteStore
from wfcore.memory import writes
from wfcore.memory.overlay import Overlay
from wfcore.model.page import Page, PageRequest
from wfcore.ports.records import RECORDS as KINDS
from wfcore.ports.store import Store, View
from wfcore.testing.comparison import reporting, requests
from wfcore.testing.comparison.comparing import StoreComparison
from wfcore.testing.comparison.records import RECORDS
from wfcore.testing.contracts.pages import LISTS


class MemoryComparison(StoreComparison):
    async def open(self, folder: Path) -> Store:
        return MemoryStore(now=self.clock.service_now)


class SqliteComparison(StoreComparison):
    async def open(self, folder: Path) -> Store:
        return await SqliteStore.open(folder / "wfcore.db", now=self.clock.service_now)


TestMemoryStore = MemoryComparison.TestCase
TestSqliteStore = SqliteComparison.TestCase
TestSqliteStore.settings = settings(max_examples=15)

FINDING = settings(
    max_examples=200,
    database=None,
    deadline=None,
    derandomize=True,
    phases=[Phase.generate, Phase.shrink],
)


def test_a_lost_update_is_told_by_a_short_script():
    """A store that never refuses is caught, by a script of a few steps that can be read."""
    with (
        mock.patch.object(Overlay, "expect", return_value=None),
        pytest.raises(AssertionError, match="which was not expected") as failed,
    ):
        run_state_machine_as_test(MemoryComparison, settings=FINDING)
    told = "\n".join(failed.value.__notes__)
    steps = [line for line in told.splitlines() if line.startswith("state.")]
    assert 2 <= len(steps) <= 6, told
    assert "lambda" not in told


RUNS = 20
DOCUMENTED = settings(max_examples=20, deadline=None, database=None)
"""The profile "often" of docs/testing.md."""
PLANTED = {
    "an update is lost": lambda: mock.patch.object(Overlay, "expect", return_value=None),
    "a lease stays": lambda: mock.patch.object(writes, "_let_go", return_value=None),
}


@pytest.mark.parametrize("bug", PLANTED)
def test_planted_stores_are_found_at_the_documented_profile(bug: str):
    """Nineteen runs of twenty find a lost update, and a lease that outlives its holder."""
    with PLANTED[bug]():
        found = sum(_finds(number) for number in range(RUNS))
    assert found >= 19, f"{found} of {RUNS}"


def _finds(number: int) -> bool:
    class Seeded(MemoryComparison):
        """One run."""

    generating = settings(DOCUMENTED, phases=[Phase.generate])
    try:
        run_state_machine_as_test(seed(number)(Seeded), settings=generating)
    except AssertionError:
        return True
    return False


def test_the_first_failure_is_said_before_it_is_made_short(monkeypatch: pytest.MonkeyPatch):
    """Whoever waits reads at once what fails; the search for a shorter script is bounded."""
    opened: list[float] = []
    said: list[tuple[int, str]] = []

    class Counted(MemoryComparison):
        """Notes every run, and the bound within which it is made."""

        async def open(self, folder: Path) -> Store:
            opened.append(engine.MAX_SHRINKING_SECONDS)
            return await super().open(folder)

    monkeypatch.setattr(reporting, "print", lambda text: said.append((len(opened), text)), False)
    Counted.TestCase.settings = settings(FINDING, print_blob=False)
    with PLANTED["an update is lost"](), pytest.raises(AssertionError):
        Counted.TestCase("runTest").runTest()
    ((runs, text),) = said
    assert text.startswith("Counted fails: AssertionError: stored, which was not expected")
    assert len(opened) > runs
    assert set(opened) == {reporting.SHORTENING_S}
    assert reporting.SHORTENING_S == 30
    assert engine.MAX_SHRINKING_SECONDS > 30


UNASKED = {
    "audit.chain",
    "audit.chained",
    "audit.newest",
    "audit.of_execution",
    "webhooks.deliveries",
    "logs.of_execution",
    "approvals.reminders_due",
}
"""What contract tests alone hold: `AuditContract`, and those of units, claims and lists."""


def test_every_query_of_the_port_is_asked():
    """No kind can be forgotten: each query that a view has is one that the comparison asks."""
    asked = set(re.findall(r'"(\w+\.\w+)"', inspect.getsource(requests)))
    wanted = {
        f"{subject}.{query}"
        for subject, made in inspect.getmembers(View, lambda one: isinstance(one, property))
        for query in vars(made.fget.__annotations__["return"])
        if not query.startswith("_")
    }
    assert wanted - asked == UNASKED


COMPARED = {"triggers.of_owner"}
"""Rows by what others own, where `PageContract` has one each: the comparison tries its cursors."""


def test_every_paged_query_is_read_on_behind_a_row():
    """PG-5: whatever gives pages is among the lists of `PageContract`, whose cursors are tried."""
    paged = {
        f"{subject}.{name}"
        for subject, made in inspect.getmembers(View, lambda one: isinstance(one, property))
        for name, query in vars(made.fget.__annotations__["return"]).items()
        if get_origin(getattr(query, "__annotations__", {}).get("return")) is Page
    }
    asked = mock.MagicMock()
    for ask in LISTS.values():
        ask(asked, PageRequest())
    assert paged - COMPARED == {str(call[0]) for call in asked.method_calls} != set()


def test_every_kind_of_record_is_put():
    """The scripts put records of every kind that the port names."""
    drawn = {
        type(find(RECORDS, lambda one, kind=kind: isinstance(one, kind.type))) for kind in KINDS
    }
    assert drawn == {kind.type for kind in KINDS}
