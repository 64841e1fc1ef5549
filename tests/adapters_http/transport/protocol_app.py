"""A small application to be treated badly, and what its transport must say then."""

import asyncio
import json

from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse, StreamingResponse
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from adapters_http.transport.connections import WHOLE

KEPT = {"reached": 0, "left": 0, "go": 0}


async def echo(request: Request) -> PlainTextResponse:
    KEPT["reached"] += 1
    try:
        return PlainTextResponse(await request.body())
    except ClientDisconnect:
        KEPT["left"] += 1
        raise


async def refuse(request: Request) -> PlainTextResponse:
    return PlainTextResponse("no", 413)


async def slow(request: Request) -> PlainTextResponse:
    """Answers, without reading the body, when the test says so."""
    KEPT["reached"] += 1
    while not KEPT["go"]:  # noqa: ASYNC110 - set by another thread
        await asyncio.sleep(0.005)
    return PlainTextResponse("done")


async def flood(request: Request) -> StreamingResponse:
    async def chunks():
        for _ in range(400):
            yield b"x" * 65_536

    return StreamingResponse(chunks())


async def late(request: Request) -> StreamingResponse:
    """A head now, a body when the test says so."""

    async def chunks():
        while not KEPT["go"]:  # noqa: ASYNC110 - set by another thread
            await asyncio.sleep(0.005)
        yield b"done"

    return StreamingResponse(chunks())


class Whole:
    """An application that answers over the extension of the transport."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = [(b"content-length", b"5"), (b"x-one", b"1")]
        headers += [(b"connection", b"close")] if scope["path"].endswith("last") else []
        scope["extensions"][WHOLE].answer(200, headers, b"whole")


APP = Starlette(
    routes=[
        Route("/", echo, methods=["GET", "POST"]),
        Route("/refuse", refuse, methods=["POST"]),
        Route("/slow", slow, methods=["GET", "POST"]),
        Route("/flood", flood),
        Route("/late", late),
        Route("/whole", Whole()),
        Route("/whole-last", Whole()),
    ]
)
GET = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"
LAST = b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"


def refused(answer: bytes) -> int:
    """The status of a refusal, which must have the usual shape and announce the end."""
    head, _, body = answer.partition(b"\r\n\r\n")
    lines = head.lower().split(b"\r\n")
    assert b"connection: close" in lines
    assert b"content-type: application/json" in lines
    assert any(line.startswith(b"x-request-id: ") for line in lines)
    assert list(json.loads(body)) == ["error"]
    return int(head.split()[1])
