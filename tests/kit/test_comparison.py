"""Our stores beside plain dicts; and what is said of a store that loses an update."""

from pathlib import Path
from unittest import mock

import pytest
from hypothesis import Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from adapters_store.memory import MemoryStore
from adapters_store.sqlite.store import SqliteStore
from wfcore.memory.overlay import Overlay
from wfcore.ports.store import Store
from wfcore.testing.comparison.comparing import StoreComparison


class MemoryComparison(StoreComparison):
    async def open(self, folder: Path) -> Store:
        return MemoryStore()


class SqliteComparison(StoreComparison):
    async def open(self, folder: Path) -> Store:
        return await SqliteStore.open(folder / "wfcore.db")


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
