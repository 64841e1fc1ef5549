"""Heads that the parser lets pass and a server must not: over raw sockets, to the byte."""

import socket

import pytest

from .protocol_app import APP, KEPT, LAST, refused
from .serving import everything, serving

LAST_WORDS = b"Connection: close\r\n\r\n"
POST = b"POST / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
END = b"0\r\n\r\n"


@pytest.fixture(scope="module")
def web():
    with serving(APP) as running:
        yield running


@pytest.fixture(autouse=True)
def _fresh():
    KEPT.update(reached=0, left=0, go=0)


def get(*fields: bytes, target: bytes = b"/", version: bytes = b"HTTP/1.1") -> bytes:
    """A GET with exactly these fields, and the wish to be the last one."""
    head = b"".join(one + b"\r\n" for one in fields)
    return b"GET " + target + b" " + version + b"\r\n" + head + LAST_WORDS


@pytest.mark.parametrize(
    "request_",
    [
        get(),
        get(b"Host: x", b"Host: x"),
        get(b"Host: x", b"hOST: y"),
        get(b"Host:"),
        get(b"Host: x, y"),
        get(b"Host: ann@x"),
        get(b"Host: x/y"),
        get(b"Host: x y"),
        get(b'Host: x"'),
        get(b"Host: x:port"),
        get(b"Host: x:123456"),
        get(b"Host: [::1"),
        get(b"Host: \xff"),
        get(b"Host: x", b"Host: x", version=b"HTTP/1.0"),
        get(b"Host: ", version=b"HTTP/1.0"),
    ],
)
def test_a_request_names_one_host(web, request_):
    """Without Host, with two of them, or with one that names no host: 400, nothing reached."""
    assert refused(web.ask(request_)) == 400
    assert KEPT["reached"] == 0


@pytest.mark.parametrize(
    "host", [b"x", b" x ", b"x:1", b"127.0.0.1:65535", b"[::1]:8000", b"[::1]", b"a_b.example.org."]
)
def test_a_host_is_a_name_or_an_address(web, host):
    """Names, addresses of both kinds, with and without a port."""
    assert web.ask(get(b"Host: " + host)).startswith(b"HTTP/1.1 200")


@pytest.mark.parametrize(
    "request_",
    [
        b"GET /\r\n\r\n",
        get(b"Host: x", version=b"HTTP/0.9"),
        get(b"Host: x", version=b"HTTP/1.2"),
        get(b"Host: x", version=b"HTTP/2.0"),
        get(b"Host: x", version=b"HTTP/3.0"),
        get(b"Host: x", version=b"HTTP/11.1"),
    ],
)
def test_other_versions_are_not_spoken(web, request_):
    """HTTP/0.9, and versions that are not 1.0 or 1.1, are 400."""
    assert refused(web.ask(request_)) == 400
    assert KEPT["reached"] == 0


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        (b"Transfer-Encoding: gzip\r\n", 501),
        (b"Transfer-Encoding: identity\r\n", 501),
        (b"Transfer-Encoding: gzip, chunked\r\n", 501),
        (b"Transfer-Encoding: chunked, identity\r\n", 400),
        (b"Transfer-Encoding: chunked;q=1\r\n", 501),
        (b"Transfer-Encoding: \x0bchunked\r\n", 400),
        (b"Transfer-Encoding:\r\n", 400),
        (b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", 400),
        (b"Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n", 501),
        (b"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n", 400),
        (b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", 400),
        (b"Content-Length: 5\r\nContent-Length: 5\r\n", 400),
        (b"Content-Length: 5, 5\r\n", 400),
        (b"Content-Length: +5\r\n", 400),
        (b"Content-Length: 0x5\r\n", 400),
        (b"Content-Length: 5 5\r\n", 400),
        (b"Content-Length: 18446744073709551616\r\n", 400),
        (b"X: a\r\n b\r\n", 400),
        (b"X: a\n", 400),
        (b"X: a\rY: b\r\n", 400),
        (b"X : a\r\n", 400),
        (b" X: a\r\n", 400),
        (b"X\r\n", 400),
    ],
)
def test_how_long_a_body_is_has_one_reading(web, fields, status):
    """What two readers might take for two lengths is refused, and what follows is not heard."""
    answer = web.ask(POST + fields + b"\r\n" + END + LAST)
    either = (400, 501) if fields == b"Transfer-Encoding:\r\n" else (status,)  # by the parser's age
    assert refused(answer) in either
    assert answer.count(b"HTTP/1.1 ") == 1
    assert KEPT["reached"] == 0


@pytest.mark.parametrize("coding", [b"chunked", b"Chunked", b"\tchunked "])
def test_chunks_are_read(web, coding):
    """The one coding there is, in any case, with spaces around it."""
    answer = web.ask(POST + b"Transfer-Encoding: " + coding + b"\r\n\r\n1\r\nx\r\n" + END)
    assert answer.startswith(b"HTTP/1.1 200")
    assert answer.endswith(b"x")


def test_chunks_need_the_version_that_has_them(web):
    """HTTP/1.0 knows no Transfer-Encoding: its reader would take chunks for the next request."""
    head = b"POST / HTTP/1.0\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
    assert refused(web.ask(head + END)) == 400
    assert KEPT["reached"] == 0


@pytest.mark.parametrize(
    ("target", "status"),
    [
        (b"http://x/", 200),
        (b"HTTP://X/?a=b", 200),
        (b"http://y/", 400),
        (b"http://x:80/", 400),
        (b"http://ann@x/", 400),
        (b"ftp://x/", 400),
        (b"http:///", 400),
        (b"/#x", 400),
        (b"*", 404),
        (b"//x/", 404),
    ],
)
def test_a_target_names_what_the_host_names(web, target, status):
    """In absolute form it must agree with Host; a fragment, and other schemes, are none."""
    answer = web.ask(get(b"Host: x", target=target))
    assert int(answer.split()[1]) == status
    assert KEPT["reached"] == (status == 200)


@pytest.mark.parametrize(
    ("line", "status"),
    [
        (b"OPTIONS *", 404),
        (b"CONNECT x:80", 400),
        (b"CONNECT /", 405),
        (b"TRACE /", 405),
        (b"BREW /", 400),
        (b"get /", 400),
    ],
)
def test_odd_methods_reach_nothing(web, line, status):
    """Tunnels, echoes and unknown words are refused."""
    answer = web.ask(line + b" HTTP/1.1\r\nHost: x\r\n" + LAST_WORDS)
    assert int(answer.split()[1]) == status
    assert KEPT["reached"] == 0


@pytest.mark.parametrize("size", [1_500_000, 4_000_000])
@pytest.mark.parametrize("last", [b"", b"Connection: close\r\n"])
def test_a_refusal_can_be_read_by_whoever_sends_first(web, size, last):
    """
    A 413 that is there before the body has been sent is read by a client that sends all of it
    first, and by one that said `Connection: close`, too.
    """
    head = b"POST /refuse HTTP/1.1\r\nHost: x\r\n" + last + b"Content-Length: %d\r\n\r\n" % size
    with web.connect() as client:
        client.sendall(head)
        client.recv(1, socket.MSG_PEEK)
        for _ in range(size // 100_000):
            client.sendall(b"x" * 100_000)
        client.shutdown(socket.SHUT_WR)
        assert everything(client).startswith(b"HTTP/1.1 413")


def test_a_client_that_goes_on_after_the_last_answer_is_cut_off(web):
    """Reading on has an end: in bytes, for who sends much, and in time, for who sends nothing."""
    head = b"POST /refuse HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: %d\r\n\r\n"
    with web.connect() as client:
        client.sendall(head % 1_000_000_000)
        client.recv(1, socket.MSG_PEEK)
        with pytest.raises(ConnectionError):
            client.sendall(b"x" * 100_000_000)
    with web.connect() as client:
        client.sendall(head % 10)
        assert everything(client).startswith(b"HTTP/1.1 413")
