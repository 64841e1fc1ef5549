"""A database is recovered to a moment, with the settings that the documentation shows."""

import asyncio
import os
import pwd
import re
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import asyncpg
import pytest

from adapters_store.postgres.store import PostgresStore
from tests.docs.pages import DOCS, blocks
from tests.support.distribution import program
from tests.support.postgres_server import USER, Cluster, cluster
from wfcore.model.access import Account
from wfcore.testing import builders as make
from wfcore.testing.contracts.keeping import keep

ARCHIVING, RECOVERING = (
    block.text
    for block in blocks(DOCS / "howto" / "back-up-postgresql.md")
    if block.text.startswith("# postgresql.")
)
TARGET = "2026-11-22 14:00:00+00"
SAID = re.compile(r"^(\w+) = '?(.*?)'?$", re.MULTILINE)


def own(folder: Path) -> None:
    """*folder* is the server's."""
    if not os.geteuid():
        shutil.chown(folder, USER, pwd.getpwnam(USER).pw_gid)


@pytest.fixture
def shelf() -> Iterator[Path]:
    """A folder for the archive and the base copy, with a short name: a socket will be in it."""
    made = Path(tempfile.mkdtemp(prefix="wfpg"))
    own(made)
    (made / "wal").mkdir()
    own(made / "wal")
    yield made
    shutil.rmtree(made)


@pytest.fixture
def archived(shelf: Path) -> Iterator[Cluster]:
    """A server that archives its log."""
    settings = dict(SAID.findall(ARCHIVING.replace("/srv", str(shelf))))
    assert settings["archive_mode"] == "on"
    yield from cluster(**settings)


def keep_account(url: str, id: str) -> None:
    """Store one."""

    async def kept() -> None:
        store = await PostgresStore.open(url)
        await keep(store, make.account(id))
        await store.close()

    asyncio.run(kept())


def accounts(url: str) -> list[str]:
    """Ids of those that are stored."""

    async def found() -> list[str]:
        store = await PostgresStore.open(url)
        stored = await store.view().some(Account, ["acc_1", "acc_2", "acc_3", "acc_4"])
        await store.close()
        return [one.id for one in stored]

    return asyncio.run(found())


def moment_of(url: str) -> str:
    """The database's time."""

    async def asked() -> str:
        connection = await asyncpg.connect(url)
        try:
            return str(await connection.fetchval("SELECT clock_timestamp()::text"))
        finally:
            await connection.close()

    return asyncio.run(asked())


def copy_base(made: Cluster, to: Path) -> None:
    """As the page does."""
    command = [program("pg_basebackup", "postgresql-client"), "--checkpoint=fast"]
    places = [f"--dbname={made.url('postgres')}", f"--pgdata={to}"]
    subprocess.run([*command, *places], check=True, cwd=to.parent, **made.as_user())  # type: ignore[call-overload]


def test_a_database_is_recovered_to_the_moment_before_a_mistake(
    archived: Cluster, shelf: Path
) -> None:
    """What was stored after the base copy and before the moment is there, nothing later is."""
    url = archived.url("postgres")
    keep_account(url, "acc_1")
    copy_base(archived, shelf / "data")
    keep_account(url, "acc_2")
    moment = moment_of(url)
    keep_account(url, "acc_3")
    archived.stop(signal.SIGINT)  # the archive gets the rest

    assert TARGET in RECOVERING
    with (shelf / "data" / "postgresql.auto.conf").open("a") as settings:
        settings.write(RECOVERING.replace("/srv", str(shelf)).replace(TARGET, moment))
    (shelf / "data" / "recovery.signal").touch()
    own(shelf / "data" / "recovery.signal")
    again = Cluster(shelf, {"hot_standby": "off"})  # no answer before it is recovered
    try:
        again.start()
        assert accounts(again.url("postgres")) == ["acc_1", "acc_2"]
        keep_account(again.url("postgres"), "acc_4")
    finally:
        again.stop()
