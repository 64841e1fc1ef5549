"""A provider's name is looked up once for a call, and the connection goes where it was checked."""

import asyncio
import socket
from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit

import pytest

from adapters_runtime.ai.models import WireModels
from adapters_runtime.ai.providers import providers_from
from model_server import ModelServer
from wfcore.ports.models import ModelRefused, Question

NAME = "models.example"
QUESTION = Question("local:m", "Say it")


class Names:
    """A resolver whose answers are in the test's hand."""

    def __init__(self, *answers: Sequence[str]) -> None:
        self.answers = list(answers)
        self.asked: list[str] = []

    async def __call__(self, loop: Any, host: str, port: int, **more: Any) -> list[Any]:
        if host != NAME:
            return socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        self.asked.append(host)
        found = self.answers.pop(0)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (one, port)) for one in found]


@pytest.fixture
def models(server: ModelServer) -> WireModels:
    port = urlsplit(server.url).port
    return WireModels(providers_from({"WFCORE_AI_LOCAL_BASE_URL": f"http://{NAME}:{port}/v1"}))


def resolve_by(names: Names, monkeypatch: pytest.MonkeyPatch) -> Names:
    async def getaddrinfo(loop: Any, host: str, port: int, **more: Any) -> list[Any]:
        return await names(loop, host, port, **more)

    monkeypatch.setattr(asyncio.BaseEventLoop, "getaddrinfo", getaddrinfo)
    return names


async def test_a_name_is_looked_up_once(
    models: WireModels, server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A name that leads elsewhere at the second look is not looked at twice. AI-6."""
    names = resolve_by(Names(["127.0.0.1"], ["169.254.169.254"]), monkeypatch)
    assert (await models.ask(QUESTION)).text == "hello"
    assert names.asked == [NAME]
    assert server.asked[0].headers["host"].startswith(f"{NAME}:")


async def test_unfit_addresses_are_passed_over(
    models: WireModels, server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the addresses of a name only those that are hosts are connected to. AI-6."""
    resolve_by(Names(["169.254.169.254", "0.0.0.0", "127.0.0.1"]), monkeypatch)
    assert (await models.ask(QUESTION)).text == "hello"


async def test_the_next_address(
    models: WireModels, server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where nobody listens at the first address, the next one is tried."""
    resolve_by(Names(["127.9.9.9", "127.0.0.1"]), monkeypatch)
    assert (await models.ask(QUESTION)).text == "hello"


@pytest.mark.parametrize("address", ["169.254.169.254", "0.0.0.0"])
async def test_no_fit_address(
    models: WireModels, server: ModelServer, monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    """A name of which no address is a host is refused, and nothing is sent. AI-6."""
    resolve_by(Names([address]), monkeypatch)
    with pytest.raises(ModelRefused, match="no host to ask"):
        await models.ask(QUESTION)
    assert server.asked == []
