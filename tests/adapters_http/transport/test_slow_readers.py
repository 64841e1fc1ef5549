"""Clients that do not read: what waits for them is bounded, and nothing is done in vain."""

import asyncio
import logging
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest

from adapters_http.responses import LARGE_RESPONSE, Pace
from adapters_http.transport.connections import ConnectionLimits, Connections
from adapters_http.transport.uvicorn_protocol import Limits

from .serving import Running, one_answer, serving, until

MB = 1 << 20
BIG = bytes(8 * MB)
"""More than a kernel holds for one connection."""
PATIENT = Limits(stall_s=600.0)
REACHED: list[str] = []
GO: list[bool] = []


async def test_large_answers_are_made_one_in_a_turn():
    """Of a crowd that asks at once; those that ask after a large one wait their turn, too."""
    pace, made = Pace(), []

    async def make(size: int) -> None:
        await pace.turn()
        made.append(size)
        pace.made(size)

    tasks = [
        asyncio.create_task(make(size))
        for size in (LARGE_RESPONSE + 1, 10, LARGE_RESPONSE + 1, LARGE_RESPONSE + 1)
    ]
    tasks[2].cancel()
    for count in (1, 2, 3):
        while len(made) < count:  # noqa: ASYNC110
            await asyncio.sleep(0)
        assert len(made) == count
    await asyncio.gather(*tasks, return_exceptions=True)
    assert made == [LARGE_RESPONSE + 1, 10, LARGE_RESPONSE + 1]
    await asyncio.sleep(0)
    await asyncio.wait_for(pace.turn(), 60)


async def app(scope, receive, send):
    """`/big` is large, `/slow` waits to be told, everything else is small."""
    if scope["type"] != "http":
        return
    REACHED.append(scope["path"])
    while scope["path"] == "/slow" and not GO:  # noqa: ASYNC110
        await asyncio.sleep(0.001)
    body = BIG if scope["path"] == "/big" else b"small"
    headers = [(b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})


@pytest.fixture(autouse=True)
def _fresh():
    REACHED.clear()
    GO.clear()


def get(path: str) -> bytes:
    return f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode()


@contextmanager
def deaf(web: Running, asks: int = 5) -> Iterator[socket.socket]:
    """A client that asks for much and reads nothing."""
    with socket.socket() as client:
        client.settimeout(60)
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        client.connect(("127.0.0.1", web.port))
        client.sendall(get("/big") * asks)
        yield client


def ledger_of(web: Running) -> Connections:
    return web.server.config.http_protocol_class.ledger


def some_turns(web: Running) -> None:
    """Let the server do whatever it would do."""
    with web.connect() as client:
        for _ in range(20):
            client.sendall(get("/small"))
            one_answer(client)


def test_a_request_waits_until_the_answer_before_it_is_taken():
    """One answer at a time is made; a client that reads at last gets all, in order."""
    with serving(app, PATIENT) as web, deaf(web, asks=3) as client:
        until(lambda: ledger_of(web).unsent)
        client.sendall(get("/small"))
        some_turns(web)
        assert REACHED.count("/big") == 1
        assert ledger_of(web).unsent <= len(BIG) + MB
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, MB)
        assert [len(body_of(client)) for _ in range(3)] == [len(BIG)] * 3
        assert body_of(client) == b"small"
        until(lambda: ledger_of(web).unsent == 0)


REST: dict[socket.socket, bytes] = {}


def body_of(client: socket.socket) -> bytes:
    """The body of the next answer; what follows it is kept."""
    got = REST.pop(client, b"")
    while b"\r\n\r\n" not in got:
        got += client.recv(MB)
    head, _, body = got.partition(b"\r\n\r\n")
    size = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
    parts = [body]
    have = len(body)
    while have < size:
        parts.append(client.recv(MB))
        have += len(parts[-1])
    body = b"".join(parts)
    REST[client] = body[size:]
    return body[:size]


def test_what_waits_for_all_clients_is_bounded(caplog):
    """Many clients that read nothing hold no more than the bound; others are answered, quietly."""
    caplog.set_level(logging.WARNING)
    room = ConnectionLimits(unsent=20 * MB)
    with serving(app, PATIENT, room) as web, ExitStack() as stack:
        for _ in range(20):
            stack.enter_context(deaf(web))
            some_turns(web)
            assert ledger_of(web).unsent <= room.unsent
        assert REACHED.count("/big") == 20
        until(lambda: ledger_of(web).dropped >= 17)
        with web.connect() as client:
            client.sendall(get("/big"))
            assert len(body_of(client)) == len(BIG)
    assert caplog.records == []


def test_over_the_limit_the_longest_idle_connection_goes():
    """Idle connections keep nobody out."""
    with serving(app, PATIENT, ConnectionLimits(most=3, most_each=3)) as web, ExitStack() as stack:
        idle = [stack.enter_context(web.connect()) for _ in range(3)]
        until(lambda: len(ledger_of(web)) == 3)
        new = stack.enter_context(web.connect())
        new.sendall(get("/small"))
        assert one_answer(new).endswith(b"small")
        assert idle[0].recv(1) == b""
        idle[1].sendall(get("/small"))
        assert one_answer(idle[1]).endswith(b"small")


def test_where_all_connections_are_at_work_a_new_one_is_told_to_come_back():
    """503 with `Retry-After`, and what is at work goes on."""
    with serving(app, PATIENT, ConnectionLimits(most=2, most_each=2)) as web, ExitStack() as stack:
        working = [stack.enter_context(web.connect()) for _ in range(2)]
        for client in working:
            client.sendall(get("/slow"))
        until(lambda: REACHED.count("/slow") == 2)
        with web.connect() as new:
            answer = one_answer(new)
        assert answer.startswith(b"HTTP/1.1 503")
        assert b"retry-after: 1\r\n" in answer.lower()
        GO.append(True)
        assert all(one_answer(client).endswith(b"small") for client in working)
