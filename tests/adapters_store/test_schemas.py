"""Who changes the schema of a store: servers and `wfcore migrate`, not those who look."""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from types import ModuleType

import pytest

from adapters_store.postgres import migrate as postgres_migrate
from adapters_store.postgres.store import PostgresStore
from adapters_store.sql.schema import OlderSchema, Schema, Unmade
from adapters_store.sqlite import migrate
from adapters_store.sqlite.store import SqliteStore
from tests.support.postgres_server import Cluster
from wfcore.errors import StoreUnavailable

from .test_postgres_migrations import ask
from .test_sealing import run_sql


@pytest.fixture
def fresh(server: Cluster) -> Iterator[str]:
    """The URL of an empty database."""
    server.execute("CREATE DATABASE schemas")
    yield server.url("schemas")
    server.execute("DROP DATABASE schemas WITH (FORCE)")


Migrations = list[tuple[int, str]]
LOOKS = (Schema.PRESENT, Schema.AS_IS)


def with_one_more(module: ModuleType, patch: pytest.MonkeyPatch) -> Callable[[], Migrations]:
    """The next version, which has one more migration; returns those of this one."""
    real: Callable[[], Migrations] = module.migrations
    more = (real()[-1][0] + 1, "CREATE TABLE more (x TEXT);\n")
    patch.setattr(module, "migrations", lambda: [*real(), more])
    return real


def version(path: Path) -> int:
    with closing(sqlite3.connect(path)) as database:
        return int(database.execute("PRAGMA user_version").fetchone()[0])


async def test_a_file_of_an_older_version_is_left_by_those_who_look(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """ST-6: it stays as it is, and the older version goes on with it; a server migrates it."""
    path = tmp_path / "wfcore.db"
    await (await SqliteStore.open(path)).close()
    older = with_one_more(migrate, monkeypatch)
    before = version(path)
    for looks in LOOKS:
        with pytest.raises(OlderSchema, match="run `wfcore migrate`"):
            await SqliteStore.open(path, schema=looks)
    assert version(path) == before
    with monkeypatch.context() as patch:
        patch.setattr(migrate, "migrations", older)
        await (await SqliteStore.open(path)).close()
    await (await SqliteStore.open(path)).close()
    assert version(path) == before + 1
    for looks in LOOKS:
        await (await SqliteStore.open(path, schema=looks)).close()


async def test_a_database_of_an_older_version_is_left_by_those_who_look(
    fresh: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """ST-6: as of a file; in an empty one `doctor` makes no table at all."""
    tables = "SELECT count(*) FROM pg_class WHERE relnamespace = current_schema()::regnamespace"
    with pytest.raises(Unmade, match="is empty"):
        await PostgresStore.open(fresh, schema=Schema.AS_IS)
    assert await ask(fresh, tables) == 0
    await (await PostgresStore.open(fresh)).close()
    with_one_more(postgres_migrate, monkeypatch)
    for looks in LOOKS:
        with pytest.raises(OlderSchema, match="run `wfcore migrate`"):
            await PostgresStore.open(fresh, schema=looks)
    newest = "SELECT max(number) FROM wfcore_schemas"
    before = await ask(fresh, newest)
    await (await PostgresStore.open(fresh)).close()
    assert await ask(fresh, newest) == before + 1


async def test_ready_means_that_a_row_can_be_written(tmp_path: Path) -> None:
    """A file that was moved under a server does not answer as if it took writes."""
    store = await SqliteStore.open(tmp_path / "wfcore.db")
    await store.ping()
    run_sql(
        store.path,
        "CREATE TRIGGER moved_audit_chain_UPDATE BEFORE UPDATE ON audit_chain BEGIN"
        ' SELECT 1 FROM "this database was moved"; END',
    )
    with pytest.raises(StoreUnavailable):
        await store.ping()
    await store.close()
