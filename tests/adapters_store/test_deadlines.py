"""By whose clock approvals expire and schedules fire."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.postgres_server import Cluster
from wfcore.testing.fakes import ManualClock
from wfcore.time import MINUTE
from wfserver.compose import open_system
from wfserver.settings.record import Settings


@pytest.fixture
def fresh(server: Cluster) -> Iterator[str]:
    """The URL of an empty database."""
    server.execute("CREATE DATABASE deadlines")
    yield server.url("deadlines")
    server.execute("DROP DATABASE deadlines WITH (FORCE)")


async def test_deadlines_go_by_the_clock_of_the_database(fresh: str, tmp_path: Path) -> None:
    """AP-47: a machine far ahead or behind neither expires an approval early nor keeps it."""
    wrong = ManualClock()
    async with open_system(Settings(tmp_path, store=fresh), clock=wrong) as system:
        services = system.services
        before = services.store.now()
        assert before <= services.clock.deadline_now() <= services.store.now()
        wrong.advance(60 * MINUTE)
        assert services.clock.deadline_now() - before < 30 * MINUTE
        assert services.clock.now() == wrong.now()


async def test_deadlines_on_one_machine_go_by_its_own_clock(tmp_path: Path) -> None:
    """A file has no clock; the machine's is watched for jumps."""
    clock = ManualClock()
    async with open_system(Settings(tmp_path), clock=clock) as system:
        assert system.services.clock is clock
