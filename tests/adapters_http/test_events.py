"""The event stream of an execution."""

import asyncio
import json
import sqlite3
from collections.abc import Awaitable, Callable
from contextlib import closing
from pathlib import Path
from typing import Any, TypeAlias

import httpx
import pytest

from adapters_http.app import HttpConfig
from adapters_http.console import hints
from adapters_http.handlers import events
from adapters_http.request import READMIT_S
from tests.support.http_world import World, a_world, bearer, code
from wfcore.model.access import OPERATOR, AccountStatus, Scope
from wfcore.model.execution import Execution
from wfcore.ports.runtime import StepEnd
from wfcore.time import HOUR
from wfcore.usecases.accounts import keys
from wfcore.usecases.accounts.accounts import set_account
from wfcore.usecases.accounts.sessions import end_sessions
from wfcore.usecases.audit.auditing import UNKNOWN
from wfcore.usecases.executions.executions import STILL_MS

Ending: TypeAlias = Callable[[], Awaitable[None]]


def events_in(text: str) -> list[dict]:
    """The events of a stream's text, each with the id and name of its frame."""
    found = []
    for frame in text.split("\n\n"):
        fields = dict(line.split(": ", 1) for line in frame.splitlines() if ": " in line)
        if "data" in fields:
            data = json.loads(fields["data"])
            assert (fields["id"], fields["event"]) == (str(data["number"]), data["kind"])
            found.append(data)
    return found


async def test_the_stream_tells_everything_and_ends(world: World):
    """Every event in order, numbered from 1, until the terminal one. EX-20."""
    id = await world.finished({"a": 1})
    answer = await world.get(f"/api/v1/executions/{id}/events")
    assert answer.headers["content-type"].startswith("text/event-stream")
    assert answer.headers["cache-control"] == "no-store"
    events = events_in(answer.text)
    assert [event["number"] for event in events] == [1, 2, 3, 4, 5]
    assert [event["kind"] for event in events] == [
        "execution.pending", "execution.running", "step.started", "step.completed",
        "execution.completed",
    ]  # fmt: skip
    assert all(event["executionId"] == id for event in events)


async def test_a_reader_goes_on_where_it_was(world: World):
    """Last-Event-ID resumes after that event; after the last one there is nothing: 204. EX-20."""
    id = await world.finished()
    url = f"/api/v1/executions/{id}/events"
    for seen, numbers in ((0, [1, 2, 3, 4, 5]), (3, [4, 5]), (4, [5])):
        headers = {**world.bearer, "Last-Event-ID": str(seen)}
        answer = await world.get(url, headers=headers)
        assert [event["number"] for event in events_in(answer.text)] == numbers
    for seen in ("5", "99"):
        answer = await world.get(url, headers={**world.bearer, "Last-Event-ID": seen})
        assert (answer.status_code, answer.content) == (204, b"")
    for odd in ("-1", "x", "1.5", "9" * 30):
        answer = await world.get(url, headers={**world.bearer, "Last-Event-ID": odd})
        assert answer.status_code == 400


async def test_the_stream_follows_a_running_execution(world: World):
    """Events come while things happen, and the stream ends with the execution."""
    id = await world.start(await world.workflow(code("one"), code("two")))
    url = f"/api/v1/executions/{id}/events"
    async with world.http.stream("GET", url, headers=world.bearer) as answer:
        chunks = answer.aiter_text()
        text = ""
        while "execution.pending" not in text:
            text += await anext(chunks)
        await world.run(StepEnd(1), StepEnd(2))
        async for chunk in chunks:
            text += chunk
    assert events_in(text)[-1]["kind"] == "execution.completed"


async def test_a_reader_that_leaves_is_forgotten(world: World):
    """Many readers that go away leave a server that answers, and end with it."""
    id = await world.start(await world.workflow())
    url = f"/api/v1/executions/{id}/events"
    for _ in range(5):
        async with (
            httpx.AsyncClient(base_url=world.url) as http,
            http.stream("GET", url, headers=world.bearer) as answer,
        ):
            assert answer.status_code == 200
            await anext(answer.aiter_text())
    assert (await world.get("/healthz")).status_code == 200


async def test_a_head_of_the_stream_ends_at_once(world: World):
    """HEAD answers with the stream's type and does not follow."""
    id = await world.start(await world.workflow())
    asked = world.http.head(f"/api/v1/executions/{id}/events", headers=world.bearer)
    answer = await asyncio.wait_for(asked, 60)
    assert answer.headers["content-type"].startswith("text/event-stream")


async def test_a_last_event_that_cannot_be_read_does_not_keep_the_stream_open(world: World):
    """Once an execution has ended and nothing readable is left, its stream ends. EX-20."""
    id = await world.finished()
    async with world.services.store.view() as view:
        last = (await view.get(Execution, id)).events
    with closing(sqlite3.connect(world.services.store.path)) as connection, connection:
        connection.execute("UPDATE events SET data = '{' WHERE number = ?", (last,))
    async with asyncio.timeout(60):
        answer = await world.get(f"/api/v1/executions/{id}/events")
    assert [event["number"] for event in events_in(answer.text)] == list(range(1, last))


async def ended(world: World, path: str, headers: dict[str, str], end: Ending) -> str:
    """What a stream says once *end* has been called in the middle of it; it must come to an end."""
    async with world.http.stream("GET", path, headers=headers) as answer:
        assert answer.status_code == 200
        chunks = answer.aiter_text()
        text = await anext(chunks)
        await end()
        async with asyncio.timeout(30):
            async for chunk in chunks:
                text += chunk
    return text


@pytest.fixture
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Streams and waits look without a pause whether their credential is good."""
    monkeypatch.setattr("adapters_http.request.READMIT_S", 0)
    monkeypatch.setattr("wfcore.usecases.executions.executions.STILL_MS", 10)
    for place in ("handlers.events", "console.hints", "console.execution"):
        monkeypatch.setattr(f"adapters_http.{place}.POLL_MS", 10)
    monkeypatch.setattr("adapters_http.console.review_rows.POLL_MS", 10)


def test_streams_look_often_enough() -> None:
    """A stream sees within five seconds that its credential is over. SE-12."""
    assert READMIT_S + max(hints.POLL_MS, events.POLL_MS) / 1_000 <= 5
    assert STILL_MS < 5_000


@pytest.mark.usefixtures("often")
async def test_a_stream_ends_with_its_key(world: World):
    """Revoked, expired, or of a disabled account: the stream is over, unfinished. SE-12."""
    id = await world.start(await world.workflow())
    path = f"/api/v1/executions/{id}/events"

    async def disabled() -> None:
        await set_account(world.services, OPERATOR, world.ann.id, status=AccountStatus.DISABLED)

    async def revoked() -> None:
        await keys.revoke_key(world.services, OPERATOR, brief.key.id)

    async def expired() -> None:
        world.clock.advance(HOUR)

    for end in (revoked, expired, disabled):
        scopes = Scope.ordinary()
        brief = await keys.create_key(world.services, world.ann.id, "brief", scopes, HOUR)
        text = await ended(world, path, bearer(brief.text), end)
        assert "execution.completed" not in text
        refused = await world.http.get(path, headers=bearer(brief.text))
        assert refused.status_code == (403 if end is disabled else 401)


@pytest.mark.usefixtures("often")
async def test_a_live_page_ends_with_its_session(tmp_path: Path):
    """Signed out, everywhere or here, or idle for too long: it tells nothing more. SE-1, SE-12."""
    async with a_world(tmp_path, HttpConfig(console=True)) as world:

        async def out() -> None:
            await end_sessions(world.services, OPERATOR, world.ann.id, UNKNOWN)

        async def idle() -> None:
            world.clock.advance(13 * HOUR)

        for place in ("/executions/{}/live", "/executions/live{:.0}{:.0}", "/approvals/{1}/live"):
            for end in (out, idle):
                path = place.format(*await world.paused())
                headers = await world.sign_in()
                assert "event: end" not in await ended(world, path, headers, end)
                assert (await world.http.get(path, headers=headers)).status_code in (303, 401)


@pytest.mark.usefixtures("often")
async def test_a_live_list_that_is_dear_ends_with_its_session(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """It looks seldom, and is over as soon as any other: between two looks, too. SE-12."""
    monkeypatch.setattr("adapters_http.console.hints.IDLE", 1e9)
    async with a_world(tmp_path, HttpConfig(console=True)) as world:

        async def out() -> None:
            await end_sessions(world.services, OPERATOR, world.ann.id, UNKNOWN)

        headers = await world.sign_in()
        assert "changed" not in await ended(world, "/executions/live", headers, out)


def noted(follow: Callable[..., Any], begins: asyncio.Event) -> Callable[..., Any]:
    """The same, and says that somebody begins to wait."""

    def and_said(id: str) -> Any:
        begins.set()
        return follow(id)

    return and_said


@pytest.mark.usefixtures("often")
async def test_a_wait_answers_401_when_its_key_is_revoked(
    world: World, monkeypatch: pytest.MonkeyPatch
):
    """Whoever waits for an execution or a gate is not told what came of it. SE-12."""
    id = await world.start(await world.workflow())
    scopes = {*Scope.ordinary()} - {Scope.APPROVAL_RESPOND}
    asker = await world.new_key(None, *scopes)
    gate = await world.http.post("/api/v1/gates", headers=bearer(asker.text), json={"message": "?"})
    gate_path = f"/api/v1/gates/{gate.json()['executionId']}?wait=60"
    for path in (f"/api/v1/executions/{id}?wait=60", gate_path):
        made = await world.new_key(None, *scopes)
        waits, rest = asyncio.Event(), world.services.wakeup.follow
        monkeypatch.setattr(world.services.wakeup, "follow", noted(rest, waits))
        waiting = asyncio.create_task(world.http.get(path, headers=bearer(made.text)))
        await waits.wait()
        await keys.revoke_key(world.services, OPERATOR, made.key.id)
        answer = await asyncio.wait_for(waiting, 30)
        assert (answer.status_code, "status" in answer.json()) == (401, False)
