"""What stores show of themselves to metrics, and what it costs to ask how they stand."""

import sqlite3
from pathlib import Path
from typing import Any

from adapters_store.postgres.store import PostgresStore
from adapters_store.sql.execution_queries import OPEN
from adapters_store.sqlite.store import SqliteStore
from tests.support.postgres_server import emptied
from wfcore.model.access import Account
from wfcore.testing.builders import account
from wfserver.serving.metrics import GAUGES


async def shown(store: Any) -> None:
    """Under names that are described; a record that is read again was decoded once."""
    try:
        async with store.unit() as unit:
            unit.put(account("acc_1"))
            await unit.commit()
        before = await store.gauges()
        assert set(before) <= set(GAUGES)
        assert before["wfcore_store_size_bytes"] > 10_000
        for _ in range(3):
            async with store.view() as view:
                assert await view.get(Account, "acc_1") is not None
        after = await store.gauges()
        asked, decoded = "wfcore_cache_lookups_total", "wfcore_cache_decoded_total"
        assert after[asked] - before[asked] == 3
        assert after[decoded] - before[decoded] <= 1
    finally:
        await store.close()


async def test_sqlite_tells_its_size_and_what_its_cache_does(tmp_path: Path) -> None:
    """The size is that of the file and its log."""
    await shown(await SqliteStore.open(tmp_path / "wfcore.db"))


async def test_postgresql_tells_its_size_and_what_its_cache_does(database: str) -> None:
    """The size is that of the database."""
    await shown(await PostgresStore.open(await emptied(database)))


async def test_open_approvals_are_counted_from_an_index_of_the_open_ones(tmp_path: Path) -> None:
    """However many were decided, they are not read."""
    path = tmp_path / "wfcore.db"
    await (await SqliteStore.open(path)).close()
    with sqlite3.connect(path) as connection:
        plan = connection.execute(f"EXPLAIN QUERY PLAN {OPEN}", (10,)).fetchall()
    connection.close()
    (used,) = [row[3] for row in plan if " approvals " in row[3]]
    assert "approvals_waiting" in used, plan
