"""Which ports a step with network may take and connect to, by the bytes of an address."""

import errno
import socket
import struct

import pytest

from adapters_runtime.sandbox.isolation.config import ANY, LOOPBACK
from adapters_runtime.sandbox.ports import Ports, is_loopback, packed

RESERVED = 8_000
STORE = "192.0.2.7", 5_432
FIRST_FREE = 1_024
OWN_PORTS = (0, 80, 9_000, RESERVED, STORE[1])


def address(host: str, port: int) -> bytes:
    if ":" in host:
        scope = struct.pack("I", 0)
        bare = socket.inet_pton(socket.AF_INET6, host)
        return struct.pack("=H", socket.AF_INET6) + struct.pack(">HI", port, 0) + bare + scope
    bare = socket.inet_pton(socket.AF_INET, host)
    return struct.pack("=H", socket.AF_INET) + struct.pack(">H", port) + bare + bytes(8)


def ports(listen: str = "") -> Ports:
    return Ports((STORE,), (RESERVED,), listen)


def may_bind(listen: str, host: str, port: int) -> bool:
    return ports(listen).of_bind(address(host, port), FIRST_FREE) == 0


LOOPBACKS = ("127.0.0.1", "127.0.0.77", "::1", "::ffff:127.0.0.1")
OTHERS = ("0.0.0.0", "192.0.2.1", "::", "2001:db8::1", "::ffff:0.0.0.0", "::ffff:192.0.2.1")


@pytest.mark.parametrize("host", [*LOOPBACKS, *OTHERS])
def test_who_does_not_listen_takes_no_port(host: str) -> None:
    """Only the one that the kernel chooses, as a client. CS-20."""
    assert [port for port in OWN_PORTS if may_bind("", host, port)] == [0]
    assert ports().of_listen(packed(host), 9_000) == errno.EACCES


@pytest.mark.parametrize("host", [*LOOPBACKS, *OTHERS])
def test_who_listens_takes_what_is_nobodys(host: str) -> None:
    """On the loopback or everywhere, never a port of the server's or one that is root's."""
    wanted = [0, 9_000] if host in LOOPBACKS else [0]
    assert [port for port in OWN_PORTS if may_bind(LOOPBACK, host, port)] == wanted
    assert [port for port in OWN_PORTS if may_bind(ANY, host, port)] == [0, 9_000]
    for listen in (LOOPBACK, ANY):
        assert ports(listen).of_listen(packed(host), RESERVED) == errno.EACCES
        assert ports(listen).of_listen(packed(host), STORE[1]) == errno.EACCES
    assert (ports(LOOPBACK).of_listen(packed(host), 9_000) == 0) is (host in LOOPBACKS)
    assert ports(ANY).of_listen(packed(host), 9_000) == 0


def test_other_families() -> None:
    """Whoever asks for routes binds, without a group to be told by; nobody else does."""
    netlink = struct.pack("=HHII", socket.AF_NETLINK, 0, 0, 0)
    assert ports().of_bind(netlink, FIRST_FREE) == 0
    told = struct.pack("=HHII", socket.AF_NETLINK, 0, 0, 1)
    assert ports(ANY).of_bind(told, FIRST_FREE) == errno.EACCES
    for family in (socket.AF_UNIX, socket.AF_PACKET, 40):
        made = struct.pack("=H", family) + bytes(20)
        assert ports(ANY).of_bind(made, FIRST_FREE) == errno.EAFNOSUPPORT
    unnamed = bytes(2) + address("127.0.0.1", RESERVED)[2:]  # as IPv4, says the kernel
    assert ports(ANY).of_bind(unnamed, FIRST_FREE) == errno.EACCES


def test_what_is_chosen_is_nobodys_either() -> None:
    """Where the kernel could choose a port of the server's, another one is looked for."""
    assert ports().may_meet(7_000, 9_000)
    assert not ports().may_meet(32_768, 60_999)
    assert [ports().is_unreserved(port) for port in (RESERVED, STORE[1], 9_000)] == [
        False,
        False,
        True,
    ]


@pytest.mark.parametrize(
    ("place", "host", "reached"),
    [
        ("192.0.2.7", "192.0.2.7", False),
        ("192.0.2.7", "192.0.2.8", True),
        ("192.0.2.7", "127.0.0.1", True),
        ("10.99.99.1", "127.0.0.1", False),
        ("127.0.0.1", "10.99.99.1", False),
        ("::1", "127.0.0.5", False),
        ("10.99.99.1", "192.0.2.7", True),
        ("", "10.99.99.1", False),
        ("", "192.0.2.7", True),
    ],
)
def test_this_machine_is_one_place(place: str, host: str, reached: bool) -> None:
    """What is closed here is closed by every address of the machine, whichever one names it."""
    here = {packed(own) for own in ("127.0.0.1", "127.0.0.5", "10.99.99.1", "::1")}
    rules = Ports(((place, 5_432),), (), "")
    refused = rules.of_connect(address(host, 5_432), here.__contains__)
    assert (refused == 0) is reached
    assert rules.of_connect(address(host, 5_433), here.__contains__) == 0


def test_what_is_the_machines_own() -> None:
    """The loopback is 127.0.0.0/8 and ::1."""
    assert all(is_loopback(packed(host)) for host in LOOPBACKS)
    assert not any(is_loopback(packed(host)) for host in OTHERS)
