"""PostgreSQL beside the store in memory. `PG_EXAMPLES` says how many scripts (12)."""

import os
from pathlib import Path

from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test

from adapters_store.postgres.store import PostgresStore
from tests.support.postgres_server import emptied
from wfcore.ports.store import Store
from wfcore.testing.comparison.comparing import StoreComparison

EXAMPLES = int(os.environ.get("PG_EXAMPLES", "12"))


def test_every_answer_is_that_of_the_store_in_memory(database: str) -> None:
    """Units side by side, stale and fresh versions, claims, purges, every list and look-up."""

    class PostgresComparison(StoreComparison):
        async def open(self, folder: Path) -> Store:
            return await PostgresStore.open(await emptied(database))

        async def reopen(self, folder: Path) -> Store:
            return await PostgresStore.open(database)

    run_state_machine_as_test(
        PostgresComparison, settings=settings(max_examples=EXAMPLES, deadline=None)
    )
