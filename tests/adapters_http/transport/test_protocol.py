"""Oversized and garbled requests are refused; normal HTTP/1.1 goes on as ever."""

import asyncio
import json
import logging
import socket
from unittest import mock

import pytest
from attrs import evolve
from uvicorn.server import ServerState

from adapters_http.transport.connections import head_of
from adapters_http.transport.uvicorn_protocol import HardenedProtocol, server_config

from .protocol_app import APP, GET, KEPT, LAST, refused
from .serving import QUICK, everything, one_answer, serving, until


@pytest.fixture(scope="module")
def web():
    with serving(APP) as running:
        yield running


@pytest.fixture(autouse=True)
def _fresh():
    KEPT.update(reached=0, left=0, go=0)


def with_fields(count: int, size: int = 1) -> bytes:
    fields = b"".join(b"X-%d: %s\r\n" % (n, b"v" * size) for n in range(count - 2))
    return b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n" + fields + b"\r\n"


def test_an_early_answer_reaches_a_client_that_is_still_sending(web):
    """The client sends all of its 2 MB, then reads the 413 and may go on."""
    size = 2 * 1024 * 1024
    with web.connect() as client:
        client.sendall(b"POST /refuse HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % size)
        client.sendall(b"x" * size)
        assert one_answer(client).startswith(b"HTTP/1.1 413")
        client.sendall(LAST)
        assert everything(client).startswith(b"HTTP/1.1 200")


@pytest.mark.parametrize("beginning", [b"POST /refuse HTTP/1.1\r\nHost: x\r\n", b"GARBAGE\r\n"])
def test_whoever_goes_on_sending_after_the_answer_is_cut_off(beginning):
    """After an early answer, or a refusal, only so many bytes are discarded."""
    limits = evolve(QUICK, discard_bytes=100_000, body_s=30.0, linger_s=30.0)
    with serving(APP, limits) as web, web.connect() as client:
        client.sendall(beginning + b"Transfer-Encoding: chunked\r\n\r\n")
        client.recv(1, socket.MSG_PEEK)
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
    """What the client sends after the refusal is read, so that nothing destroys the answer."""
    with web.connect() as client:
        client.sendall(b"GARBAGE\r\n\r\n")
        client.recv(1, socket.MSG_PEEK)
        for _ in range(10):
            client.sendall(b"x" * 100_000)
        assert refused(everything(client)) == 400


def test_an_application_that_answers_after_the_refusal_is_not_heard(web, caplog):
    """The client has its 400 already; the late answer goes nowhere, without a fuss."""
    head = b"POST /slow HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
    with web.connect() as client:
        client.sendall(head)
        until(lambda: KEPT["reached"])
        client.sendall(b"garbage\r\n")
        assert refused(everything(client)) == 400
        KEPT["go"] = 1
        until(lambda: not web.server.server_state.tasks)
    assert not [one for one in caplog.records if one.levelno >= logging.ERROR]


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
    ("body", "why"),
    [
        (b"zz\r\n", "Malformed HTTP request"),
        (b"1\r\nab\r\n", "Malformed HTTP request"),
        (b"0\r\nAuthorization: Bearer x\r\n\r\n", "Trailer fields are not accepted"),
        (b"fffffffffffffffff\r\n", "Malformed HTTP request"),
    ],
)
def test_a_garbled_body_is_a_400(web, body, why):
    """Broken chunks, and trailers, are refused; the application sees the client leave."""
    head = b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
    answer = web.ask(head + body)
    assert (refused(answer), json.loads(answer.partition(b"\r\n\r\n")[2])["error"]) == (400, why)
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


def test_many_requests_on_one_connection_are_many_heads(web):
    """The limit is for each head, not for all on a connection."""
    request = b"GET /?" + b"a" * 4_000 + b" HTTP/1.1\r\nHost: x\r\n\r\n"
    with web.connect() as client:
        for _ in range(12):
            client.sendall(request)
            assert one_answer(client).startswith(b"HTTP/1.1 200")


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
    answer = web.ask(b"GET / HTTP/1.1\r\n" + fields)
    assert answer.startswith(b"HTTP/1.1 200")
    assert b"\r\nconnection: close\r\n" in answer.lower()


async def _asked(request: bytes):
    """What the transport of a connection was told after one request to `APP`."""
    config = server_config(APP, host="x", port=0, log_config=None)
    config.load()
    protocol = HardenedProtocol(config, ServerState(), {}, asyncio.get_running_loop())
    transport = mock.Mock()
    transport.is_closing.return_value, transport.get_extra_info.return_value = False, None
    protocol.connection_made(transport)
    protocol.data_received(request)
    while not protocol.cycle.response_complete:
        assert not transport.write.called
        await asyncio.sleep(0)
    return transport


async def test_a_whole_answer_is_one_write():
    """Head and body are one write, so that no client is woken twice; to HEAD there is no body."""
    for method, end in ((b"GET", b"\r\n\r\nwhole"), (b"HEAD", b"\r\n\r\n")):
        transport = await _asked(method + b" /whole HTTP/1.1\r\nHost: x\r\n\r\n")
        (written,) = [call.args[0] for call in transport.write.call_args_list]
        assert written.startswith(b"HTTP/1.1 200 OK\r\n")
        assert written.endswith(end)
        assert b"\r\nx-one: 1\r\n" in written
        assert not transport.close.called


async def test_the_last_whole_answer_says_so_and_ends_the_connection():
    """Whether the client or the application ends it: the header says so, and it is closed."""
    for request in (
        b"GET /whole HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
        b"GET /whole-last HTTP/1.1\r\nHost: x\r\n\r\n",
    ):
        transport = await _asked(request)
        assert transport.write.call_args.args[0].count(b"\r\nconnection: close\r\n") == 1
        assert transport.close.called


@pytest.mark.parametrize("field", [(b"x", b"1\r\ny: 2"), (b"x", b"1\n"), (b"x\r", b"1")])
def test_no_field_of_a_whole_answer_can_become_two(field):
    """Whatever comes into a header, it cannot begin another one, or the body."""
    with pytest.raises(ValueError, match="line break"):
        head_of(b"HTTP/1.1 200 OK\r\n", [(b"a", b"b"), field])


def test_a_head_does_not_wait_for_a_body_that_is_late(web):
    """Whoever streams is seen to answer before there is anything to stream."""
    with web.connect() as client:
        client.sendall(b"GET /late HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        assert client.recv(65_536).endswith(b"\r\n\r\n")
        KEPT["go"] = 1
        assert b"done" in everything(client)


async def test_the_head_of_an_answer_to_head_waits_for_nothing():
    """No body will follow it: it is written before the answer counts as complete."""
    transport = await _asked(b"HEAD /refuse HTTP/1.1\r\nHost: x\r\n\r\n")
    assert transport.write.call_args.args[0].startswith(b"HTTP/1.1 405")


def test_a_garbled_request_does_not_cost_the_answer_before_it(web):
    """What was asked properly is answered, as the last answer, whatever is sent behind it."""
    with web.connect() as client:
        client.sendall(
            b"GET /slow HTTP/1.1\r\nHost: x\r\n\r\n"
            b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nZZ\r\n"
        )
        until(lambda: KEPT["reached"])
        KEPT["go"] = 1
        answer = everything(client)
    assert answer.startswith(b"HTTP/1.1 200")
    assert answer.endswith(b"done")
    assert answer.count(b"HTTP/1.1") == 1
