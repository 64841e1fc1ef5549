"""The streams that lists follow: they say that something changed, and never what."""

import asyncio
import re
from pathlib import Path

import pytest

from adapters_http.app import HttpConfig
from adapters_http.console import executions
from http_world import World, a_world

HTML = {"Accept": "text/html"}


@pytest.fixture
async def world(tmp_path: Path):
    async with a_world(tmp_path, HttpConfig(console=True)) as made:
        yield made


@pytest.mark.parametrize(
    ("path", "grew"), [("/live", "executions"), ("/operate/audit/live", "audit")]
)
async def test_a_list_is_told_that_it_grew(
    world: World, monkeypatch: pytest.MonkeyPatch, path: str, grew: str
):
    """The stream of the lists, and that of the log, name what grew as soon as it does. AL-1."""
    monkeypatch.setattr(executions, "LOOK_MS", 1)
    headers, workflow = await world.sign_in(), await world.workflow()
    opened = asyncio.Event()

    async def told() -> str | None:
        async with world.http.stream("GET", path, headers=headers) as answer:
            async for line in answer.aiter_lines():
                opened.set()
                if line.startswith("event: "):
                    return line
        return None

    async with asyncio.timeout(60):
        waiting = asyncio.create_task(told())
        await opened.wait()
        while not waiting.done():
            await (world.start(workflow) if path == "/live" else world.new_key())
        assert await waiting == f"event: {grew}"


@pytest.mark.parametrize(
    ("path", "live"),
    [("/inbox", "/live"), ("/executions", "/live"), ("/operate/audit", "/operate/audit/live")],
)
async def test_a_list_is_told_of_what_came_before_its_stream(world: World, path: str, live: str):
    """What changes between a page and its first look, or while it is away, is told at once."""
    headers = await world.sign_in()

    async def mark() -> str:
        page = (await world.http.get(path, headers={**headers, **HTML})).text
        (found,) = re.findall(r'data-after="(\w+)"', page)
        return found

    async def first(mark: str) -> str:
        asked = {"params": {"after": mark}, "headers": headers}
        async with world.http.stream("GET", live, **asked) as answer:
            return await anext(line async for line in answer.aiter_lines() if line[:3] == "id:")

    async with asyncio.timeout(60):
        before = await mark()
        assert await mark() == before
        await world.paused()
        await world.new_key()
        assert await first(before) == f"id: {await mark()}"
