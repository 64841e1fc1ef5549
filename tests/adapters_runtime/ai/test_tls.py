"""Over TLS: certificates are checked, and the name that is checked is the provider's."""

import socket
import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest

from adapters_runtime.ai.models import WireModels
from adapters_runtime.ai.providers import providers_from
from tests.support.model_server import KEY, ModelServer, a_model_server
from wfcore.ports.models import ModelRefused, ModelRequest

FOLDER = Path(__file__).parent / "tls"
QUESTION = ModelRequest("local:m", "Say it")


@pytest.fixture
def secured() -> Iterator[ModelServer]:
    """A provider whose certificate, made for these tests, is for localhost and signed by nobody."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(FOLDER / "cert.pem", FOLDER / "key.pem")

    def wrap(peer: socket.socket) -> socket.socket:
        return context.wrap_socket(peer, server_side=True)

    with a_model_server(wrap) as made:
        yield made


def models_at(server: ModelServer, host: str) -> WireModels:
    url = server.openai.replace("127.0.0.1", host)
    environment = {"WFCORE_AI_LOCAL_BASE_URL": url, "WFCORE_AI_LOCAL_API_KEY": KEY}
    return WireModels(providers_from(environment))


async def test_an_unknown_certificate_gets_nothing(secured: ModelServer) -> None:
    """A server that cannot prove who it is gets neither question nor key, now or later. AI-6."""
    with pytest.raises(ModelRefused, match="certificate of localhost"):
        await models_at(secured, "localhost").ask(QUESTION)
    assert secured.asked == []


async def test_a_trusted_certificate(secured: ModelServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """An authority that the operator trusts is trusted, for the name that it vouches for."""
    monkeypatch.setenv("SSL_CERT_FILE", str(FOLDER / "cert.pem"))
    answer = await models_at(secured, "localhost").ask(QUESTION)
    assert answer.text == "hello"
    assert secured.asked[0].headers["host"].startswith("localhost:")


async def test_a_certificate_for_another_name(
    secured: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A certificate for another name is no proof. AI-6."""
    monkeypatch.setenv("SSL_CERT_FILE", str(FOLDER / "cert.pem"))
    with pytest.raises(ModelRefused, match=r"certificate of 127\.0\.0\.1"):
        await models_at(secured, "127.0.0.1").ask(QUESTION)
    assert secured.asked == []
