"""Sending callbacks over real sockets."""

import socket
from collections.abc import Iterator

import pytest

from adapters_runtime.engine.callbacks import HttpCallbackClient
from adapters_runtime.pinned_http import HttpReply, PinnedHttp
from tests.support.receiver import Receiver, a_receiver
from wfcore.ports.callbacks import CallbackAnswer

HEADERS = {"webhook-id": "msg_1"}


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with a_receiver() as made:
        yield made


@pytest.fixture
def callback_client() -> HttpCallbackClient:
    return HttpCallbackClient(allow_private=True, timeout_s=10)


async def test_the_body_arrives_as_it_is(
    callback_client: HttpCallbackClient, receiver: Receiver
) -> None:
    """Body, headers and query arrive unchanged, under the name that the address has."""
    url = receiver.url.replace("127.0.0.1", "localhost")
    assert await callback_client.post(url, HEADERS, b'{"a":1}') == CallbackAnswer(204)
    (got,) = receiver.received
    assert (got.path, got.body) == ("/told?for=me", b'{"a":1}')
    headers = {name.lower(): value for name, value in got.headers.items()}
    assert headers["webhook-id"] == "msg_1"
    assert headers["content-type"] == "application/json"
    assert headers["host"] == f"localhost:{receiver.port}"


async def test_redirects_are_answers(
    callback_client: HttpCallbackClient, receiver: Receiver
) -> None:
    """A redirect is not followed, wherever it points."""
    with a_receiver() as other:
        receiver.location = other.url
        receiver.answers = [307]
        assert await callback_client.post(receiver.url, HEADERS, b"{}") == CallbackAnswer(307)
        assert other.received == []


async def test_private_addresses_are_not_called(receiver: Receiver) -> None:
    """A name that resolves to a private address is not connected to. CB-4."""
    callback_client = HttpCallbackClient()
    url = receiver.url.replace("127.0.0.1", "localhost")
    answer = await callback_client.post(url, HEADERS, b"{}")
    assert answer.status is None
    assert "private" in str(answer.error)
    assert receiver.received == []


async def test_nobody_there(callback_client: HttpCallbackClient) -> None:
    """A refused connection is an answer without a status, which names it without the address."""
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
        answer = await callback_client.post(f"http://127.0.0.1:{port}/secret", HEADERS, b"{}")
    assert answer.status is None
    assert answer.error == "could not be reached: NotConnected"


async def test_nothing_of_an_answer_is_read_but_its_head(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever a receiver goes on to say, it costs nothing."""
    limits: list[object] = []

    async def exchange(_: PinnedHttp, *asked: object) -> HttpReply:
        limits.append(asked[-1])
        return HttpReply(204, {}, b"")

    monkeypatch.setattr(PinnedHttp, "exchange", exchange)
    assert await HttpCallbackClient().post("https://example.org", {}, b"{}") == CallbackAnswer(204)
    assert limits == [0]


async def test_no_answer(receiver: Receiver) -> None:
    """A receiver that never answers is given up after the time for it."""
    receiver.answers = [0]
    callback_client = HttpCallbackClient(allow_private=True, timeout_s=0.2)
    answer = await callback_client.post(receiver.url, HEADERS, b"{}")
    assert answer == CallbackAnswer(error="no answer within 0.2 s")
