"""The connections of a step with network: like any other's, but for the ports that are closed."""

import socket
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve

from adapters_runtime.code.runner import CodeStepRunner
from adapters_runtime.sandbox.isolation.config import LANDLOCK, NAMESPACE, UID
from adapters_runtime.sandbox.isolation_level import Isolation
from wfcore.testing.contracts.steps import job, silent

BEGIN = """
import json, os, socket, sys, threading, time
ports = json.loads(os.environ["WF_VAR_ports"])

def tried(act):
    try:
        return act()
    except OSError as error:
        return type(error).__name__

def greeted(host, port, family=socket.AF_INET):
    with socket.socket(family) as one:
        one.connect((host, port))
        return one.recv(10).decode()
"""
KINDS = """
def datagram():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        one.connect(("127.0.0.1", ports["open"]))
        return one.getpeername()[1] == ports["open"]

def without_waiting():
    with socket.socket() as one:
        one.setblocking(False)
        said = one.connect_ex(("127.0.0.1", ports["open"]))
        one.settimeout(60)
        return said, one.recv(10).decode()

def waits_again():
    with socket.socket() as one:
        one.connect(("127.0.0.1", ports["open"]))
        return one.getblocking(), one.recv(10).decode()

print(json.dumps({
    "open": tried(lambda: greeted("127.0.0.1", ports["open"])),
    "open6": tried(lambda: greeted("::1", ports["open6"], socket.AF_INET6)),
    "nobody": tried(lambda: greeted("127.0.0.1", ports["nobody"])),
    "datagram": tried(datagram),
    "without waiting": tried(without_waiting),
    "waits again": tried(waits_again),
    "here": tried(lambda: greeted("127.0.0.1", ports["here"])),
    "here, by another name": tried(lambda: greeted("127.3.2.1", ports["here"])),
    "the store": tried(lambda: greeted("127.0.0.1", ports["store"])),
    "the store's port elsewhere": tried(lambda: greeted("127.0.0.2", ports["store"])),
}))
"""
SLOW = """
def wait():
    socket.create_connection(("127.0.0.1", ports["deaf"]), 20)

for _ in range(3):
    threading.Thread(target=wait, daemon=True).start()
time.sleep(0.2)
print(json.dumps([tried(lambda: greeted("127.0.0.1", ports["open"])) for _ in range(20)]))
sys.stdout.flush()
os._exit(0)
"""


@pytest.fixture
def ports() -> Iterator[dict[str, int]]:
    """Who listens: greeters, one that never answers, and a port where nobody is."""
    with ExitStack() as stack:

        def greeter(host: str = "127.0.0.1", family: int = socket.AF_INET) -> int:
            return stack.enter_context(_greeter(host, family))

        deaf = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=0))
        for _ in range(4):
            full = stack.enter_context(socket.socket())
            full.setblocking(False)
            full.connect_ex(deaf.getsockname())
        nobody = stack.enter_context(socket.socket())  # bound, and not listening
        nobody.bind(("127.0.0.1", 0))
        yield {
            "open": greeter(),
            "open6": greeter("::1", socket.AF_INET6),
            "here": greeter("0.0.0.0"),
            "store": greeter("0.0.0.0"),
            "nobody": nobody.getsockname()[1],
            "deaf": deaf.getsockname()[1],
        }


class _greeter:
    """Says a word to whoever connects."""

    def __init__(self, host: str, family: int) -> None:
        self._listener = socket.create_server((host, 0), family=socket.AddressFamily(family))
        self._thread = threading.Thread(target=self._greet)

    def __enter__(self) -> int:
        self._thread.start()
        return int(self._listener.getsockname()[1])

    def __exit__(self, *_: object) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._listener.close()

    def _greet(self) -> None:
        while True:
            try:
                guest, _ = self._listener.accept()
            except OSError:
                return
            with guest:
                guest.sendall(b"hello")


@pytest.fixture(params=[NAMESPACE, UID, LANDLOCK])
async def runner(
    request: pytest.FixtureRequest, tmp_path: Path, files: Any, ports: dict[str, int]
) -> AsyncIterator[CodeStepRunner]:
    closed = (("", ports["here"]), ("127.0.0.1", ports["store"]))
    isolation = Isolation(forced=request.param, closed=closed)
    runner = CodeStepRunner(tmp_path / "steps", files, lambda: "art", isolation=isolation)
    try:
        level = await runner.level()
        if level.name != request.param:
            pytest.skip(f"no level {request.param} here: {level.missed}")
        yield runner
    finally:
        await runner.close()


async def _said(runner: CodeStepRunner, source: str, ports: dict[str, int]) -> Any:
    import json

    asked = job(BEGIN + source, environment={"WF_VAR_ports": json.dumps(ports)})
    asked = evolve(asked, step=evolve(asked.step, network=True))
    end = await runner.run(asked, silent)
    assert end.error is None, end.error
    return end.output


async def test_every_way_to_connect(runner: CodeStepRunner, ports: dict[str, int]) -> None:
    """Connections succeed, fail and wait as ever; the closed ports are refused, by any name."""
    said = await _said(runner, KINDS, ports)
    waiting = said.pop("without waiting")
    assert waiting in ([0, "hello"], [115, "hello"])
    assert said == {
        "open": "hello",
        "open6": "hello",
        "nobody": "ConnectionRefusedError",
        "datagram": True,
        "waits again": [True, "hello"],
        "here": "PermissionError",
        "here, by another name": "PermissionError",
        "the store": "PermissionError",
        "the store's port elsewhere": "hello",
    }


async def test_a_slow_peer_holds_up_nobody_else(
    runner: CodeStepRunner, ports: dict[str, int]
) -> None:
    """While some threads of a step wait for a peer that never answers, others get through."""
    assert await _said(runner, SLOW, ports) == ["hello"] * 20
