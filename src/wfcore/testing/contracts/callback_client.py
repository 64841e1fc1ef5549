"""
The contract of a client that sends callbacks, as a test class to inherit from.

    class TestMyClient(CallbackClientContract):
        @pytest.fixture
        def peer(self): ...       # a `ScriptedReceiver`: the server, with scripted answers

        @pytest.fixture
        def callback_client(self, peer): ...    # a client that may call the peer anywhere

The contract needs pytest-asyncio in auto mode.
"""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Protocol

import pytest

from wfcore.ports.callbacks import CallbackAnswer, CallbackClient
from wfcore.testing.contracts.awaited import Awaited

HEADERS = {"webhook-id": "msg_1", "webhook-signature": "v1,abc="}


class ScriptedReceiver(Protocol):
    """The receiver of callbacks. Each method scripts the reaction to one request, in call order."""

    @property
    def url(self) -> str:
        """The URL to call."""

    @property
    def received(self) -> Sequence[tuple[str, Mapping[str, str], bytes]]:
        """The target (path and query), headers and body of every request."""

    def answers(self, status: int) -> None:
        """Answer the next request with *status*; the default is 204."""

    def hangs_up(self) -> None:
        """Close the connection of the next request without an answer."""


class CallbackClientContract(Awaited):
    """
    The promises of `wfcore.ports.callbacks.CallbackClient` that a single receiver can observe.

    Subclasses provide the fixtures `callback_client` and `peer`, a `ScriptedReceiver`. The client
    may call `peer` wherever `peer` listens.
    """

    async def test_body_and_headers_arrive_as_they_are(
        self, callback_client: CallbackClient, peer: ScriptedReceiver
    ) -> None:
        """Every byte and every header of the request arrives, once."""
        body = '{"a":"ü","b":[1,2]}'.encode()
        assert await callback_client.post(peer.url, HEADERS, body) == CallbackAnswer(204)
        ((address, headers, received),) = peer.received
        assert peer.url.endswith(address)
        assert received == body
        found = {name.lower(): value for name, value in headers.items()}
        assert HEADERS.items() <= found.items()

    @pytest.mark.parametrize("given_status", [200, 204, 400, 404, 410, 429, 500, 503])
    async def test_whatever_is_answered_is_an_answer(
        self, callback_client: CallbackClient, peer: ScriptedReceiver, given_status: int
    ) -> None:
        """An answer of any status is returned; no status raises an exception."""
        peer.answers(given_status)
        assert await callback_client.post(peer.url, HEADERS, b"{}") == CallbackAnswer(given_status)

    @pytest.mark.parametrize("given_status", [301, 302, 307, 308])
    async def test_a_redirect_is_not_followed(
        self, callback_client: CallbackClient, peer: ScriptedReceiver, given_status: int
    ) -> None:
        """The request goes to the given URL and nowhere else."""
        peer.answers(given_status)
        assert await callback_client.post(peer.url, HEADERS, b"{}") == CallbackAnswer(given_status)
        assert len(peer.received) == 1

    async def test_no_answer_is_told_without_secrets(
        self, callback_client: CallbackClient, peer: ScriptedReceiver
    ) -> None:
        """
        A broken connection is an answer without a status. Its message does not contain the address.
        """
        peer.hangs_up()
        answer = await callback_client.post(peer.url, HEADERS, b"{}")
        assert answer.status is None
        assert answer.error
        assert peer.url not in answer.error
        assert await callback_client.post(peer.url, HEADERS, b"{}") == CallbackAnswer(204)

    async def test_many_at_once(
        self, callback_client: CallbackClient, peer: ScriptedReceiver
    ) -> None:
        """Concurrent messages do not mix, and each arrives once."""
        bodies = [str(number).encode() for number in range(10)]
        await asyncio.gather(*(callback_client.post(peer.url, HEADERS, body) for body in bodies))
        assert sorted(body for _, _, body in peer.received) == sorted(bodies)
