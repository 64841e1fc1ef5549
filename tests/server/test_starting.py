"""How a server starts: what it answers before it is ready, and what it does not load."""

import asyncio
import gc
import os
import signal
import socket
import urllib.request
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from wfserver import answering
from wfserver.collecting import no_collecting
from wfserver.compose import open_system
from wfserver.engine import new_runner
from wfserver.settings import settings_from

from .conftest import document, end, log_of, start

DEADLINE_S = 30
NOT_NEEDED = (
    "adapters_runtime.definition_text",
    "adapters_runtime.packages.environments",
    "adapters_store.memory",
    "genai_prices",
    "httpx2",
    "jinja2",
    "jsonschema_rs",
    "pygments",
    "rich",
    "structlog",
    "wfcore.memory.store",
    "wfcore.testing",
    "yaml",
)
"""What a server can do without until somebody wants something that needs it."""


@pytest.fixture(autouse=True)
def as_before(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A server in this process leaves its signals and its memory as they were."""
    monkeypatch.setattr(answering, "settle_memory", lambda: None)
    number = signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)
    yield
    signal.signal(signal.SIGTERM, number[0])
    signal.signal(signal.SIGINT, number[1])


async def serve(data: Path, listener: socket.socket, ready: answering.Ready) -> None:
    settings = settings_from({}, data=str(data))
    async with open_system(settings) as system:
        await answering.answer(system, new_runner(system), listener, ready)


def healthz(listener: socket.socket) -> int:
    url = f"http://127.0.0.1:{listener.getsockname()[1]}/healthz"
    with urllib.request.urlopen(url, timeout=DEADLINE_S) as answer:
        return int(answer.status)


async def test_it_answers_while_isolation_is_tried_out(tmp_path: Path) -> None:
    """`/healthz` speaks of the process: it needs nobody to know yet how steps are isolated."""
    found, asked = asyncio.Event(), asyncio.Event()

    async def ready() -> None:
        asked.set()
        await found.wait()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        serving = asyncio.create_task(serve(tmp_path, listener, ready))
        async with asyncio.timeout(DEADLINE_S):
            await asked.wait()
            assert await asyncio.to_thread(healthz, listener) == 200
            assert not found.is_set()
            found.set()
            os.kill(os.getpid(), signal.SIGTERM)
            await serving


async def test_it_can_be_ended_before_it_is_ready(tmp_path: Path) -> None:
    """SIGTERM during a start ends it in order, and nobody is told that it was ready."""
    told = asyncio.Event()

    async def ready() -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        await asyncio.Event().wait()
        told.set()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        async with asyncio.timeout(DEADLINE_S):
            await serve(tmp_path, listener, ready)
    assert not told.is_set()


async def test_where_isolation_cannot_be_tried_out_it_ends(tmp_path: Path) -> None:
    """A server that cannot find out how steps are isolated says why, and does not go on."""

    async def ready() -> None:
        raise PermissionError(13, "no such folders here", "steps")

    with socket.create_server(("127.0.0.1", 0)) as listener:
        async with asyncio.timeout(DEADLINE_S):
            with pytest.raises(PermissionError, match="no such folders"):
                await serve(tmp_path, listener, ready)


def test_a_start_that_fails_leaves_collecting_on() -> None:
    """Garbage is looked for again after a start, however it ended."""
    during = []
    with suppress(KeyError), no_collecting():
        during.append(gc.isenabled())
        raise KeyError
    assert (during, gc.isenabled()) == ([False], True)


def test_what_is_not_needed_yet_is_not_loaded(tmp_path: Path) -> None:
    """Up to its first answer a server loads nothing that only some requests or steps need."""
    data = tmp_path / "data"
    process = start("serve", "--port", "0", "--json", data=data, python=("-X", "importtime"))
    try:
        url = document(process, data)["url"]
        with urllib.request.urlopen(f"{url}/healthz", timeout=DEADLINE_S) as answer:
            assert answer.status == 200
    finally:
        end(process)
    loaded = {line.rpartition("|")[2].strip() for line in log_of(data).read_text().splitlines()}
    assert "adapters_http.app" in loaded
    assert loaded.isdisjoint(NOT_NEEDED)
