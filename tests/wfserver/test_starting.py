"""How a server starts: what it answers before it is ready, and what it does not load."""

import asyncio
import socket
import urllib.request
from pathlib import Path

import pytest

from wfserver.compose import open_system
from wfserver.serving import server
from wfserver.serving.engine import new_runner
from wfserver.settings.record import settings_from

from .conftest import document, end, log_of, start

DEADLINE_S = 30
NOT_NEEDED = (
    "adapters_runtime.definition_yaml",
    "adapters_runtime.code.packages.environments",
    "adapters_store.memory",
    "argon2",
    "cryptography",
    "genai_prices",
    "httpx2",
    "jinja2",
    "jsonschema_rs",
    "pygments",
    "rich",
    "tomllib",
    "wfcore.memory.store",
    "wfcore.testing",
    "yaml",
    "zipfile",
)
"""
What a server can do without until somebody wants something that needs it. Each takes time at a
start, and memory as long as the server lives, up to 7 MB (`cryptography`). `zoneinfo` is not among
them: some release of a library that we allow loads it.
"""


@pytest.fixture(autouse=True)
def as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server in this process leaves its memory as it was."""
    monkeypatch.setattr(server, "settle_memory", lambda: None)


async def serve(
    data: Path, listener: socket.socket, ready: server.Ready, asked: asyncio.Event
) -> None:
    settings = settings_from({}, data=str(data))
    async with open_system(settings) as system:
        await server.answer(system, new_runner(system), [listener], ready, asked)


def healthz(listener: socket.socket) -> int:
    url = f"http://127.0.0.1:{listener.getsockname()[1]}/healthz"
    with urllib.request.urlopen(url, timeout=DEADLINE_S) as answer:
        return int(answer.status)


async def test_it_answers_while_isolation_is_tried_out(tmp_path: Path) -> None:
    """`/healthz` speaks of the process: it needs nobody to know yet how steps are isolated."""
    found, asked, stop = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def ready() -> None:
        asked.set()
        await found.wait()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        serving = asyncio.create_task(serve(tmp_path, listener, ready, stop))
        async with asyncio.timeout(DEADLINE_S):
            await asked.wait()
            assert await asyncio.to_thread(healthz, listener) == 200
            assert not found.is_set()
            found.set()
            stop.set()
            await serving


async def test_it_can_be_ended_before_it_is_ready(tmp_path: Path) -> None:
    """Asked to stop during a start it ends in order, and nobody is told that it was ready."""
    told, stop = asyncio.Event(), asyncio.Event()

    async def ready() -> None:
        stop.set()
        await asyncio.Event().wait()
        told.set()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        async with asyncio.timeout(DEADLINE_S):
            await serve(tmp_path, listener, ready, stop)
    assert not told.is_set()


async def test_where_isolation_cannot_be_tried_out_it_ends(tmp_path: Path) -> None:
    """A server that cannot find out how steps are isolated says why, and does not go on."""

    async def ready() -> None:
        raise PermissionError(13, "no such folders here", "steps")

    with socket.create_server(("127.0.0.1", 0)) as listener:
        async with asyncio.timeout(DEADLINE_S):
            with pytest.raises(PermissionError, match="no such folders"):
                await serve(tmp_path, listener, ready, asyncio.Event())


def test_what_is_not_needed_yet_is_not_loaded(tmp_path: Path) -> None:
    """Up to its first answer a server loads nothing that only some requests or steps need."""
    data = tmp_path / "data"
    process = start("serve", "--port", "0", "--json", data=data, python=("-X", "importtime"))
    try:
        url = document(process, data)["url"]
        with urllib.request.urlopen(f"{url}/healthz", timeout=DEADLINE_S) as answer:
            assert answer.status == 200
        lines = log_of(data).read_text().splitlines()
    finally:
        end(process)
    loaded = {line.rpartition("|")[2].strip() for line in lines}
    assert "adapters_http.app" in loaded
    assert loaded.isdisjoint(NOT_NEEDED)
