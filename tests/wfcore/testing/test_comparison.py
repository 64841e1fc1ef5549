"""Our stores beside the store in memory; and which careless stores the comparison finds."""

import inspect
from pathlib import Path
from typing import get_origin
from unittest import mock

import pytest
from hypothesis import Phase, find, seed, settings
from hypothesis.internal.conjecture import engine
from hypothesis.stateful import run_state_machine_as_test

from adapters_store.memory import MemoryStore
from adapters_store.sqlite.store import SqliteStore
from wfcore.model.page import Page, PageRequest
from wfcore.ports.records import RECORDS as KINDS
from wfcore.ports.store import Store, View
from wfcore.testing import first_failure
from wfcore.testing.comparison.comparing import StoreComparison
from wfcore.testing.comparison.queries import ARGUMENTS
from wfcore.testing.comparison.records import RECORDS
from wfcore.testing.contracts.pages import LISTS

from .careless import (
    CachingStore,
    Holding,
    Uncommitted,
    Unlocked,
    Unversioned,
    comparison,
    working,
)


class MemoryComparison(StoreComparison):
    async def open(self, folder: Path) -> Store:
        return MemoryStore(now=self.clock.service_now)


class SqliteComparison(StoreComparison):
    async def open(self, folder: Path) -> Store:
        return await SqliteStore.open(folder / "wfcore.db", now=self.clock.service_now)

    async def reopen(self, folder: Path) -> Store:
        return await self.open(folder)


TestMemoryStore = MemoryComparison.TestCase
TestSqliteStore = SqliteComparison.TestCase
TestSqliteStore.settings = settings(max_examples=15)

FINDING = settings(
    max_examples=200,
    database=None,
    deadline=None,
    derandomize=True,
    phases=[Phase.generate, Phase.shrink],
    report_multiple_bugs=False,
)


LOSING = comparison(working(Unversioned))


def test_a_lost_update_is_told_by_a_short_script():
    """A store that never refuses is caught, by a script of a few steps that can be read."""
    with pytest.raises(AssertionError, match="which was not expected") as failed:
        run_state_machine_as_test(LOSING, settings=FINDING)
    told = "\n".join(failed.value.__notes__)
    steps = [line for line in told.splitlines() if line.startswith("state.")]
    assert 2 <= len(steps) <= 6, told
    assert "lambda" not in told


RUNS = 10
DOCUMENTED = settings(max_examples=20, deadline=None, database=None)
"""The profile "often" of docs/testing.md."""
PLANTED = {
    "an update is lost": working(Unversioned),
    "a lease stays": working(Holding),
    "commits have no lock": working(Unlocked),
    "units read what others have not committed": working(Uncommitted),
    "a cache hears of no other handle": CachingStore,
}


@pytest.mark.parametrize("bug", PLANTED)
def test_planted_stores_are_found_at_the_documented_profile(bug: str):
    """Nine runs of ten find a store that forgets one thing."""
    found = sum(_finds(comparison(PLANTED[bug]), number) for number in range(RUNS))
    assert found >= 9, f"{found} of {RUNS}"


def test_a_cache_needs_a_second_handle_to_be_wrong():
    """Through one handle such a cache answers as it should: `reopen` is what finds it."""
    assert not _finds(comparison(CachingStore, two=False), 1)


def _finds(compared: type[StoreComparison], number: int) -> bool:
    machine = type(f"Run{number}", (compared,), {})
    generating = settings(DOCUMENTED, phases=[Phase.generate])
    try:
        run_state_machine_as_test(seed(number)(machine), settings=generating)
    except AssertionError:
        return True
    return False


def test_the_first_failure_is_said_before_it_is_made_short(monkeypatch: pytest.MonkeyPatch):
    """Whoever waits reads at once what fails; the search for a shorter script is bounded."""
    opened: list[float] = []
    said: list[tuple[int, str]] = []

    class Counted(LOSING):  # type: ignore[misc, valid-type]
        """Notes every run, and the bound within which it is made."""

        async def open(self, folder: Path) -> Store:
            opened.append(engine.MAX_SHRINKING_SECONDS)
            return await super().open(folder)

    monkeypatch.setattr(
        first_failure, "print", lambda text: said.append((len(opened), text)), False
    )
    Counted.TestCase.settings = settings(FINDING, print_blob=False)
    with pytest.raises(AssertionError):
        Counted.TestCase("runTest").runTest()
    ((runs, text),) = said
    assert text.startswith("Counted fails: AssertionError: stored")
    assert len(opened) > runs
    assert set(opened) == {first_failure.SHORTENING_S}
    assert first_failure.SHORTENING_S == 30
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
    wanted = {
        f"{subject}.{query}"
        for subject, made in inspect.getmembers(View, lambda one: isinstance(one, property))
        for query in vars(made.fget.__annotations__["return"])
        if not query.startswith("_")
    }
    assert wanted - ARGUMENTS.keys() == UNASKED


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
