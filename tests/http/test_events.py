"""The event stream of an execution."""

import asyncio
import json
import sqlite3
from contextlib import closing

import httpx

from http_world import World, code
from wfcore.model.execution import Execution
from wfcore.ports.runtime import StepEnd


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
