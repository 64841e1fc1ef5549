"""Slow and half requests end in time, and harm nobody else."""

import resource
import socket
import time
from contextlib import ExitStack, suppress

import pytest
from attrs import evolve

from adapters_http.transport.uvicorn_protocol import Limits

from .protocol_app import APP, GET, KEPT, LAST, refused
from .serving import PATIENCE_S, QUICK, everything, one_answer, serving, until


@pytest.fixture(scope="module")
def web():
    with serving(APP) as running:
        yield running


@pytest.fixture(autouse=True)
def _fresh():
    KEPT.update(reached=0, left=0, go=0)


def drip(client: socket.socket, parts: list[bytes]) -> int:
    """Send *parts* slowly, until the server answers or closes; how many were sent."""
    client.settimeout(0.05)
    sent = 0
    for part in parts:
        with suppress(TimeoutError):
            client.sendall(part)
            sent += 1
            client.recv(1, socket.MSG_PEEK)
            break
    client.settimeout(PATIENCE_S)
    return sent


def let_the_limits_pass(limit: float = QUICK.head_s) -> None:
    """Let more time go by than any limit, then let the slow application answer."""
    over = time.monotonic() + 2 * limit
    until(lambda: time.monotonic() > over)
    KEPT["go"] = 1


def test_a_silent_connection_is_closed(web):
    """A client that sends nothing at all is closed within the limit, without an answer."""
    with web.connect() as client:
        assert everything(client) == b""


def test_half_a_head_is_closed(web):
    """A head that never ends is answered 408 and closed."""
    assert refused(web.ask(b"GET / HTTP/1.1\r\nHost: x\r\nX-")) == 408


def test_dripping_a_head_does_not_extend_the_time(web):
    """One byte at a time, the limit is still the same."""
    with web.connect() as client:
        assert drip(client, [b"GET / HTTP/1.1\r\nX: "] + [b"a"] * 100) < 101
        assert refused(everything(client)) == 408


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
    until(lambda: KEPT["left"] == 1)


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


def test_the_time_for_a_request_ends_with_its_last_byte(web):
    """An application may take its time over a request that came in pieces."""
    with web.connect() as client:
        client.sendall(b"POST /slow HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\na")
        until(lambda: KEPT["reached"])
        client.sendall(b"b")
        let_the_limits_pass()
        assert one_answer(client).endswith(b"done")


def test_half_a_pipelined_request_waits_for_the_answer_before_it():
    """The time for the next head counts when it is its turn."""
    slower = evolve(QUICK, head_s=0.8)  # so long the rest may take to be sent
    with serving(APP, slower) as web, web.connect() as client:
        client.sendall(b"GET /slow HTTP/1.1\r\nHost: x\r\n\r\n" + LAST[:20])
        let_the_limits_pass(slower.head_s)
        assert one_answer(client).endswith(b"done")
        client.sendall(LAST[20:])
        assert everything(client).startswith(b"HTTP/1.1 200")


def test_an_idle_connection_is_kept_for_as_long_as_uvicorn_keeps_it():
    """The time for a head is not the time between requests."""
    with ExitStack() as stack:
        web = stack.enter_context(serving(APP, evolve(QUICK, head_s=0.5), timeout_keep_alive=5))
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
