"""Our stores beside plain dicts; and what is said of a store that loses an update."""

import inspect
import re
from pathlib import Path
from typing import get_origin
from unittest import mock

import pytest
from hypothesis import Phase, find, settings
from hypothesis.stateful import run_state_machine_as_test

from adapters_store.memory import MemoryStore
from adapters_store.sqlite.store import SqliteStore
from wfcore.memory.overlay import Overlay
from wfcore.model.page import Page, PageRequest
from wfcore.ports.records import RECORDS as KINDS
from wfcore.ports.store import Store, View
from wfcore.testing.comparison import requests
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


UNASKED = {
    "audit.chain",
    "audit.chained",
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
    assert paged == {str(call[0]) for call in asked.method_calls} != set()


def test_every_kind_of_record_is_put():
    """The scripts put records of every kind that the port names."""
    drawn = {
        type(find(RECORDS, lambda one, kind=kind: isinstance(one, kind.type))) for kind in KINDS
    }
    assert drawn == {kind.type for kind in KINDS}
