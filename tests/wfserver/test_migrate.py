"""`wfcore migrate`, and the commands that leave a store of an older version as it is."""

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path

import asyncpg
import pytest

from adapters_store.sqlite import migrate
from adapters_store.sqlite.store import SqliteStore
from tests.support.postgres_server import Cluster
from wfcore.testing import builders as make
from wfcore.testing.contracts.keeping import keep
from wfcore.time import EpochMs
from wfserver.data.seal_keys import sealer_of
from wfserver.settings.record import Settings

from .conftest import Call

FAR = EpochMs(2**52)


@pytest.fixture
def old(tmp_path: Path, call: Call, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The data folder of the version before: this one has one migration more."""
    data, real = tmp_path / "old", migrate.migrations
    made = call("--data", str(data), "account", "create", "old@example.org")
    assert made.status == 0, made.err
    more = (real()[-1][0] + 1, "CREATE TABLE more (x TEXT);\n")
    monkeypatch.setattr(migrate, "migrations", lambda: [*real(), more])
    return data


def version(data: Path) -> int:
    with closing(sqlite3.connect(data / "wfcore.db")) as database:
        return int(database.execute("PRAGMA user_version").fetchone()[0])


LOOKS = [("doctor",), ("account", "list"), ("seal", "status"), ("execution", "list")]


@pytest.mark.parametrize("words", LOOKS, ids=" ".join)
def test_looking_migrates_nothing(call: Call, old: Path, words: tuple[str, ...]) -> None:
    """ST-6: exit status 1, with the command that does it; the older version still works with it."""
    before = version(old)
    said = call("--data", str(old), *words)
    assert said.status == 1
    assert "wfcore migrate" in said.out + said.err
    assert version(old) == before


def test_doctor_makes_no_table_in_an_empty_database(
    call: Call, server: Cluster, tmp_path: Path
) -> None:
    """ST-6: whoever only looks at a database leaves it as it was; the first start makes tables."""
    server.execute("CREATE DATABASE looked")
    try:
        call("--data", str(tmp_path), "--store", server.url("looked"), "doctor")
        assert asyncio.run(_tables(server.url("looked"))) == 0
    finally:
        server.execute("DROP DATABASE looked WITH (FORCE)")


async def _tables(url: str) -> int:
    connection = await asyncpg.connect(url)
    try:
        sql = "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'"
        return int(await connection.fetchval(sql))
    finally:
        await connection.close()


def test_the_command_migrates_where_no_server_is(call: Call, old: Path) -> None:
    """Not beside one that announced itself, be it of another data folder; then everything works."""
    before = version(old)

    async def announced(there: bool) -> None:
        connection = sqlite3.connect(old / "wfcore.db", isolation_level=None)
        body = f'{{"id":"w","host":"far","pid":7,"address":"http://far","seen_until":{FAR}}}'
        sql = "INSERT INTO nodes VALUES ('w', 1, ?)" if there else "DELETE FROM nodes WHERE ? > ''"
        connection.execute(sql, (body,))
        connection.close()

    asyncio.run(announced(True))
    refused = call("--data", str(old), "migrate")
    assert refused.status == 1
    assert "worked on by far (process 7) http://far" in refused.err
    assert version(old) == before
    asyncio.run(announced(False))
    assert call("--data", str(old), "migrate").status == 0
    assert version(old) == before + 1
    assert "old@example.org" in call("--data", str(old), "account", "list").out


def test_a_move_waits_for_all_servers_and_is_audited(
    call: Call, wfcore: Call, applied: str, data: Path, tmp_path: Path
) -> None:
    """One on another machine counts as well; the log that was moved says where it went."""

    async def announce() -> None:
        store = await SqliteStore.open(data / "wfcore.db", sealer=sealer_of(Settings(data)))
        await keep(store, make.node("w", host="far", seen_until=FAR))
        await store.close()

    asyncio.run(announce())
    refused = wfcore("move", str(tmp_path / "new"))
    assert refused.status == 1
    assert "worked on by far" in refused.err
    with closing(sqlite3.connect(data / "wfcore.db", isolation_level=None)) as database:
        database.execute("DELETE FROM nodes")
    assert wfcore("move", str(tmp_path / "new")).status == 0
    new = ("--data", str(tmp_path / "new"))
    entries = call(*new, "audit", "--json").json["items"]
    assert [one["target"] for one in entries if one["event"] == "store.move"] == [
        str(tmp_path / "new" / "wfcore.db")
    ]
    assert call(*new, "audit", "verify").status == 0
