"""The schema on PostgreSQL: published migrations stand, every kind of record has its table."""

import asyncio
import hashlib
import os
from collections.abc import Iterator

import asyncpg
import pytest

from adapters_store import open_store
from adapters_store.postgres import migrate
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

PUBLISHED = {
    1: "349c849d8896d838d5c2735e8e549db24652a147ddc525edf72133e4b8ca9799",
    2: "ce8a333968eadbb21cbcb7f381b3a74fadc708f03811d3e6c8d9bccc52130b67",
    3: "d3e6442be54088c7f0127a7bce5cf4614de6886cb116ea4cd47de00b1a7378be",
    4: "bc5790c6e246b624ace2175c2a976e6b87cfeb103eaa2951a176c9c1fcb1c3de",
    5: "a12ef78c79a36fb22f1501a256e39efb93e844ee6053966af28875c860ef4f0d",
    6: "e9d9e2e74aba847cb45fa0f7ebd47217fb2bbaa908c309259f6b2dfbfa389aa5",
    7: "080f45a460c4c3429342659900309efbf45f0a076a8bfbdfc6d104a0ea6fedfb",
    8: "11cce7d6071fb26866ebc6c440d00097dc195f170339b15752b33e30f8f3c518",
    9: "69b87c1b11c320bcd23bed1a32311dcda5b8eff38db1111ff1fb682bbf1b3417",
    10: "8ea3a54c186573e1b761a47cf9efb3008d2cdaafad37fbabf7af1a7442f3f0c1",
    11: "790cdd31b8701ff9c3ed973c2960fcdc60d067f8b2c49341cecda94c9cdcb1b9",
    12: "2cbc6272773a2d838d92532042791a62c14012108a4bf30e1e1ce51eab3155df",
    13: "8828f0a42154aeceb47b434c56bb251a2a7c2bda6efa03c3a6a19d99b7729270",
    14: "a3f17b7d980434bccf9e4384467cac2bf5a214457829051b48d9406d2ba4785d",
    15: "24ca935156b8a1e46fa63c79285041001b5c50d5cd45b71f4d84328466bf5c50",
    16: "99192f4fc7c8b61d08e43fac3d3cfe74f2c36c463fcf98cda18d6f3c61593f7a",
}
"""SHA-256 of each migration that a release may have made: changed, they would never run again."""


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


def test_published_migrations_stay_as_they_are() -> None:
    """Whoever changes the schema adds a migration, with its digest here."""
    digests = {number: hashlib.sha256(text.encode()).hexdigest() for number, text in migrations()}
    assert digests == PUBLISHED


async def test_executions_of_before_get_their_cost(
    fresh: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Migration 10 adds up what steps say; an unknown price stays unknown, kept results are not."""
    with monkeypatch.context() as patch:
        patch.setattr(migrate, "migrations", lambda: [one for one in migrations() if one[0] < 10])
        await (await PostgresStore.open(fresh)).close()
    await ask(
        fresh,
        """WITH runs AS (INSERT INTO executions (id, owner_id, workflow_id, revision, accepted_at,
            masked, status, fence, trigger_source, capabilities, version, body)
            SELECT id, 'acc_1', 'wf_1', 1, 7, 0, 'FAILED', 0, 'manual', '[]', 1, '{}'
            FROM unnest(ARRAY['e_priced', 'e_unknown', 'e_free', 'e_none']) id)
        INSERT INTO step_results VALUES
            ('e_priced', 0, '{"started_at":7,"usage":{"cost_usd":"0.25"}}', 'null', NULL),
            ('e_priced', 1, '{"started_at":8,"usage":{"cost_usd":"0.000000000001"}}', 'null', NULL),
            ('e_priced', 2, '{"started_at":6,"usage":{"cost_usd":"9"}}', 'null', NULL),
            ('e_unknown', 0, '{"started_at":7,"usage":{"cost_usd":"1"}}', 'null', NULL),
            ('e_unknown', 1, '{"started_at":7,"usage":{"cost_usd":null}}', 'null', NULL),
            ('e_free', 0, '{"started_at":7,"usage":{"cost_usd":"0"}}', 'null', NULL),
            ('e_none', 0, '{"started_at":7,"usage":null}', 'null', NULL)""",
    )
    await (await PostgresStore.open(fresh)).close()
    found = await ask(fresh, "SELECT array_agg(cost ORDER BY id) FROM executions")
    assert found == [None, None, 250_000_000_001, -1]


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
    needs: a new kind or column needs a migration in `adapters_store/postgres/migrations`, too.
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
