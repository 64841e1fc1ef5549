"""Shared by all tests: how deep Hypothesis digs, and what a pytest inside of a test leaves out."""

import os
import secrets
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, Phase, settings

if TYPE_CHECKING:
    from tests.support.nats_server import Broker
    from tests.support.postgres_server import Cluster
    from tests.support.s3_server import Buckets

settings.register_profile(
    "ci",
    derandomize=True,
    deadline=None,
    max_examples=30,
    phases=[phase for phase in Phase if phase is not Phase.explain],  # minutes, for a long script
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile(  # for other versions of Python and libraries (.ci/versions)
    "few", settings.get_profile("ci"), max_examples=5
)
settings.register_profile(  # for mutants: few examples, and none made smaller
    "quick",
    derandomize=True,
    deadline=None,
    database=None,
    max_examples=25,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)
settings.register_profile(
    "deep", deadline=None, max_examples=2_000, suppress_health_check=[HealthCheck.too_slow]
)
os.environ["PYTEST_ADDOPTS"] = "-p no:schemathesis -p no:anyio"  # a second of each start
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))


MEMORY, ROOM = "/dev/shm", 1 << 30
FLUSHES = {"adapters_http", "adapters_store", "wfcore"}
"""Tests of which most would wait for a disk that flushes; and none runs steps in a sandbox, which
has a `/dev` of its own."""


@pytest.fixture
def tmp_path(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path]:
    """A folder of the test's own: in memory, where that is large enough, if it is about no disk."""
    folder = request.path.relative_to(Path(__file__).parent).parts[0]
    if folder not in FLUSHES or not _has_room(MEMORY):
        yield tmp_path
        return
    with tempfile.TemporaryDirectory(prefix="wf", dir=MEMORY) as made:
        yield Path(made)


def _has_room(folder: str) -> bool:
    with suppress(OSError):
        found = os.statvfs(folder)
        free = found.f_bavail * found.f_frsize
        return free > ROOM and not found.f_flag & os.ST_NOEXEC and os.access(folder, os.W_OK)
    return False


@pytest.fixture(scope="session", autouse=True)
def migrated(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """
    A SQLite store on a new file in memory begins as a copy of one that `prepare` made: making
    a schema takes longer than most tests that need a store. Not where a test has other migrations.
    """
    from adapters_store.sqlite import migrate

    migrations, create = migrate.migrations, migrate.create_private
    first = tmp_path_factory.mktemp("migrated") / "wfcore.db"
    migrate.prepare(first)
    with closing(sqlite3.connect(first)) as database:
        [(chain,)] = database.execute("SELECT id FROM audit_chain")
    file = first.read_bytes()
    assert file.count(chain.encode()) == 1

    def copy(path: Path) -> None:
        new = not path.exists() and path.is_relative_to(MEMORY)
        create(path)
        if new and migrate.migrations is migrations:
            another = secrets.token_hex(len(chain) // 2)  # each store has a chain of its own
            path.write_bytes(file.replace(chain.encode(), another.encode()))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(migrate, "create_private", copy)
        yield


@pytest.fixture(scope="session")
def server() -> "Iterator[Cluster]":
    """
    A PostgreSQL server for all tests of this session that leave it running. On a busy machine it
    takes its time to connect, which is not what they are about.
    """
    from adapters_store.postgres import connection
    from tests.support.postgres_server import cluster

    connection.CONNECT_S = 60.0
    yield from cluster()


@pytest.fixture(scope="session")
def database(server: "Cluster") -> str:
    """The URL of a database with our schema; see `emptied`."""
    from tests.support.postgres_server import prepared

    return prepared(server)


@pytest.fixture(scope="session")
def buckets() -> "Iterator[Buckets]":
    """A server that speaks S3."""
    from tests.support.s3_server import serving

    yield from serving()


@pytest.fixture
def bucket(buckets: "Buckets", monkeypatch: pytest.MonkeyPatch) -> str:
    """The URL of an empty bucket, which this process may use."""
    for name, value in buckets.environment.items():
        monkeypatch.setenv(name, value)
    return buckets.new()


@pytest.fixture(scope="session")
def nats() -> "Iterator[Broker]":
    """A NATS server for all tests of this session that leave it running."""
    from tests.support.nats_server import broker

    yield from broker()
