"""Slow, half, oversized and garbled requests end in time, and harm nobody else."""

import json
import resource
import socket
import time
from contextlib import ExitStack, suppress

import pytest
from attrs import evolve
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse, StreamingResponse
from starlette.routing import Route

from adapters_http.protocol import Limits
from http_leaves.serving import PATIENCE_S, QUICK, everything, one_answer, serving, until

KEPT = {"reached": 0, "left": 0}


async def echo(request: Request) -> PlainTextResponse:
    KEPT["reached"] += 1
    try:
        return PlainTextResponse(await request.body())
    except ClientDisconnect:
        KEPT["left"] += 1
        raise


async def refuse(request: Request) -> PlainTextResponse:
    return PlainTextResponse("no", 413)


async def flood(request: Request) -> StreamingResponse:
    async def chunks():
        for _ in range(400):
            yield b"x" * 65_536

    return StreamingResponse(chunks())


APP = Starlette(
    routes=[
        Route("/", echo, methods=["GET", "POST"]),
        Route("/refuse", refuse, methods=["POST"]),
        Route("/flood", flood),
    ]
)
GET = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"
LAST = b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"


@pytest.fixture(scope="module")
def web():
    with serving(APP) as running:
        yield running


@pytest.fixture(autouse=True)
def _fresh():
    KEPT.update(reached=0, left=0)


def refused(answer: bytes) -> int:
    """The status of a refusal, which must have the usual shape and announce the end."""
    head, _, body = answer.partition(b"\r\n\r\n")
    lines = head.lower().split(b"\r\n")
    assert b"connection: close" in lines
    assert b"content-type: application/json" in lines
    assert any(line.startswith(b"x-request-id: ") for line in lines)
    assert list(json.loads(body)) == ["error"]
    return int(head.split()[1])


def with_fields(count: int, size: int = 1) -> bytes:
    fields = b"".join(b"X-%d: %s\r\n" % (n, b"v" * size) for n in range(count - 2))
    return b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n" + fields + b"\r\n"


def drip(client: socket.socket, parts: list[bytes]) -> None:
    """Send *parts* slowly, until the server answers or closes."""
    client.settimeout(0.05)
    for part in parts:
        with suppress(TimeoutError):
            client.sendall(part)
            client.recv(1, socket.MSG_PEEK)
            break
    client.settimeout(PATIENCE_S)


def test_a_silent_connection_is_closed(web):
    """A client that sends nothing at all is closed within the limit, without an answer."""
    with web.connect() as client:
        assert everything(client) == b""


def test_half_a_head_is_closed(web):
    """A head that never ends is answered 408 and closed."""
    assert refused(web.ask(b"GET / HTTP/1.1\r\nHost: x\r\nX-")) == 408


def test_dripping_a_head_does_not_extend_the_time(web):
    """One byte at a time, the limit is still the same."""
    started = time.monotonic()
    with web.connect() as client:
        drip(client, [b"GET / HTTP/1.1\r\nX: "] + [b"a"] * 100)
        assert refused(everything(client)) == 408
    assert time.monotonic() - started < 3


def test_dripping_blank_lines_does_not_extend_the_time(web):
    """Empty lines before a request are no way to stay."""
    with web.connect() as client:
        drip(client, [b"\r\n"] * 100)
        assert everything(client) == b""


@pytest.mark.parametrize("junk", [b"G", b"\r\n"])
def test_half_a_second_request_is_closed_too(web, junk):
    """On a connection that was good once, the next head has the same time."""
    with web.connect() as client:
        client.sendall(GET)
        one_answer(client)
        client.sendall(junk)
        everything(client)


@pytest.mark.parametrize(
    "framing", [b"Content-Length: 10\r\n\r\nhalf", b"Transfer-Encoding: chunked\r\n\r\n5\r\nab"]
)
def test_half_a_body_is_closed(web, framing):
    """A body that never ends is 408; the application sees the client leave."""
    answer = web.ask(b"POST / HTTP/1.1\r\nHost: x\r\n" + framing)
    assert refused(answer) == 408
    until(lambda: KEPT == {"reached": 1, "left": 1})


def test_dripping_a_body_does_not_extend_the_time(web):
    """One byte of body at a time, the limit is still the same."""
    with web.connect() as client:
        drip(client, [b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n"] + [b"a"] * 100)
        assert refused(everything(client)) == 408


def test_dripping_after_the_answer_does_not_extend_the_time(web):
    """A body that nobody wants is read for a moment only, also when it never ends."""
    with web.connect() as client:
        client.sendall(b"POST /refuse HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n")
        assert one_answer(client).startswith(b"HTTP/1.1 413")
        drip(client, [b"a"] * 100)
        assert everything(client) == b""


def test_an_early_answer_reaches_a_client_that_is_still_sending(web):
    """The client sends all of its 2 MB, then reads the 413 and may go on."""
    size = 2 * 1024 * 1024
    with web.connect() as client:
        client.sendall(b"POST /refuse HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % size)
        client.sendall(b"x" * size)
        assert one_answer(client).startswith(b"HTTP/1.1 413")
        client.sendall(LAST)
        assert everything(client).startswith(b"HTTP/1.1 200")


def test_an_endless_body_after_the_answer_is_cut_off():
    """After the answer only so many bytes are discarded."""
    limits = evolve(QUICK, discard_bytes=100_000, discard_s=30)
    with serving(APP, limits) as web, web.connect() as client:
        client.sendall(b"POST /refuse HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n")
        with pytest.raises(ConnectionError):
            client.sendall((b"ffff\r\n" + b"x" * 0xFFFF + b"\r\n") * 500)


def test_a_head_of_33_kib_is_refused(web):
    """32 KiB of head are fine, more are 431, in one field or in many."""
    assert web.ask(with_fields(35, 900)).startswith(b"HTTP/1.1 200")
    assert refused(web.ask(with_fields(35, 1_024))) == 431
    assert refused(web.ask(with_fields(3, 33 * 1_024))) == 431
    assert KEPT["reached"] == 1


def test_a_long_target_counts_as_head(web):
    """A target of 33 KiB is refused like any other head of that size."""
    target = b"/?" + b"a" * 33 * 1_024
    assert refused(web.ask(GET.replace(b"/ ", target + b" ", 1))) == 431


def test_a_head_that_never_ends_is_refused_early(web):
    """The refusal does not wait for the end of the head, nor need room for it."""
    with web.connect() as client:
        client.sendall(b"GET / HTTP/1.1\r\nX: ")
        for _ in range(9):
            client.sendall(b"a" * 4_096)
        assert refused(everything(client)) == 431


def test_more_than_100_fields_are_refused(web):
    """100 fields are fine, 101 are 431."""
    assert web.ask(with_fields(100)).startswith(b"HTTP/1.1 200")
    assert refused(web.ask(with_fields(101))) == 431


def test_a_refusal_reaches_a_client_that_is_still_sending(web):
    """The answer is not destroyed by what comes after it."""
    with web.connect() as client:
        client.sendall(b"GARBAGE\r\n\r\n" + b"x" * 2_000_000)
        assert refused(everything(client)) == 400


@pytest.mark.parametrize(
    "garbage",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"GET\r\n\r\n",
        b"GET / HTTP/9.9\r\nHost: x\r\n\r\n",
        b"GET /\xff HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET http:// HTTP/1.1\r\nHost: x\r\n\r\n",
        b"CONNECT x:1 HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET / HTTP/1.1\r\nHo st: x\r\n\r\n",
        b"GET / HTTP/1.1\r\nX: a\x00b\r\n\r\n",
        b"POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
        b"POST / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
        b"POST / HTTP/1.1\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n",
    ],
)
def test_garbage_is_a_400(web, garbage):
    """What is no HTTP/1 request, or an ambiguous one, is a 400 in the usual shape."""
    assert refused(web.ask(garbage)) == 400
    assert KEPT["reached"] == 0


@pytest.mark.parametrize(
    "body",
    [b"zz\r\n", b"1\r\nab\r\n", b"0\r\nAuthorization: Bearer x\r\n\r\n", b"fffffffffffffffff\r\n"],
)
def test_a_garbled_body_is_a_400(web, body):
    """Broken chunks, and trailers, are refused; the application sees the client leave."""
    head = b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
    assert refused(web.ask(head + body)) == 400
    until(lambda: KEPT["left"] == KEPT["reached"])


def test_a_trailer_that_never_ends_is_refused(web):
    """What is neither head nor body may not be larger than a head either."""
    with web.connect() as client:
        client.sendall(b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX: ")
        for _ in range(9):
            client.sendall(b"a" * 4_096)
        assert refused(everything(client)) == 431


def test_garbage_after_a_good_request_does_not_spoil_its_answer(web):
    """The good request is answered, whole, then the connection ends."""
    answer = web.ask(GET + b"GARBAGE\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 200")
    assert answer.count(b"HTTP/1.1") == 1


def test_keep_alive_and_pipelining_go_on(web):
    """Requests in a row, one by one or all at once, are answered on one connection, in order."""
    post = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\n%d"
    with web.connect() as client:
        for n in range(3):
            client.sendall(post % n)
            assert one_answer(client).endswith(b"\r\n\r\n%d" % n)
        client.sendall(b"".join(post % n for n in range(9)) + LAST)
        answers = everything(client).split(b"HTTP/1.1 200 OK\r\n")[1:]
    assert [answer[-1:] for answer in answers[:-1]] == [b"%d" % n for n in range(9)]


def test_a_request_in_pieces_is_answered(web):
    """Wherever it is cut, a request that comes in time is answered."""
    request = b"POST / HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 4\r\n\r\nbody"
    for cut in range(1, len(request)):
        with web.connect() as client:
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            client.sendall(request[:cut])
            client.sendall(request[cut:])
            assert everything(client).endswith(b"\r\n\r\nbody")


def test_large_bodies_with_a_next_request_are_no_large_heads(web):
    """A body over 32 KiB, followed by half a head, counts as body."""
    body = b"x" * 100_000
    request = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n" + body
    with web.connect() as client:
        client.sendall(request + request + LAST[:20])
        client.recv(1, socket.MSG_PEEK)
        client.sendall(LAST[20:])
        answers = everything(client)
    assert answers.count(b"HTTP/1.1 200") == 3
    assert answers.count(body) == 2


def test_chunked_bodies_are_read(web):
    """A chunked body, with extensions, is one body."""
    head = b"POST / HTTP/1.1\r\nHost: x\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n"
    answer = web.ask(head + b"3;a=b\r\nabc\r\n2\r\nde\r\n0\r\n\r\n")
    assert answer.endswith(b"\r\n\r\nabcde")


def test_a_client_may_ask_before_it_sends(web):
    """Expect: 100-continue is answered when the body is wanted, and only then."""
    expecting = b"Host: x\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n"
    with web.connect() as client:
        client.sendall(b"POST / HTTP/1.1\r\nConnection: close\r\n" + expecting)
        assert client.recv(1_000) == b"HTTP/1.1 100 Continue\r\n\r\n"
        client.sendall(b"ok")
        assert everything(client).endswith(b"\r\n\r\nok")
    with web.connect() as client:
        client.sendall(b"POST /refuse HTTP/1.1\r\n" + expecting)
        assert one_answer(client).startswith(b"HTTP/1.1 413")


def test_http_1_0_is_answered_and_closed(web):
    """An HTTP/1.0 client gets its answer and the end of the connection."""
    assert web.ask(b"GET / HTTP/1.0\r\n\r\n").startswith(b"HTTP/1.1 200")


@pytest.mark.parametrize("protocol", [b"h2c", b"websocket"])
def test_an_upgrade_is_declined(web, protocol):
    """A client that offers another protocol gets its answer in this one."""
    fields = b"Host: x\r\nConnection: Upgrade\r\nUpgrade: " + protocol + b"\r\n\r\n"
    assert web.ask(b"GET / HTTP/1.1\r\n" + fields).startswith(b"HTTP/1.1 200")


def test_an_idle_connection_is_kept_for_as_long_as_uvicorn_keeps_it():
    """The time for a head is not the time between requests."""
    with ExitStack() as stack:
        web = stack.enter_context(serving(APP, evolve(QUICK, head_s=0.05), timeout_keep_alive=5))
        client, silent = (stack.enter_context(web.connect()) for _ in range(2))
        client.sendall(GET)
        one_answer(client)
        assert everything(silent) == b""
        client.sendall(LAST)
        assert everything(client).startswith(b"HTTP/1.1 200")


def test_a_client_that_does_not_read_is_cut_off(web):
    """An answer that is not taken ends the connection; nothing stays in memory."""
    with socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        client.connect(("127.0.0.1", web.port))
        client.sendall(b"GET /flood HTTP/1.1\r\nHost: x\r\n\r\n")
        until(lambda: web.connections() == 1)
        until(lambda: web.connections() == 0)


def test_a_thousand_half_open_connections_harm_nobody():
    """While a thousand clients sit on half a request, others are answered at once."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, max(soft, 4_096)), hard))
    with serving(APP, evolve(QUICK, head_s=4.0)) as web, ExitStack() as stack:
        for n in range(1_000):
            client = stack.enter_context(web.connect())
            client.sendall(b"" if n % 2 else b"GET / HTTP/1.1\r\nX-")
        until(lambda: web.connections() == 1_000)
        for _ in range(50):
            assert web.ask(LAST).startswith(b"HTTP/1.1 200")
        assert web.connections() >= 1_000
        until(lambda: web.connections() == 0)


def test_the_limits_are_those_of_the_rule():
    """10 s for a head, about 30 s for a body, 32 KiB and 100 fields."""
    limits = Limits()
    assert (limits.head_s, limits.max_head, limits.max_fields) == (10, 32_768, 100)
    assert 30 <= limits.body_s < 32
