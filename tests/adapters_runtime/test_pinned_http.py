"""
Outgoing exchanges go where their address was checked. No test here leaves this machine: names are
resolved by the test, and what would be connected to elsewhere is only written down.
"""

import ssl
from collections.abc import Sequence
from functools import partial
from urllib.parse import urlsplit

import httpx2
import pytest

from adapters_runtime.ai.models import WireModels
from adapters_runtime.ai.providers import providers_from
from adapters_runtime.engine.callbacks import HttpCallbackClient
from adapters_runtime.pinned_http import (
    ConnectionBroke,
    NotAllowed,
    NotConnected,
    NotResolved,
    PinnedHttp,
    resolve,
)
from tests.support.model_server import a_model_server
from tests.support.receiver import a_receiver
from wfcore.ports.callbacks import CallbackAnswer
from wfcore.ports.models import ModelBusy, ModelRefused, ModelRequest

NAME = "elsewhere.example"
QUESTION = ModelRequest("local:m", "Say it")
METADATA = "169.254.169.254"


class Names:
    """A resolver whose answers, one for each look-up, are in the test's hand."""

    def __init__(self, *answers: Sequence[str]) -> None:
        self.answers = list(answers)
        self.asked: list[str] = []
        self.ports: list[int] = []

    async def __call__(self, host: str, port: int) -> Sequence[str]:
        self.asked.append(host)
        self.ports.append(port)
        return self.answers.pop(0)


class Recorder(httpx2.AsyncBaseTransport):
    """A transport that writes down where it should have gone, and answers as it is told."""

    def __init__(self, *closed: str, status: int = 204) -> None:
        self.went_to: list[str] = []
        self.requests: list[httpx2.Request] = []
        self.closed = closed
        self.status = status

    def __call__(self, _: ssl.SSLContext) -> "Recorder":
        return self

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        self.went_to.append(request.url.host)
        self.requests.append(request)
        if request.url.host in self.closed:
            raise httpx2.ConnectError("nobody there")
        return httpx2.Response(self.status)


def callback_client(
    names: Names, recorder: Recorder, allow_private: bool = False
) -> HttpCallbackClient:
    return HttpCallbackClient(
        allow_private, http=partial(PinnedHttp, resolver=names, transport=recorder)
    )


async def test_a_public_address_is_called_by_its_name() -> None:
    """The connection goes to the address that was checked, in the name of the host. CB-4."""
    recorder = Recorder()
    url = f"https://{NAME}/told?for=me"
    assert await callback_client(Names(["93.184.216.34"]), recorder).post(
        url, {}, b"{}"
    ) == CallbackAnswer(204)
    (request,) = recorder.requests
    assert recorder.went_to == ["93.184.216.34"]
    assert request.headers["host"] == NAME
    assert request.extensions["sni_hostname"] == NAME


@pytest.mark.parametrize("private", ["127.0.0.1", METADATA, "10.0.0.1", "::1", "192.0.0.8"])
async def test_one_private_address_is_enough(private: str) -> None:
    """Of several addresses of a name every one must be public, or none is called. CB-4."""
    recorder = Recorder()
    for found in ([private], ["93.184.216.34", private], [private, "93.184.216.34"]):
        answer = await callback_client(Names(found), recorder).post(f"http://{NAME}/", {}, b"{}")
        assert "private" in str(answer.error)
    assert recorder.went_to == []


async def test_the_name_is_resolved_once() -> None:
    """What was checked is what is connected to: a second look-up never happens. CB-4."""
    recorder = Recorder()
    names = Names(["93.184.216.34"], ["127.0.0.1"])
    await callback_client(names, recorder).post(f"http://{NAME}/", {}, b"{}")
    assert (names.asked, recorder.went_to) == ([NAME], ["93.184.216.34"])


async def test_the_real_connection_goes_to_the_resolved_address() -> None:
    """A name that only the resolver knows is reached at the address that it gave, over a socket."""
    with a_receiver() as receiver:
        http = partial(PinnedHttp, resolver=Names(["127.0.0.1"]))
        sender = HttpCallbackClient(allow_private=True, http=http)
        assert await sender.post(f"http://{NAME}:{receiver.port}/x", {}, b"{}") == CallbackAnswer(
            204
        )
        (got,) = receiver.received
    assert got.path == "/x"


async def test_the_next_address() -> None:
    """Where nobody listens at one address the next one is tried, and nobody is called twice."""
    recorder = Recorder("93.184.216.34")
    names = Names(["93.184.216.34", "93.184.216.35", "93.184.216.36"])
    assert await callback_client(names, recorder).post(
        f"http://{NAME}/", {}, b"{}"
    ) == CallbackAnswer(204)
    assert recorder.went_to == ["93.184.216.34", "93.184.216.35"]


async def test_no_address_answers() -> None:
    """Where nobody listens at any address the failure says so, without path and query."""
    http = PinnedHttp(list, Names(["127.0.0.1", "127.0.0.2"]), Recorder("127.0.0.1", "127.0.0.2"))
    with pytest.raises(NotConnected) as caught:
        await http.exchange("POST", f"http://{NAME}/secret?key=1", {}, b"", 0)
    assert NAME in str(caught.value)
    assert "secret" not in str(caught.value)


async def test_an_unknown_name() -> None:
    """A name that cannot be looked up is a failure of its own; nothing was sent."""

    async def unknown(host: str, port: int) -> Sequence[str]:
        raise OSError("Name or service not known")

    recorder = Recorder()
    with pytest.raises(NotResolved, match=NAME):
        await PinnedHttp(list, unknown, recorder).exchange("GET", f"http://{NAME}/", {}, b"", 0)
    assert recorder.went_to == []


async def test_a_private_name_is_told_like_an_unknown_one() -> None:
    """Callbacks to either fail with the same words: no name of the network is told. CB-4."""

    async def unknown(host: str, port: int) -> Sequence[str]:
        raise OSError("Name or service not known")

    told = set[str | None]()
    for resolver in (Names(["10.0.0.1"]), Names(["::1"]), Names([]), unknown):
        http = partial(PinnedHttp, resolver=resolver, transport=Recorder())
        answer = await HttpCallbackClient(False, http=http).post(f"http://{NAME}/", {}, b"")
        told.add(answer.error)
    (said,) = told
    assert said
    assert NAME not in said


async def test_models_pass_over_what_is_no_host() -> None:
    """Of a provider's addresses only hosts are asked, private ones included. AI-6."""
    with a_model_server() as server:
        port = urlsplit(server.url).port
        environment = {"WFCORE_AI_LOCAL_BASE_URL": f"http://{NAME}:{port}/v1"}
        names = Names([METADATA, "0.0.0.0", "127.0.0.1"], [METADATA])
        models = WireModels(providers_from(environment), partial(PinnedHttp, resolver=names))
        assert (await models.ask(QUESTION)).text == "hello"
        with pytest.raises(ModelRefused, match="no host to ask"):
            await models.ask(QUESTION)
        assert len(server.asked) == 1
    assert server.asked[0].headers["host"].startswith(f"{NAME}:")


def asking(recorder: Recorder, *found: str) -> WireModels:
    """Models whose provider's name leads to *found*."""
    environment = {"WFCORE_AI_LOCAL_BASE_URL": f"http://{NAME}/v1"}
    http = partial(PinnedHttp, resolver=Names(found), transport=recorder)
    return WireModels(providers_from(environment), http)


@pytest.mark.parametrize("address", [METADATA, "0.0.0.0", "fe80::1", "224.0.0.1", "::"])
async def test_addresses_that_are_no_hosts(address: str) -> None:
    """Link-local, unspecified and multicast addresses get neither question nor key. AI-6."""
    recorder = Recorder()
    with pytest.raises(ModelRefused, match="no host to ask"):
        await asking(recorder, address).ask(QUESTION)
    assert recorder.went_to == []


async def test_a_provider_that_is_not_there_is_busy() -> None:
    """Nothing was sent, so asking again is safe. AI-3."""
    with pytest.raises(ModelBusy, match=f"cannot connect to {NAME}"):
        await asking(Recorder("127.0.0.1"), "127.0.0.1").ask(QUESTION)


async def test_a_provider_without_an_address_is_busy() -> None:
    """A name that cannot be looked up now may be looked up later. AI-3."""

    async def unknown(host: str, port: int) -> Sequence[str]:
        raise OSError("Temporary failure in name resolution")

    environment = {"WFCORE_AI_LOCAL_BASE_URL": f"http://{NAME}/v1"}
    models = WireModels(providers_from(environment), partial(PinnedHttp, resolver=unknown))
    with pytest.raises(ModelBusy, match=f"cannot look up {NAME}"):
        await models.ask(QUESTION)


async def test_a_name_is_looked_up_with_the_port_of_its_address() -> None:
    """A resolver may know services by port: that of the address, or the one of its scheme."""
    names = Names(*[["127.0.0.1"]] * 3)
    for url in (f"http://{NAME}/", f"https://{NAME}/", f"https://{NAME}:8443/"):
        await PinnedHttp(list, names, Recorder()).exchange("GET", url, {}, b"", 0)
    assert names.ports == [80, 443, 8443]


async def test_an_address_that_is_not_allowed_is_named() -> None:
    """Whoever set a name up wrongly reads where it leads; nothing was sent."""
    recorder = Recorder()
    http = PinnedHttp(lambda found: (), Names(["127.0.0.1", "::1"]), recorder)
    with pytest.raises(NotAllowed) as refused:
        await http.exchange("GET", f"http://{NAME}/", {}, b"", 0)
    assert str(refused.value) == f"{NAME} leads to 127.0.0.1, ::1"
    assert list(refused.value.addresses) == ["127.0.0.1", "::1"]
    assert recorder.went_to == []


@pytest.mark.parametrize("most_bytes", [0, 100])
async def test_of_an_answer_no_more_is_read_than_asked_for(most_bytes: int) -> None:
    """Nothing beyond the head where nothing is asked for, be the rest compressed or endless."""
    squeezed = {"Content-Encoding": "gzip", "X-Told": "1"}

    class Squeezed(Recorder):
        async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
            stream = httpx2.ByteStream(b"not really")
            return httpx2.Response(200, headers=squeezed, stream=stream)

    http = PinnedHttp(list, Names(["127.0.0.1"]), Squeezed())
    asking = http.exchange("GET", f"http://{NAME}/", {}, b"", most_bytes)
    if most_bytes:
        with pytest.raises(
            ConnectionBroke, match=r"^the answer is compressed, which was not asked"
        ):
            await asking
    else:
        reply = await asking
        assert (reply.status, reply.body, reply.headers["x-told"]) == (200, b"", "1")


async def test_the_resolver_of_a_server_is_the_system_s() -> None:
    """Numeric addresses come back as they are, names with each of their addresses once."""
    assert await resolve("127.0.0.1", 80) == ["127.0.0.1"]
    found = await resolve("localhost", 80)
    assert len(set(found)) == len(found) > 0
