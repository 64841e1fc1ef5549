"""Whether a server says that it is ready: only while its store takes writes."""

import asyncio
import socket
import urllib.error
import urllib.request
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.support.postgres_server import Cluster, prepared
from wfcore.errors import StoreUnavailable
from wfserver.compose import open_system
from wfserver.serving import server as serving
from wfserver.serving.engine import new_runner
from wfserver.settings.record import Settings, settings_from

DEADLINE_S = 60
KILL = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{}'"


@pytest.fixture(autouse=True)
def as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server in this process leaves its memory as it was."""
    monkeypatch.setattr(serving, "settle_memory", lambda: None)


@asynccontextmanager
async def served(settings: Settings) -> AsyncIterator[str]:
    """The URL of a server's `/readyz`."""
    began, stop = asyncio.Event(), asyncio.Event()

    async def ready() -> None:
        began.set()

    async def serve() -> None:
        async with open_system(settings) as system:
            await serving.answer(system, new_runner(system), [listener], ready, stop)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        task = asyncio.create_task(serve())
        async with asyncio.timeout(DEADLINE_S):
            await began.wait()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}/readyz"
        finally:
            stop.set()
            await task


async def status_of(url: str) -> int:
    """The status of an answer."""

    def ask() -> int:
        try:
            with urllib.request.urlopen(url, timeout=DEADLINE_S) as answer:
                return int(answer.status)
        except urllib.error.HTTPError as error:
            with error:
                return error.code

    return await asyncio.to_thread(ask)


async def test_a_server_whose_file_was_moved_is_not_ready(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it would write could be found by nobody."""
    monkeypatch.setattr(serving, "_PROBE_S", 0)
    async with served(settings_from({}, data=str(tmp_path / "data"))) as url:
        assert await status_of(url) == 200
        (tmp_path / "data" / "wfcore.db").rename(tmp_path / "aside")
        assert await status_of(url) == 503


async def test_a_server_whose_database_is_to_be_read_only_is_not_ready(
    server: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after a change of the primary, or by whoever administers the database."""
    monkeypatch.setattr(serving, "_PROBE_S", 0)
    name = "read_only"
    store = await asyncio.to_thread(prepared, server, name)
    settings = settings_from({"WFCORE_ROLE": "api"}, data=str(tmp_path / "data"), store=store)
    try:
        async with served(settings) as url:
            assert await status_of(url) == 200
            for sql in (
                f"ALTER DATABASE {name} SET default_transaction_read_only = on",
                KILL.format(name),
            ):
                await asyncio.to_thread(server.execute, sql)
            assert await status_of(url) == 503
            assert await status_of(url) == 503
    finally:
        await asyncio.to_thread(server.execute, f"DROP DATABASE {name} WITH (FORCE)")


async def test_what_a_probe_has_found_holds_for_two_seconds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However often readiness is asked, the store is written to once; trouble holds as well."""
    now, probes, away = 1_000.0, 0, False

    async def ping() -> None:
        nonlocal probes
        probes += 1
        if away:
            raise StoreUnavailable(detail="disk is full")

    monkeypatch.setattr(serving, "monotonic", lambda: now)
    async with open_system(settings_from({}, data=str(tmp_path), store="memory:")) as system:
        monkeypatch.setattr(system.services.store, "ping", ping)
        leaving = serving._Shutdown(system, None)

        async def ready() -> bool:
            try:
                await leaving.check_ready()
            except StoreUnavailable:
                return False
            return True

        assert [await ready(), await ready(), probes] == [True, True, 1]
        away, now = True, now + 1.9
        assert [await ready(), probes] == [True, 1]
        now += 0.1
        assert [await ready(), await ready(), probes] == [False, False, 2]
        away, now = False, now + 1.9
        assert [await ready(), probes] == [False, 2]
        now += 0.1
        assert [await ready(), await ready(), probes] == [True, True, 3]
