"""Request bodies are counted, bounded in time, and never believed."""

import asyncio
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect

from adapters_http.body import BodyTimeout, read_body
from wfcore.errors import InvalidInput, TooLarge


class Sender:
    """An ASGI `receive` that gives out chunks and counts how many were asked for."""

    def __init__(self, chunks: Iterable[bytes]) -> None:
        self.chunks = list(chunks)
        self.asked = 0

    async def __call__(self):
        chunk = self.chunks[self.asked]
        self.asked += 1
        more = self.asked < len(self.chunks)
        return {"type": "http.request", "body": chunk, "more_body": more}


@given(chunks=st.lists(st.binary(max_size=40), min_size=1, max_size=8))
async def test_chunks_come_back_as_one_body(chunks):
    """The body is all its chunks in order, whatever their sizes."""
    body = b"".join(chunks)
    assert await read_body(Sender(chunks), {}, len(body)) == body


async def test_a_body_one_byte_over_the_limit_is_refused():
    """A body of exactly the limit is read, one byte more is not."""
    assert await read_body(Sender([b"x" * 10]), {"content-length": "10"}, 10) == b"x" * 10
    with pytest.raises(TooLarge) as refused:
        await read_body(Sender([b"x" * 11]), {}, 10)
    assert str(refused.value) == "Request body is over its limit of 10 bytes"


async def test_the_rest_of_a_body_over_its_limit_is_not_read():
    """Without Content-Length, reading ends with the chunk that goes over."""
    sender = Sender([b"x" * 6] * 1_000)
    with pytest.raises(TooLarge):
        await read_body(sender, {}, 10)
    assert sender.asked == 2


@pytest.mark.parametrize("length", ["11", "9" * 30, "9" * 5_000])
async def test_a_declared_length_over_the_limit_is_refused_unread(length):
    """With Content-Length, nothing at all is read."""
    sender = Sender([b""])
    with pytest.raises(TooLarge, match=r"^Request body is over its limit of 10 bytes$"):
        await read_body(sender, Headers({"Content-Length": length}), 10)
    assert sender.asked == 0


async def test_a_declared_length_is_not_believed():
    """A body that is longer than it says is counted all the same."""
    with pytest.raises(TooLarge):
        await read_body(Sender([b"x" * 11]), {"content-length": "3"}, 10)


@pytest.mark.parametrize("length", ["", "-1", "1.5", "0x10", "²", "1 2"])
async def test_a_length_that_is_no_number_is_refused(length):
    """A Content-Length that is no decimal number is a client error."""
    with pytest.raises(InvalidInput, match=r"^Content-Length: must be a number$"):
        await read_body(Sender([b""]), {"content-length": length}, 10)


@pytest.mark.parametrize("encoding", ["gzip", "br", "GZIP", "identity, gzip", "x"])
async def test_a_compressed_body_is_refused(encoding):
    """Compressed bodies are refused before they are read."""
    sender = Sender([b"{}"])
    with pytest.raises(InvalidInput, match=r"^Content-Encoding: compressed bodies are not "):
        await read_body(sender, {"content-encoding": encoding}, 10)
    assert sender.asked == 0


@pytest.mark.parametrize("encoding", ["identity", " Identity ", ""])
async def test_an_identity_body_is_read(encoding):
    """Content-Encoding identity says that there is none."""
    assert await read_body(Sender([b"{}"]), {"content-encoding": encoding}, 10) == b"{}"


async def test_half_a_body_runs_into_the_time_limit():
    """A client that stops in the middle is not waited for."""
    half = Sender([b"x", b"y"])

    async def receive():
        return await half() if half.asked == 0 else await asyncio.Event().wait()

    with pytest.raises(BodyTimeout):
        await read_body(receive, {}, 10, timeout_s=0.02)


async def test_a_dripping_body_runs_into_the_time_limit():
    """Bytes that keep dripping do not extend the time."""

    async def receive():
        await asyncio.sleep(0.001)
        return {"type": "http.request", "body": b".", "more_body": True}

    with pytest.raises(BodyTimeout):
        await read_body(receive, {}, 10_000_000, timeout_s=0.05)


async def test_a_client_that_goes_away_is_told_apart():
    """A hang-up in the middle of a body is neither a timeout nor a short body."""

    async def receive():
        return {"type": "http.disconnect"}

    with pytest.raises(ClientDisconnect):
        await read_body(receive, {}, 10)


async def test_a_message_may_leave_out_what_is_empty():
    """ASGI: a message without `body` adds nothing, one without `more_body` is the last."""
    messages = iter([{"body": b"{", "more_body": True}, {"more_body": True}, {"body": b"}"}])

    async def receive():
        return {"type": "http.request", **next(messages)}

    assert await read_body(receive, {}, 10) == b"{}"
