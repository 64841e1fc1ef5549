"""
The contract of a client that sends callbacks, as a test class to inherit from.

    class TestMyClient(CallbackClientContract):
        @pytest.fixture
        def peer(self): ...       # a `ScriptedReceiver`: who is called, told what to answer

        @pytest.fixture
        def callback_client(self, peer): ...    # one that may call the peer, wherever it is

Needs pytest-asyncio in auto mode.
"""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Protocol

import pytest

from wfcore.ports.callbacks import CallbackAnswer, CallbackClient
from wfcore.testing.contracts.awaited import Awaited

HEADERS = {"webhook-id": "msg_1", "webhook-signature": "v1,abc="}


class ScriptedReceiver(Protocol):
    """The other side. Each word is about one request, in the order of the words."""

    @property
    def url(self) -> str:
        """Where it is called."""

    @property
    def received(self) -> Sequence[tuple[str, Mapping[str, str], bytes]]:
        """Address (path and query), headers and body of every request."""

    def answers(self, status: int) -> None:
        """It answers the next request so; where nothing was said, with 204."""

    def hangs_up(self) -> None:
        """It closes the connection of the next request without a word."""


class CallbackClientContract(Awaited):
    """
    Subclasses give fixtures `callback_client` and `peer`, a `ScriptedReceiver`, which it may call
    wherever that is.

    Everything that `wfcore.ports.callbacks.CallbackClient` promises and one peer can see.
    """

    async def test_body_and_headers_arrive_as_they_are(
        self, callback_client: CallbackClient, peer: ScriptedReceiver
    ) -> None:
        """Every byte and every header of ours, once."""
        body = '{"a":"ü","b":[1,2]}'.encode()
        assert await callback_client.post(peer.url, HEADERS, body) == CallbackAnswer(204)
        ((address, headers, received),) = peer.received
        assert peer.url.endswith(address)
        assert received == body
        found = {name.lower(): value for name, value in headers.items()}
        assert HEADERS.items() <= found.items()

    @pytest.mark.parametrize("status", [200, 204, 400, 404, 410, 429, 500, 503])
    async def test_whatever_is_answered_is_an_answer(
        self, callback_client: CallbackClient, peer: ScriptedReceiver, status: int
    ) -> None:
        """No status is an exception."""
        peer.answers(status)
        assert await callback_client.post(peer.url, HEADERS, b"{}") == CallbackAnswer(status)

    @pytest.mark.parametrize("status", [301, 302, 307, 308])
    async def test_a_redirect_is_not_followed(
        self, callback_client: CallbackClient, peer: ScriptedReceiver, status: int
    ) -> None:
        """What is sent goes where it was sent to, and nowhere else."""
        peer.answers(status)
        assert await callback_client.post(peer.url, HEADERS, b"{}") == CallbackAnswer(status)
        assert len(peer.received) == 1

    async def test_no_answer_is_told_without_secrets(
        self, callback_client: CallbackClient, peer: ScriptedReceiver
    ) -> None:
        """A connection that breaks is an answer without a status, in words without the address."""
        peer.hangs_up()
        answer = await callback_client.post(peer.url, HEADERS, b"{}")
        assert answer.status is None
        assert answer.error
        assert peer.url not in answer.error
        assert await callback_client.post(peer.url, HEADERS, b"{}") == CallbackAnswer(204)

    async def test_many_at_once(
        self, callback_client: CallbackClient, peer: ScriptedReceiver
    ) -> None:
        """Messages that are sent at once do not mix, and each arrives once."""
        bodies = [str(number).encode() for number in range(10)]
        await asyncio.gather(*(callback_client.post(peer.url, HEADERS, body) for body in bodies))
        assert sorted(body for _, _, body in peer.received) == sorted(bodies)
