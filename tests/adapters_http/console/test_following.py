"""The streams that lists follow: they say that something changed, and never what."""

import asyncio
import re
from pathlib import Path

import pytest

from adapters_http.app import HttpConfig
from adapters_http.console import hints
from adapters_http.console.routes import PAGES
from tests.support.http_world import World, a_world
from wfcore.model.access import OPERATOR
from wfcore.model.execution import ExecutionStatus
from wfcore.usecases.executions.executions import cancel_execution

HTML = {"Accept": "text/html"}
PATHS = {one.path for one in PAGES}
OPERATED = ("keys", "webhooks", "schedules", "audit", "secrets", "people", "notices")


@pytest.fixture
async def world(tmp_path: Path):
    async with a_world(tmp_path, HttpConfig(console=True)) as made:
        yield made


async def read(world: World, path: str, headers: dict[str, str]) -> tuple[str, str]:
    """The address of the stream beside a list, and the mark of what the page shows."""
    page = (await world.http.get(path, headers={**headers, **HTML})).text
    ((live, mark),) = re.findall(r'data-live="([^"]+)" data-after="(\w+)"', page)
    return live.replace("&amp;", "&"), mark


async def told(world: World, live: str, mark: str, headers: dict[str, str]) -> list[str]:
    """The first event of a stream beside a page that was made at *mark*: its number and name."""
    found = list[str]()
    async with world.http.stream("GET", f"{live}&seen={mark}", headers=headers) as answer:
        assert answer.status_code == 200, live
        async for line in answer.aiter_lines():
            found += [line] if line.startswith(("id:", "event:")) else []
            if len(found) == 2:
                break
    return found


def test_every_list_has_a_stream():
    """All lists that a person may leave open are followed, those of operators, too."""
    lists = ("/inbox", "/executions", "/workflows", *(f"/operate/{one}" for one in OPERATED))
    assert {f"{path}/live" for path in lists} <= PATHS


@pytest.mark.parametrize(
    "path",
    [
        *("/executions", "/executions?status=AWAITING_APPROVAL", "/workflows"),
        *("/inbox", "/inbox?view=decided", "/operate/keys", "/operate/webhooks", "/operate/audit"),
    ],
)
async def test_any_change_of_a_shown_row_is_told(
    world: World, monkeypatch: pytest.MonkeyPatch, path: str
):
    """
    The end of an older row, while the newest stays as it is, is told as a new one is; so is what
    waits for the reader, whatever list is open. PG-7.
    """
    monkeypatch.setattr(hints, "POLL_MS", 1)
    headers = await world.sign_in()
    older, _ = await world.paused()
    await world.paused()
    async with asyncio.timeout(60):
        live, before = await read(world, path, headers)
        assert (await read(world, path, headers))[1] == before
        waiting = asyncio.create_task(told(world, live, before, headers))
        run = await cancel_execution(world.services, OPERATOR, older)
        assert run.status is ExecutionStatus.CANCELLED
        after, kind = await waiting
        assert after != f"id: {before}"
        assert kind == "event: changed"
        # What changes in several commits may be told after each of them.
        while after != f"id: {(await read(world, path, headers))[1]}":
            after, _ = await told(world, live, after.removeprefix("id: "), headers)


@pytest.mark.parametrize("path", ["/inbox", "/executions", "/operate/keys", "/operate/audit"])
async def test_a_list_is_told_of_what_came_before_its_stream(world: World, path: str):
    """What changes between a page and its first look, or while it is away, is told at once."""
    headers = await world.sign_in()
    async with asyncio.timeout(60):
        live, before = await read(world, path, headers)
        await world.paused()
        await world.new_key()
        id, _ = await told(world, live, before, headers)
        assert id == f"id: {(await read(world, path, headers))[1]}"
