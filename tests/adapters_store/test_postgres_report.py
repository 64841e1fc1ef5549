"""What `doctor` says of a PostgreSQL store, directly and behind poolers of both modes."""

import asyncio
import json
import tempfile
from pathlib import Path

import pytest

from adapters_store.postgres import report as reporting
from adapters_store.postgres.connection import close_pool, lent, open_pool
from adapters_store.postgres.hints import PostgresHints
from adapters_store.postgres.report import FAR_MS, Between, Report, between_here_and, report
from adapters_store.postgres.store import PostgresStore
from tests.support.postgres_server import Cluster, emptied
from wfcore.time import EpochMs
from wfserver.cli import main

from .pooler import NEWEST, OLDEST, SESSION, SINGLE, pooled
from .wire import Wire

POOLERS = {
    SESSION: Between.SESSION,
    NEWEST: Between.TRANSACTION,
    OLDEST: Between.TRANSACTION,
    SINGLE: Between.TRANSACTION,
}
FLUSHES, WAITS = "current_setting('fsync')", "current_setting('synchronous_commit')"


@pytest.fixture
async def careful(database: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """A database whose server, as it says, keeps what it answers; that of tests does not."""
    monkeypatch.setattr(reporting, "ABOUT", reporting.ABOUT.replace(FLUSHES, "'on'"))
    monkeypatch.setattr(reporting, "ABOUT", reporting.ABOUT.replace(WAITS, "'on'"))
    return await emptied(database)


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reporting, "HEARD_S", 60.0)


def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """For what is never heard."""
    monkeypatch.setattr(reporting, "HEARD_S", 0.1)


async def told(url: str, direct: str | None = None, ahead: int = 0) -> Report:
    """What is said by somebody whose clock is *ahead*."""
    store = await PostgresStore.open(url)
    try:
        return await report(store, lambda: EpochMs(store.now() + ahead), url, direct)
    finally:
        await store.close()


async def test_a_server_that_is_set_right_needs_nothing(careful: str) -> None:
    """Its version, that hints arrive, and how far the clocks are apart; no cure."""
    said = await told(careful)
    assert said.cure is None
    for part in ("PostgreSQL ", "writable", "connected directly", "hints are heard", "+0.0 s"):
        assert part in said.detail


@pytest.mark.parametrize("ahead", [FAR_MS + 1_000, -FAR_MS - 1_000])
async def test_a_clock_that_is_far_away_is_named(careful: str, ahead: int) -> None:
    """Ahead or behind, by how much, and what keeps clocks together."""
    said = await told(careful, ahead=ahead)
    assert f"{ahead / 1_000:+.1f} s" in said.detail
    assert said.cure is not None
    assert "NTP" in said.cure


@pytest.mark.parametrize("other", [FLUSHES, WAITS])
async def test_a_server_that_may_forget_is_the_gravest(
    database: str, monkeypatch: pytest.MonkeyPatch, other: str
) -> None:
    """That of tests does not flush, and its commits do not wait: each of them alone is said."""
    monkeypatch.setattr(reporting, "ABOUT", reporting.ABOUT.replace(other, "'on'"))
    cure = (await told(await emptied(database), ahead=60_000)).cure
    assert cure is not None
    assert cure.startswith("set fsync and synchronous_commit to on")


async def test_a_server_that_is_too_old_is_named(
    careful: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the oldest version that is tested."""
    monkeypatch.setattr(reporting, "OLDEST", 990_000)
    assert (await told(careful)).cure == "use PostgreSQL 99 or newer: older ones are not tested"


async def test_hints_that_do_not_arrive_are_said(
    careful: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where nothing is in between: that is tried, not concluded."""

    async def swallowed(*_: object) -> None:
        pass

    impatient(monkeypatch)
    monkeypatch.setattr(PostgresHints, "_send", swallowed)
    said = await told(careful)
    assert "hints are not heard" in said.detail
    assert said.cure is not None
    assert "LISTEN and NOTIFY" in said.cure


@pytest.mark.parametrize("kind", POOLERS)
async def test_a_pooler_is_recognized_with_its_mode(careful: str, kind: str) -> None:
    """
    Whatever connection it gives next, the newest, the oldest, or the only one; also while somebody
    else is in a transaction.
    """
    async with pooled(careful, kind) as (url, _):
        pool = await open_pool(url)
        assert await between_here_and(pool) is POOLERS[kind]
        async with lent(pool) as another, another.transaction():
            await another.fetchval("SELECT 1")
            assert await between_here_and(pool) is POOLERS[kind]
        await close_pool(pool)


async def test_a_way_past_nothing_is_no_pooler(careful: str) -> None:
    """What forwards bytes and keeps the server's process ids is no pooler."""
    server = Path(careful.rpartition("host=")[2])
    with tempfile.TemporaryDirectory(prefix="wfpg") as folder:
        wire = Wire(server, Path(folder))
        await wire.lay()
        said = await told(careful.replace(str(server), folder))
        await wire.cut()
    assert said.cure is None
    assert "connected directly" in said.detail


async def test_in_session_mode_hints_are_heard(careful: str) -> None:
    """So that nothing needs to be set."""
    async with pooled(careful, SESSION) as (url, _):
        said = await told(url)
    assert said.cure is None
    assert "behind a pooler in session mode; hints are heard;" in said.detail


@pytest.mark.parametrize("kind", [NEWEST, OLDEST])
async def test_in_transaction_mode_hints_need_another_way(
    careful: str, server: Cluster, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Which is said; with it all is well, unless it leads elsewhere."""
    async with pooled(careful, kind) as (url, _):
        well = await told(url, careful)
        impatient(monkeypatch)
        lacking = await told(url)
        elsewhere = await told(url, server.url("postgres"))
    assert well.cure is None
    assert "in transaction mode; hints are heard past it;" in well.detail
    assert lacking.cure is not None
    assert lacking.cure.startswith("set WFCORE_STORE_DIRECT to a URL past the pooler")
    assert elsewhere.cure is not None
    assert elsewhere.cure.startswith("let WFCORE_STORE_DIRECT lead to the same database")


async def test_the_command_line_says_it_of_a_database(
    careful: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """`wfcore doctor` on a PostgreSQL store behind a pooler, with a way past it."""
    monkeypatch.setenv("WFCORE_STORE_DIRECT", careful)
    async with pooled(careful, OLDEST) as (url, _):
        line = ("--data", str(tmp_path / "data"), "--store", url, "doctor", "--json")
        await asyncio.to_thread(main, line)
    (found,) = [
        one for one in json.loads(capsys.readouterr().out)["checks"] if one["name"] == "store"
    ]
    assert found["detail"].startswith(f"{url}: PostgreSQL ")
    assert "in transaction mode; hints are heard past it; this machine's" in found["detail"]
    assert (found["ok"], found["cure"]) == (True, None)
