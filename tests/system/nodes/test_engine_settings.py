"""The setting that names a dispatch: what is refused, what is never shown, what `doctor` says."""

import asyncio
import json
from importlib.metadata import EntryPoint, EntryPoints
from typing import Any

import pytest

from adapters_runtime.engine import dispatching
from adapters_runtime.engine.dispatching import describe_dispatch, open_dispatch
from adapters_runtime.engine.jetstream import ANY, NatsDispatch, StreamSettings, pool_of, pools_of
from tests.support.nats_server import Broker
from wfcore.errors import InvalidInput
from wfcore.rules.execution.start import label_word, language_word
from wfcore.testing.dispatch import MemoryDispatch, SharedQueue
from wfserver.doctor.checks import _dispatch
from wfserver.settings.isolation import step_isolation
from wfserver.settings.record import settings_from
from wfserver.settings.sharing import ENGINE

STORE = "postgresql:///wfcore"
SECRET = "hunter2"


def test_one_machine_needs_no_dispatch() -> None:
    """On a store that one machine uses the setting is refused, and says what to set."""
    with pytest.raises(InvalidInput, match="WFCORE_STORE"):
        settings_from({ENGINE: "nats://127.0.0.1"})
    shared = settings_from({ENGINE: f"tls://me:{SECRET}@127.0.0.1", "WFCORE_STORE": STORE})
    assert SECRET not in repr(shared)


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("nats://", "HOST:4222"),
        ("nats://host:0x1", "HOST:4222"),
        ("nats://host/path", "HOST:4222"),
        (f"nats://me:{SECRET}@host?nmae=a", "no option nmae"),
        (f"nats://me:{SECRET}@host?name=a.b", "name must be"),
        (f"nats://me:{SECRET}@host?in_flight=0", "in_flight must be"),
        (f"nats://me:{SECRET}@host?replicas=x", "replicas must be"),
        (f"nats://me:{SECRET}@host", r"begin with tls://.*\?tls=none"),
        (f"nats://{SECRET}@127.0.0.1,[::1]?name=a", "begin with tls://"),
        (f"nats://me:{SECRET}@host?tls=some", "tls must be none"),
        (f"tls://me:{SECRET}@host?tls=none", "none is for nats:// only"),
        (f"http://me:{SECRET}@host", "nats://HOST:4222"),
        (f"me:{SECRET}", "nats://HOST:4222"),
    ],
)
def test_a_url_that_cannot_be_used_is_refused_without_being_repeated(url: str, says: str) -> None:
    """The error names the setting and what to write, and no password."""
    with pytest.raises(InvalidInput, match=says) as refused:
        open_dispatch(ENGINE, url, 5)
    assert refused.value.field == ENGINE
    assert SECRET not in str(refused.value)


def test_a_cluster_is_several_servers_with_one_login() -> None:
    """Hosts are separated by commas; the login is for all of them."""
    place = StreamSettings.of("tls://me:pw@a:1,b?name=flows&in_flight=20&replicas=3")
    assert place == StreamSettings(("tls://me:pw@a:1", "tls://me:pw@b"), "flows", 20, 3)
    assert "pw" not in repr(place)


async def test_a_server_that_offers_no_tls_is_told_no_login() -> None:
    """Whoever takes the port is told nothing, whatever it says of itself. ST-9."""
    heard, gone = bytearray(), asyncio.Event()

    async def impostor(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        info = {"version": "2.12.0", "auth_required": True, "tls_available": True, "headers": True}
        writer.write(b"INFO " + json.dumps(info).encode() + b"\r\n")
        try:
            while data := await reader.read(4096):
                heard.extend(data)
                writer.write(b"PONG\r\n")
        finally:
            writer.close()
            gone.set()

    server = await asyncio.start_server(impostor, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    try:
        with pytest.raises(ConnectionError, match="offers no TLS, which tls:// demands"):
            await describe_dispatch(ENGINE, f"tls://me:{SECRET}@127.0.0.1:{port}")
        await gone.wait()
    finally:
        server.close()
    assert heard == b""


def test_pools_are_labels() -> None:
    """An execution waits in the pool of its first label, where all workers with that label look."""
    needs = (language_word("ruby"), label_word("gpu"), label_word("eu.1"))  # type: ignore[arg-type]
    assert pool_of(needs) == "label-eu_1"
    assert pool_of((language_word("ruby"),)) == ANY  # type: ignore[arg-type]
    assert pools_of({label_word("eu.1"), language_word("ruby")}) == [ANY, "label-eu_1"]  # type: ignore[arg-type]
    assert pools_of(None) == [ANY]


def test_an_installed_package_brings_a_dispatch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its entry point is called with the URL; what it refuses is an error of the setting."""

    class Offered(EntryPoint):
        def load(self) -> Any:
            return opened

    def opened(url: str, keep_s: float) -> MemoryDispatch:
        if url.endswith("bad"):
            raise ValueError("is bad")
        return MemoryDispatch(SharedQueue(keep_s))

    def entry_points(group: str) -> EntryPoints:
        assert group == dispatching.GROUP
        return EntryPoints([Offered("queue", "package:open", group)])

    monkeypatch.setattr("importlib.metadata.entry_points", entry_points)
    assert open_dispatch(ENGINE, "queue://here", 2).keep_s == 2
    with pytest.raises(InvalidInput, match="is bad"):
        open_dispatch(ENGINE, "queue://bad", 2)
    with pytest.raises(InvalidInput, match="queue://…"):
        open_dispatch(ENGINE, "other://here", 2)


def test_doctor_asks_the_server(nats: Broker) -> None:
    """It names the version; one that does not answer is a finding with a cure, and no failure."""
    found = _dispatch(nats.url)
    assert found.ok
    assert found.detail.startswith("NATS 2.")
    away = Broker(nats.folder / "away")
    away.folder.mkdir()
    away.start()
    away.kill()  # nobody listens at its port any more
    found = _dispatch(away.url)
    assert not found.ok
    assert not found.essential
    assert ENGINE in str(found.cure)


async def test_what_is_found_names_the_stream(nats: Broker) -> None:
    """Several databases share a server by streams of their own, so it is said which one it is."""
    with pytest.raises(InvalidInput):
        await describe_dispatch(ENGINE, "nats://")
    assert "stream other" in await describe_dispatch(ENGINE, f"{nats.url}?name=other")


async def test_a_server_that_is_away_is_asked_again(nats: Broker) -> None:
    """It is no error to begin without it: it is down, and telling says so."""
    away = Broker(nats.folder / "away")
    away.folder.mkdir(exist_ok=True)
    away.start()
    away.kill()
    dispatch = NatsDispatch.at(away.url, 1)
    running = asyncio.create_task(dispatch.run(lambda: None))
    await asyncio.sleep(0)
    assert not dispatch.up
    assert await dispatch.gauges() == {"wfcore_dispatch_up": 0}
    running.cancel()
    await asyncio.wait((running,))


def test_steps_do_not_reach_the_queue() -> None:
    """Its ports are closed for steps, as those of the database are."""
    settings = settings_from({ENGINE: "nats://127.0.0.1:4999,127.0.0.1", "WFCORE_STORE": STORE})
    closed = {port for _, port in step_isolation(settings).closed}
    assert {4999, 4222} <= closed
