"""The schema on PostgreSQL: published migrations stand, every kind of record has its table."""

import asyncio
import os
from collections.abc import Iterator

import asyncpg
import pytest

from adapters_store import open_store
from adapters_store.postgres.connection import lent, location_of
from adapters_store.postgres.migrate import migrations
from adapters_store.postgres.queries import OWN
from adapters_store.postgres.statements import Statements
from adapters_store.postgres.store import PostgresStore
from adapters_store.sql import execution_queries, execution_rows, kinds, record_queries, step_rows
from adapters_store.sql.sealing import AeadSealer, new_key
from adapters_store.sql.statement import Statement
from tests.support.postgres_server import Cluster, emptied
from wfcore.errors import StoreRefused, StoreUnavailable
from wfcore.model.event import AuditChain
from wfcore.rules.audit.chain import BEGINNING
from wfserver.settings.record import settings_from, take_environment


@pytest.fixture
def fresh(server: Cluster) -> Iterator[str]:
    """The URL of a database without tables."""
    name = f"fresh_{os.getpid()}"
    server.execute(f"CREATE DATABASE {name}")
    yield server.url(name)
    server.execute(f"DROP DATABASE {name} WITH (FORCE)")


async def ask(url: str, sql: str) -> object:
    connection = await asyncpg.connect(url)
    try:
        return await connection.fetchval(sql)
    finally:
        await connection.close()


@pytest.fixture
def latin(server: Cluster) -> Iterator[str]:
    """The URL of a database that holds Western European text alone."""
    name = f"latin_{os.getpid()}"
    server.execute(f"CREATE DATABASE {name} ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0")
    yield server.url(name)
    server.execute(f"DROP DATABASE {name} WITH (FORCE)")


async def test_a_database_that_cannot_hold_all_text_is_refused(latin: str) -> None:
    """One of another encoding than UTF8 is left untouched, and the cure is named."""
    with pytest.raises(StoreRefused, match=r"its encoding is LATIN1, which .* ENCODING 'UTF8'"):
        await PostgresStore.open(latin)
    tables = "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'"
    assert await ask(latin, tables) == 0


async def test_every_kind_has_its_table(database: str) -> None:
    """
    Every kind of record, and everything else that is written row by row, has the columns that it
    needs: a new kind or column needs a migration in `adapters_store/postgres`, too.
    """
    store = await PostgresStore.open(database)
    try:
        async with lent(store.pool) as connection:
            there = set((await Statements.of(connection)).types)
    finally:
        await store.close()
    wanted = {
        (kind.table, column)
        for kind in OWN.values()
        for column in (*kind.key, *kind.columns, "version", "body")
    }
    wanted |= {
        (one.table, column)
        for module in (execution_queries, execution_rows, record_queries, step_rows)
        for one in vars(module).values()
        if isinstance(one, Statement)
        for column in (*one.columns, *one.keys)
    }
    assert not wanted - there
    assert set(OWN) == set(kinds.KINDS)


async def test_processes_that_open_at_once_migrate_once(fresh: str) -> None:
    """Each waits for the one that was first, and finds its schema."""
    stores = await asyncio.gather(*(PostgresStore.open(fresh) for _ in range(4)))
    for store in stores:
        await store.ping()
        await store.close()
    assert await ask(fresh, "SELECT count(*) FROM wfcore_schemas") == len(migrations())


async def test_a_chain_whose_head_was_deleted_is_no_chain(fresh: str) -> None:
    """It is shown as one without a name that never began, which no entry belongs to."""
    store = await PostgresStore.open(fresh)
    await ask(fresh, "DELETE FROM audit_chain")
    async with store.view() as view:
        assert await view.audit.chain() == AuditChain("", BEGINNING, BEGINNING)
    await store.close()


async def test_a_newer_schema_is_refused(fresh: str) -> None:
    """An older program says what it found and what helps, and changes nothing."""
    await (await PostgresStore.open(fresh)).close()
    await ask(fresh, "INSERT INTO wfcore_schemas VALUES (999, now())")
    with pytest.raises(StoreRefused, match=r"schema 999 is newer than this program's \d+"):
        await PostgresStore.open(fresh)


async def test_a_database_of_somebody_else_is_left_untouched(fresh: str) -> None:
    """Tables that are not ours are named, and nothing is made beside them."""
    await ask(fresh, "CREATE TABLE invoices (id int)")
    with pytest.raises(StoreRefused, match="tables of another application"):
        await PostgresStore.open(fresh)
    assert await ask(fresh, "SELECT count(*) FROM pg_class WHERE relname = 'executions'") == 0


async def test_a_database_that_is_not_there_is_named(server: Cluster) -> None:
    """The error names it without the password."""
    url = server.url("nowhere").replace("wfcore@", "wfcore:hush@")
    with pytest.raises(StoreRefused, match='"nowhere" does not exist') as refusal:
        await PostgresStore.open(url)
    assert "hush" not in str(refusal.value)
    assert location_of("postgresql://a:b@h/d?password=c&x=1") == (
        "postgresql://a@h/d?password=***&x=1"
    )


async def test_a_server_that_is_not_there_is_unavailable() -> None:
    """A later start may find it."""
    with pytest.raises(StoreUnavailable):
        await PostgresStore.open("postgresql://wfcore@127.0.0.1:1/wfcore")


async def test_a_key_that_is_missing_is_named(fresh: str) -> None:
    """Whoever lacks a key that something is sealed with is told which one, and does not start."""
    sealer = AeadSealer([new_key()])
    await (await PostgresStore.open(fresh, sealer=sealer)).close()
    with pytest.raises(StoreRefused, match=sealer.keys[0]):
        await PostgresStore.open(fresh)
    await (await PostgresStore.open(fresh, sealer=sealer)).close()


async def test_a_url_opens_store_and_counters(database: str, tmp_path: object) -> None:
    """`postgresql://…` is a store like any other."""
    opened = await open_store(await emptied(database), tmp_path)  # type: ignore[arg-type]
    await opened.store.ping()
    await opened.counters.close()
    await opened.store.close()
    assert opened.location.startswith("postgresql://")


def test_the_password_of_the_database_leaves_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """No process that the server starts inherits it."""
    monkeypatch.setenv("WFCORE_STORE", "postgresql://wfcore:hush@db/wfcore")
    settings = settings_from(take_environment())
    assert settings.store == "postgresql://wfcore:hush@db/wfcore"
    assert "WFCORE_STORE" not in os.environ
    assert "hush" not in repr(settings)
