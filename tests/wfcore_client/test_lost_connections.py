"""Streams and downloads over connections that break: on a real socket, with both clients."""

import asyncio
import hashlib
import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from attrs import define, field

from adapters_http.openapi.examples import examples
from wfcore_client import ApiError, AsyncClient, Backoff, Client, Corrupted, Unreachable
from wfcore_client.answers import shaped
from wfcore_client.shapes import ArtifactView

QUICK = Backoff(first=0.01, longest=1.0, tries=3)
CONTENT = bytes(range(256)) * 40
KINDS = ["execution.running", "step.started", "execution.completed"]


@define
class Script:
    """A server that answers each connection with the next of these, and then closes it."""

    answers: list[Callable[[str], bytes]] = field(factory=list)
    heads: list[str] = field(factory=list)
    url: str = ""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
        self.heads.append(head)
        writer.write(self.answers.pop(0)(head))
        await writer.drain()
        writer.close()


@pytest.fixture
async def script() -> AsyncIterator[Script]:
    made = Script()
    server = await asyncio.start_server(made.serve, "127.0.0.1", 0)
    made.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    yield made
    server.close()
    await server.wait_closed()


@pytest.fixture(params=["asyncio", "threads"])
def client(request: pytest.FixtureRequest) -> Any:
    """What `AsyncClient` does, done by either client."""
    return _events_async if request.param == "asyncio" else _events_sync


async def _events_async(url: str, id: str) -> list[int]:
    async with AsyncClient(url, "k", backoff=QUICK) as client:
        return [event.number async for event in client.events(id)]


async def _events_sync(url: str, id: str) -> list[int]:
    def read() -> list[int]:
        with Client(url, "k", backoff=QUICK) as client:
            return [event.number for event in client.events(id)]

    return await asyncio.to_thread(read)


async def _download(sync: bool, url: str, artifact: ArtifactView, to: Path) -> Path:
    if not sync:
        async with AsyncClient(url, "k", backoff=QUICK) as client:
            return await client.download(artifact, to)

    def read() -> Path:
        with Client(url, "k", backoff=QUICK) as client:
            return client.download(artifact, to)

    return await asyncio.to_thread(read)


def stream(first: int, last: int, cut: int = 0) -> Callable[[str], bytes]:
    """A stream of these events, which is cut so many bytes before its end."""
    text = ""
    for number in range(first, last + 1):
        kind = KINDS[number - 1]
        view = {"executionId": "e", "number": number, "at": 1, "kind": kind, "data": {}}
        text += f"id: {number}\nevent: {kind}\ndata: {json.dumps(view)}\n\n"
    head = (
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
    )
    body = text[: len(text) - cut] if cut else text
    chunk = f"{len(body.encode()):x}\r\n{body}\r\n"
    return lambda _: (head + chunk + ("" if cut else "0\r\n\r\n")).encode()


def failure(status: int, more: str = "") -> Callable[[str], bytes]:
    body = '{"error": "no"}'
    head = f"HTTP/1.1 {status} No\r\ncontent-length: {len(body)}\r\n{more}\r\n"
    return lambda _: (head + body).encode()


def part(cut: int = 0) -> Callable[[str], bytes]:
    """The content, from where it is asked for, cut so many bytes before its end."""

    def answer(head: str) -> bytes:
        begin = int(head.partition("range: bytes=")[2].partition("-")[0] or 0)
        rest = CONTENT[begin:]
        status = "206 Partial" if begin else "200 OK"
        first = f"HTTP/1.1 {status}\r\ncontent-length: {len(rest)}\r\n\r\n".encode()
        return first + rest[: len(rest) - cut]

    return answer


def an_artifact(content: bytes = CONTENT) -> ArtifactView:
    example = examples()["views"]["ArtifactView"]
    digest = hashlib.sha256(content).hexdigest()
    return shaped(ArtifactView, {**example, "size": len(content), "sha256": digest})


def names(folder: Path) -> list[str]:
    return [one.name for one in folder.iterdir()]


async def test_a_stream_goes_on_where_it_was_cut(script: Script, client: Any) -> None:
    """Within an event: it and what follows are told once, and in order, after a refusal too."""
    script.answers += [stream(1, 2, cut=9), failure(503), stream(2, 3)]
    assert await client(script.url, "e") == [1, 2, 3]
    asked = [head.partition("last-event-id: ")[2].partition("\r\n")[0] for head in script.heads]
    assert asked == ["0", "1", "1"]


async def test_a_stream_that_never_comes_back_is_unreachable(script: Script, client: Any) -> None:
    """After as many tries as the backoff has, the caller is told."""
    script.answers += [stream(1, 1, cut=60)] * 3
    with pytest.raises(Unreachable):
        await client(script.url, "e")
    assert len(script.heads) == QUICK.tries


async def test_a_refused_stream_is_not_asked_again(script: Script, client: Any) -> None:
    """A 404 is final."""
    script.answers += [failure(404)]
    with pytest.raises(ApiError, match="404"):
        await client(script.url, "e")


@pytest.mark.parametrize("sync", [False, True])
async def test_a_download_goes_on_where_it_was_cut(
    script: Script, tmp_path: Path, sync: bool
) -> None:
    """The rest is asked for, of the same content; the file is there when all of it is."""
    script.answers += [part(cut=9_000), part(cut=10), part()]
    to = tmp_path / "file"
    assert await _download(sync, script.url, an_artifact(), to) == to
    assert to.read_bytes() == CONTENT
    assert "range: " not in script.heads[0]
    assert f"range: bytes={len(CONTENT) - 10}-" in script.heads[2]
    assert an_artifact().sha256 in script.heads[2]
    assert names(tmp_path) == ["file"]


@pytest.mark.parametrize("sync", [False, True])
async def test_nothing_is_written_of_what_is_not_the_artifact(
    script: Script, tmp_path: Path, sync: bool
) -> None:
    """Other bytes than the server stored are no file; one that was there stays as it was."""
    script.answers += [part(), failure(404)]
    (tmp_path / "file").write_text("before")
    with pytest.raises(Corrupted):
        await _download(sync, script.url, an_artifact(b"other"), tmp_path / "file")
    with pytest.raises(ApiError):
        await _download(sync, script.url, an_artifact(), tmp_path / "file")
    assert names(tmp_path) == ["file"]
    assert (tmp_path / "file").read_text() == "before"


async def test_an_empty_file_is_one(script: Script, tmp_path: Path) -> None:
    """Nothing is content, too."""
    script.answers += [lambda _: b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"]
    path = await _download(False, script.url, an_artifact(b""), tmp_path / "empty")
    assert path.read_bytes() == b""
