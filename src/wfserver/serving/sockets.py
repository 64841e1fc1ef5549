"""
The sockets of a server. A client of `localhost` may use IPv4 or IPv6, so a server on the loopback
listens at both: otherwise another process could take the other address and receive API keys. CS-21.
"""

import errno
import socket
from collections.abc import Iterator

BACKLOG = 2_048
_LOOPBACK = ("127.0.0.1", "localhost", "::1")
_NO_IPV6 = (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT)
_TRIES = 50


def listen(host: str, port: int, shared: bool = False) -> tuple[socket.socket, ...]:
    """
    Listening sockets for *host* and *port*, the socket for *host* first. Port 0: a free port.

    *shared*: other processes of the same user may listen there, too. Raises `OSError` if the port
    is taken.
    """
    for last in (*[False] * (0 if port else _TRIES), True):
        made: list[socket.socket] = []
        try:
            for family, address in _places(host):
                made.append(_listen(family, address, _port_of(made) or port, shared))
            return tuple(made)
        except OSError as trouble:
            if trouble.errno in _NO_IPV6 and made:
                return tuple(made)
            close(made)
            if last or trouble.errno != errno.EADDRINUSE:
                raise
    raise AssertionError("the last try returns or raises")


def close(sockets: list[socket.socket] | tuple[socket.socket, ...]) -> None:
    """Close all *sockets*."""
    for one in sockets:
        one.close()


def _places(host: str) -> Iterator[tuple[socket.AddressFamily, str]]:
    own = socket.AF_INET6 if ":" in host else socket.AF_INET
    yield own, host
    if host in _LOOPBACK:
        yield (socket.AF_INET, "127.0.0.1") if ":" in host else (socket.AF_INET6, "::1")


def _port_of(made: list[socket.socket]) -> int:
    return int(made[0].getsockname()[1]) if made else 0


def _listen(family: socket.AddressFamily, host: str, port: int, shared: bool) -> socket.socket:
    return socket.create_server((host, port), family=family, backlog=BACKLOG, reuse_port=shared)
