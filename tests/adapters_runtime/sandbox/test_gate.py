"""The connections of a step with network: like any other's, but for the ports that are closed."""

import errno
import json
import socket
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve

from adapters_runtime.code.runner import CodeStepRunner
from adapters_runtime.sandbox.isolation.config import LANDLOCK, NAMESPACE, UID
from adapters_runtime.sandbox.isolation_level import Isolation
from wfcore.model.workflow import Listen
from wfcore.ports.runtime import StepJob
from wfcore.testing.contracts.steps import alive, job, silent

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
    "the store, by another name": tried(lambda: greeted("127.0.0.2", ports["store"])),
}))
"""
LISTEN = """
def listening(host, port, family=socket.AF_INET):
    with socket.socket(family) as one:
        one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        one.bind((host, port))
        one.listen()
        return "took it"

def unbound(family=socket.AF_INET):
    with socket.socket(family) as one:
        one.listen()
        return "took it"

def shared():
    with socket.socket() as one:
        one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)

def datagrams(host, port):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        one.bind((host, port))
        return "took it"

def from_an_address():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        one.connect(("127.0.0.1", ports["open"]))
        return one.recv(10).decode()

def asks_for_routes():
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0) as one:
        one.bind((0, 0))
        return one.getsockname()[1] == 0

def while_another_thread_changes_the_port():
    import ctypes, struct
    libc = ctypes.CDLL(None, use_errno=True)
    address = bytearray(struct.pack("=H", socket.AF_INET) + bytes((0, 0, 127, 0, 0, 1)) + bytes(8))
    place = (ctypes.c_char * 16).from_buffer(address)
    both = [struct.pack(">H", ports[name]) for name in ("free", "reserved")]
    going = True
    def change():
        while going:
            for port in both:
                address[2:4] = port
    sys.setswitchinterval(0.0001)
    thread = threading.Thread(target=change)
    thread.start()
    found = set()
    for _ in range(300):
        with socket.socket() as one:
            one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if libc.bind(one.fileno(), place, 16) == 0:
                found.add(one.getsockname()[1])
    going = False
    thread.join()
    return ports["reserved"] in found

def from_a_range():
    with socket.socket(socket.AF_INET6) as one:
        one.setsockopt(socket.IPPROTO_IP, 51, bytes(4))

def told_of_routes():
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0) as one:
        one.bind((0, 0))
        one.setsockopt(270, 1, 1)

def resolved():
    return bool(socket.getaddrinfo("localhost", 80)) and bool(socket.if_nameindex())

print(json.dumps({
    "loopback": tried(lambda: listening("127.0.0.1", ports["free"])),
    "loopback6": tried(lambda: listening("::1", ports["free"], socket.AF_INET6)),
    "chosen": tried(lambda: listening("127.0.0.1", 0)),
    "everywhere": tried(lambda: listening("0.0.0.0", ports["free"])),
    "everywhere6": tried(lambda: listening("::", ports["free"], socket.AF_INET6)),
    "unbound": tried(unbound),
    "unbound6": tried(lambda: unbound(socket.AF_INET6)),
    "datagrams": tried(lambda: datagrams("127.0.0.1", ports["free"])),
    "datagrams everywhere": tried(lambda: datagrams("0.0.0.0", ports["free"])),
    "reserved": [
        tried(lambda: listening("127.0.0.1", ports["reserved"])),
        tried(lambda: listening("127.0.0.77", ports["reserved"])),
        tried(lambda: listening("::1", ports["reserved"], socket.AF_INET6)),
        tried(lambda: listening("::ffff:127.0.0.1", ports["reserved"], socket.AF_INET6)),
        tried(lambda: datagrams("127.0.0.1", ports["reserved"])),
        tried(lambda: listening("127.0.0.77", ports["here"])),
        tried(lambda: listening("127.0.0.1", 80)),
        tried(shared),
        tried(from_a_range),
        tried(told_of_routes),
    ],
    "client": [
        tried(from_an_address), tried(asks_for_routes), tried(resolved),
        tried(lambda: datagrams("0.0.0.0", 0)),
    ],
    "raced": while_another_thread_changes_the_port(),
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
NOWHERE = """
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
def called(function):
    with socket.socket() as one:
        function(one.fileno(), ctypes.c_void_p(-1), 16)
        return ctypes.get_errno()
print([called(libc.connect), called(libc.bind)])
"""
CHOSEN = """
import ctypes, struct
libc = ctypes.CDLL(None, use_errno=True)

def has_failed():
    one = socket.socket()
    for _ in range(2):  # the second sees that the first has failed, and it has no port any more
        one.connect_ex(("127.0.0.1", ports["nobody"]))
    return one

def listens(one):
    with one:
        one.listen()
        return one.getsockname()[1]

def of_no_family():
    with socket.socket() as one:
        libc.bind(one.fileno(), bytes(16), 16)
        return one.getsockname()[1]

print(json.dumps([tried(act) for _ in range(8) for act in (
    of_no_family, lambda: listens(socket.socket()), lambda: listens(has_failed())
)]))
"""
HOLD_UP = """
import fcntl
socks = [socket.socket() for _ in range(40)]

def spin():
    while True:
        for one in socks:
            fcntl.fcntl(one, fcntl.F_SETFL, os.O_RDWR)

def connect(one):
    tried(lambda: one.connect(("127.0.0.1", ports["deaf"])))

for _ in range(3):
    if os.fork() == 0:
        spin()
for one in socks:
    threading.Thread(target=connect, args=(one,), daemon=True).start()
    time.sleep(0.02)
time.sleep(60)
"""


LOW, HIGH = map(int, Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split())
OFTEN_CHOSEN = {port for port in range(LOW + 1, HIGH, 2) if port % 8 > 1}
"""What the kernel chooses first is of the other parity than LOW; of that, the most."""


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
            **_unused(),
            "deaf": deaf.getsockname()[1],
        }


def _unused() -> dict[str, int]:
    """A port that nobody has, and one that is reserved, below those that the kernel chooses."""
    found: list[int] = []
    for port in range(20_000, 32_000):
        with socket.socket() as tried, suppress(OSError):
            tried.bind(("0.0.0.0", port))
            found.append(port)
        if len(found) == 2:
            break
    return dict(zip(("free", "reserved"), found, strict=True))


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
    reserved = (ports["reserved"], *OFTEN_CHOSEN)
    isolation = Isolation(forced=request.param, closed=closed, reserved=reserved)
    runner = CodeStepRunner(tmp_path / "steps", files, lambda: "art", isolation=isolation)
    try:
        level = await runner.level()
        if level.name != request.param:
            pytest.skip(f"no level {request.param} here: {level.missed}")
        yield runner
    finally:
        await runner.close()


async def _said(
    runner: CodeStepRunner, source: str, ports: dict[str, int], listen: Listen | None = None
) -> Any:
    end = await runner.run(_asked(source, ports, listen), silent)
    assert end.error is None, end.error
    return end.output


def _asked(
    source: str, ports: dict[str, int], listen: Listen | None = None, timeout_ms: int = 30_000
) -> StepJob:
    about = {"WF_VAR_ports": json.dumps(ports)}
    asked = job(BEGIN + source, environment=about, timeout_ms=timeout_ms)
    return evolve(asked, step=evolve(asked.step, network=True, listen=listen))


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
        "the store, by another name": "PermissionError",
    }


NO, YES = "PermissionError", "took it"


@pytest.mark.parametrize("listen", [None, *Listen])
async def test_every_way_to_listen(
    runner: CodeStepRunner, ports: dict[str, int], listen: Listen | None
) -> None:
    """
    Where a step says so and nowhere else, never at a port of somebody's; clients have what they
    need. CS-20.
    """
    said = await _said(runner, LISTEN, ports, listen)
    assert said.pop("reserved") == [NO] * 7 + ["OSError"] * 3
    assert said.pop("client") == ["hello", True, True, YES]
    assert said.pop("raced") is False
    near, far = (NO if listen is None else YES), (YES if listen is Listen.ANY else NO)
    assert said == {
        "loopback": near,
        "loopback6": near,
        "chosen": near,
        "everywhere": far,
        "everywhere6": far,
        "unbound": far,
        "unbound6": far,
        "datagrams": near,
        "datagrams everywhere": far,
    }


async def test_who_may_not_be_held_may_not_listen(loose_runner: CodeStepRunner) -> None:
    """At the lowest level a step that says `listen` is refused, by name."""
    asked = job("1")
    asked = evolve(asked, step=evolve(asked.step, network=True, listen=Listen.LOOPBACK))
    end = await loose_runner.run(asked, silent)
    assert end.permanent
    assert "listen" in (end.error or "")


async def test_a_slow_peer_holds_up_nobody_else(
    runner: CodeStepRunner, ports: dict[str, int]
) -> None:
    """While some threads of a step wait for a peer that never answers, others get through."""
    assert await _said(runner, SLOW, ports) == ["hello"] * 20


async def test_whoever_holds_up_the_gate_is_watched_all_the_same(
    runner: CodeStepRunner, ports: dict[str, int]
) -> None:
    """
    A step that makes the calls on its sockets wait is ended at its timeout, with all it started,
    and the next one is served. CS-7.
    """
    asked = _asked(HOLD_UP, ports, timeout_ms=2_500)
    end = await runner.run(asked, silent)
    assert end.timed_out, end.error
    assert alive(asked.execution_id) == []
    assert await _said(runner, "print(json.dumps(greeted('127.0.0.1', ports['open'])))", ports)


async def test_an_address_that_no_memory_has(runner: CodeStepRunner, ports: dict[str, int]) -> None:
    """It is refused as by the kernel, and the step goes on."""
    assert await _said(runner, NOWHERE, ports) == [errno.EFAULT] * 2


async def test_what_the_kernel_chooses_is_nobodys(
    runner: CodeStepRunner, ports: dict[str, int]
) -> None:
    """
    However a step has a port chosen, it is none that is reserved: by `bind`, by `listen`, or by
    that after a connection that failed. CS-20.
    """
    chosen = await _said(runner, CHOSEN, ports, Listen.ANY)
    assert OFTEN_CHOSEN.isdisjoint(chosen)
    assert all(port > 0 for port in chosen)
