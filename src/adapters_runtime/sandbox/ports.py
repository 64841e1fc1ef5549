"""
The ports that a step with network may connect to, and the ports that it may take.

Pure: addresses are the bytes of a `sockaddr`, answers are numbers of errors, 0 for yes. The owner
of a port receives what others send there, so a step takes a port only with `listen`. A port of the
server, or of a service that the server calls, is never taken: it is free while its owner restarts.
CS-20, decision 254.

A *client* needs a port, too, which the kernel chooses: at `connect`, when a datagram is sent, or at
a `bind` to the port 0, as some resolvers do. No other program relies on such a port.

Standard library only.
"""

import errno
import socket
import sys
from collections.abc import Callable, Iterable

from adapters_runtime.sandbox.isolation.config import ANY, LOOPBACK

_MAPPED = b"\0" * 10 + b"\xff\xff"  # IPv4 written as IPv6
_OF_NETLINK = 12


class Ports:
    """
    The rules for one step.

    *closed*: each (address, port) that the step cannot connect to; with an empty address, or one
    of this machine, through no address of this machine. *reserved*: ports that the step cannot
    take. *listen*: where the step may listen (`isolation.config`).
    """

    def __init__(
        self, closed: Iterable[tuple[str, int]], reserved: Iterable[int], listen: str
    ) -> None:
        self._closed = [(_packed(address), port) for address, port in closed]
        self._reserved = frozenset((*reserved, *(port for _, port in self._closed)))
        self._listen = listen

    def of_connect(self, address: bytes, is_here: Callable[[bytes], bool]) -> int:
        """
        The error for a `connect` to *address*, or 0. *is_here*: whether a host is this machine.
        """
        host, port = host_and_port(address)
        places = [place for place, closed_port in self._closed if port == closed_port]
        if host in places:
            return errno.EACCES
        reached = places and is_here(host) and any(not one or is_here(one) for one in places)
        return errno.EACCES if reached else 0

    def of_bind(self, address: bytes, first_free: int) -> int:
        """The error for a `bind` to *address*, or 0. Only root takes ports below *first_free*."""
        family = family_of(address)
        if family == socket.AF_NETLINK:  # to read routes, not to subscribe to changes
            return 0 if not any(address[8:_OF_NETLINK]) else errno.EACCES
        if family not in (socket.AF_UNSPEC, socket.AF_INET, socket.AF_INET6):
            return errno.EAFNOSUPPORT
        host, port = host_and_port(address)
        if not port:
            return 0
        if port < first_free:
            return errno.EACCES
        return self._of_taking(host, port)

    def of_listen(self, host: bytes, port: int) -> int:
        """The error for a `listen` of a socket that is bound to *host* and *port*, or 0."""
        return self._of_taking(host, port)

    def is_unreserved(self, port: int) -> bool:
        """Whether a *port* that the kernel chose is not reserved."""
        return port not in self._reserved

    def may_meet(self, low: int, high: int) -> bool:
        """Whether a reserved port lies from *low* to *high*, where the kernel chooses ports."""
        return any(low <= port <= high for port in self._reserved)

    def _of_taking(self, host: bytes, port: int) -> int:
        known = self._listen == ANY or (self._listen == LOOPBACK and is_loopback(host))
        return 0 if known and port not in self._reserved else errno.EACCES


def family_of(address: bytes) -> int:
    """The family of a `sockaddr`, or 0 if *address* is too short."""
    return int.from_bytes(address[:2], sys.byteorder) if len(address) >= 2 else 0


def host_and_port(address: bytes) -> tuple[bytes, int]:
    """Host and port of an IPv4 or IPv6 address; for other families an empty host and port 0."""
    family = family_of(address) if len(address) >= 8 else -1
    port = int.from_bytes(address[2:4], "big")
    if family in (socket.AF_INET, socket.AF_UNSPEC):
        return address[4:8], port
    if family == socket.AF_INET6 and len(address) >= 24:
        return address[8:24].removeprefix(_MAPPED), port
    return b"", 0


def is_loopback(host: bytes) -> bool:
    """Whether only this machine can reach the packed address *host*."""
    return host[:1] == b"\x7f" if len(host) == 4 else host == b"\0" * 15 + b"\1"


def packed(address: str) -> bytes:
    """The bytes of an *address* given as text. IPv4 written as IPv6 becomes IPv4."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    return socket.inet_pton(family, address.partition("%")[0]).removeprefix(_MAPPED)


def _packed(address: str) -> bytes:
    return packed(address) if address else b""
