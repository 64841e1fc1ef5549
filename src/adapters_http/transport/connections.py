"""
The connections of a server: their shared limits, the checks of a request's head, and the writing of
whole responses. RFC 9110, RFC 9112.

Each connection is a file descriptor, and steps need descriptors, too; so the number of connections
is bounded, both in total and for one address. Over the bound, a new connection takes the place of
the connection that has been idle the longest; if no connection is idle, the new connection is
refused.

Bytes that a client does not read stay in memory; so these bytes are counted, and their total is
bounded. Over the bound, clients that took no data for a second lose their connections, beginning
with the client that has taken no data for the longest time; then clients with the most bytes. One
response of any size is always allowed. Decision 71.

The parser, llhttp, refuses requests that break the grammar: folded fields, bare line feeds, two
lengths, a length beside chunks. This module has the checks that only a server can make, so that
this server and a proxy in front of it never read one request as two different requests.
"""

import asyncio
import logging
import re
import resource
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Sequence
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Any, NamedTuple, Protocol, TypeAlias

from attrs import define, frozen

log = logging.getLogger("wfcore.http")

STALLED_S = 1.0
"""The seconds without progress after which a client is among the first to lose its response."""
_EASED = 0.75
"""The part of the bound to which unsent bytes are reduced, so that reductions are rare."""
_MOST = 10_000
_FEWEST = 16
_ENGINE = 64
_PER_PLACE = 16


@frozen
class ConnectionLimits:
    """
    The limits of all connections together. `most`: the number of connections; `most_each`: the
    number of connections of one address. `unsent`: the bytes that wait for clients, without bytes
    that the kernel has accepted.
    """

    most: int = _MOST
    most_each: int = _MOST // 2
    unsent: int = 16 << 20

    @classmethod
    def of_process(
        cls, places: int, most: int | None = None, most_each: int | None = None
    ) -> "ConnectionLimits":
        """
        The limits that the open files of this process allow, beside an engine with *places*.

        A quarter of the files, or the number of files that steps in all places need, is reserved
        for the engine. A connection may take two files, because a download reads a file. *most* and
        *most_each* lower the limits.
        """
        files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        if files == resource.RLIM_INFINITY:
            files = 4 * _MOST
        kept = max(files // 4, _ENGINE + _PER_PLACE * places)
        able = max((files - kept) // 2, _FEWEST)
        in_all = min(most or _MOST, able)
        return cls(in_all, min(most_each or max(in_all // 2, 1), in_all))


DEFAULT_LIMITS = ConnectionLimits()


class Connection(Protocol):
    """A connection, as `Connections` uses it."""

    address: str

    def unsent(self) -> int:
        """The number of bytes that wait for the client."""

    def drop(self) -> None:
        """Close the connection at once."""


@define
class _Slow:
    left: int
    since: float


class Connections:
    """The connections of one server. *clock* counts seconds."""

    def __init__(self, limits: ConnectionLimits, clock: Callable[[], float]) -> None:
        self._limits = limits
        self._clock = clock
        self._all: set[Connection] = set()
        self._of: Counter[str] = Counter()
        self._idle: dict[Connection, None] = {}
        self._slow: dict[Connection, _Slow] = {}
        self.unsent = 0
        """The bytes that wait for clients, as of the last update of each client."""
        self.refused = 0
        self.dropped = 0

    def __len__(self) -> int:
        return len(self._all)

    def gauges(self) -> dict[str, float]:
        """The gauges for the metrics."""
        return {
            "wfcore_connections": len(self._all),
            "wfcore_connections_refused_total": self.refused,
            "wfcore_connections_dropped_total": self.dropped,
            "wfcore_unsent_bytes": self.unsent,
        }

    def enter(self, client: Connection) -> bool:
        """
        Accept a new connection, perhaps in place of an idle connection. Returns False if there is
        no place.
        """
        accepted = self._of[client.address] < self._limits.most_each or self._evict(client.address)
        accepted = accepted and (len(self._all) < self._limits.most or self._evict(None))
        if not accepted:
            self.refused += 1
            return False
        self._all.add(client)
        self._of[client.address] += 1
        self._idle[client] = None
        return True

    def leave(self, client: Connection) -> None:
        """Remove a connection, if it is present."""
        if client not in self._all:
            return
        self._all.discard(client)
        self._idle.pop(client, None)
        self.took_all(client)
        self._of[client.address] -= 1
        if not self._of[client.address]:
            del self._of[client.address]

    def idle(self, client: Connection) -> None:
        """Note that a connection waits for a request from now on."""
        if client in self._all:
            self._idle[client] = None

    def busy(self, client: Connection) -> None:
        """Note that a connection works on a request."""
        self._idle.pop(client, None)

    def took_all(self, client: Connection) -> None:
        """Note that the client has taken all bytes."""
        slow = self._slow.pop(client, None)
        if slow is not None:
            self.unsent -= slow.left

    def is_slow(self, client: Connection) -> None:
        """Note that the client did not take a response at once; keep `unsent` within its bound."""
        if client not in self._all:
            return
        self.took_all(client)
        left = client.unsent()
        self._slow[client] = _Slow(left, self._clock())
        self.unsent += left
        if self.unsent > self._limits.unsent:
            self._ease()

    def took_nothing_for(self, client: Connection) -> float:
        """The seconds since a check last found that the client had taken data."""
        slow = self._slow.get(client)
        if slow is None:
            return 0.0
        self._update(client, slow)
        return self._clock() - slow.since

    def _update(self, client: Connection, slow: _Slow) -> None:
        left = client.unsent()
        if left != slow.left:
            self.unsent += left - slow.left
            slow.left, slow.since = left, self._clock()

    def _ease(self) -> None:
        for client, slow in self._slow.items():
            self._update(client, slow)
        if self.unsent <= self._limits.unsent:
            return
        stalled = self._clock() - STALLED_S
        in_order = sorted(
            self._slow.items(),
            key=lambda item: (
                (0, item[1].since) if item[1].since <= stalled else (1, -float(item[1].left))
            ),
        )
        for client, _ in in_order[:-1]:
            if self.unsent <= self._limits.unsent * _EASED:
                return
            self._end(client)

    def _evict(self, address: str | None) -> bool:
        """
        Close the connection that has been idle the longest; with *address*, only a connection of
        that address. Returns whether a connection was closed.
        """
        fits = (one for one in self._idle if address is None or one.address == address)
        longest = next(fits, None)
        if longest is not None:
            self._end(longest)
        return longest is not None

    def _end(self, client: Connection) -> None:
        self.dropped += 1
        self.leave(client)
        client.drop()


Problem = tuple[int, str]
"""A status and a message."""
Fields = Iterable[tuple[bytes, bytes]]
"""Names, in lower case, and values."""

_HOST = re.compile(rb"(?:[A-Za-z0-9._~-]+|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?")
_ABSOLUTE = re.compile(rb"https?://([^/?#]*)", re.IGNORECASE)


def problem_of(version: str, target: bytes, fields: Fields) -> Problem | None:
    """
    The reason to refuse a request with this HTTP *version*, *target* and *fields*; None for a valid
    request.

    HTTP/1.1 requires one `Host`; HTTP/1.0 may omit `Host`. A target in absolute form must name the
    same host, because two names for one resource are ambiguous.
    """
    if version not in ("1.1", "1.0"):
        return 400, "Only HTTP/1.1 and HTTP/1.0 are spoken here"
    hosts, codings = [], []
    for name, value in fields:
        if name == b"host":
            hosts.append(value.strip(b" \t"))
        elif name == b"transfer-encoding":
            codings.append(value.strip(b" \t"))
    return _of_host(version, target, hosts) or (_of_coding(version, codings) if codings else None)


def is_host(value: bytes) -> bool:
    """Whether *value* is valid in a `Host` field: a name or an address, optionally with a port."""
    return _HOST.fullmatch(value) is not None


Address: TypeAlias = IPv4Address | IPv6Address


def address_of(text: str) -> Address | None:
    """
    The address in a text like `192.0.2.1`, `192.0.2.1:80`, `2001:db8::1` or `[2001:db8::1]:80`;
    None for any other text.
    """
    if text.startswith("["):
        text = text[1:].partition("]")[0]
    elif text.count(":") == 1:
        text = text.partition(":")[0]
    try:
        address = ip_address(text.partition("%")[0])
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return mapped or address


def host_name(host: str) -> str:
    """The name in a `Host` field, in lower case, without port and final dot."""
    name, colon, port = host.strip().lower().rpartition(":")
    bare = name if colon and port.isdigit() else host.strip().lower()
    return bare.removesuffix(".")


def is_loopback(host: str) -> bool:
    """Whether browsers treat *host* as this machine: a loopback address or `localhost`."""
    address = address_of(host.strip("[]"))
    if address is not None:
        return address.is_loopback
    return host == "localhost" or host.endswith(".localhost")


def _of_host(version: str, target: bytes, hosts: list[bytes]) -> Problem | None:
    if len(hosts) > 1 or (not hosts and version == "1.1"):
        return 400, "Exactly one Host header field is needed"
    if b"#" in target:
        return 400, "The target must not have a fragment"
    if hosts and not is_host(hosts[0]):
        return 400, "The Host header field must be a host name or address, and perhaps a port"
    if not target.startswith((b"/", b"*")):
        named = _ABSOLUTE.match(target)
        if named is None or (hosts and named[1].lower() != hosts[0].lower()):
            return 400, "The target must be a path, or name the same host as the Host header field"
    return None


def _of_coding(version: str, codings: list[bytes]) -> Problem | None:
    if version != "1.1":
        return 400, "Transfer-Encoding needs HTTP/1.1"
    if [one.lower() for one in codings] != [b"chunked"]:
        return 501, "The only Transfer-Encoding is chunked, once"
    return None


Headers: TypeAlias = list[tuple[bytes, bytes]]
"""The headers of a response, with names in lower case."""

WHOLE = "wfcore.answer"
"""
The name of the extension of an ASGI scope that takes a whole answer; its value is a `WholeAnswer`.
"""


class WholeAnswer(NamedTuple):
    """
    A way to send a response in one call; two ASGI messages cost more. The call is valid only with
    the same `send`: a middleware that changes responses passes on a `send` of its own.
    """

    send: Callable[..., Awaitable[None]]
    answer: Callable[[int, Headers, bytes], None]


class EndedBy:
    """The transport of a streamed response; *close* ends its connection."""

    def __init__(self, transport: asyncio.Transport, close: Callable[[], None]) -> None:
        self.write = transport.write
        self.is_closing = transport.is_closing
        self.close = close


def head_of(status_line: bytes, fields: Sequence[tuple[bytes, bytes]]) -> bytes:
    """The head of a response. Raises `ValueError` for a field with a line break."""
    lines = [b"%b: %b\r\n" % field for field in fields]
    head = b"".join((status_line, *lines, b"\r\n"))
    if not head.count(b"\r") == head.count(b"\n") == len(fields) + 2:
        raise ValueError("a line break in a header field")
    return head


def forgive_lost_clients(loop: asyncio.AbstractEventLoop) -> None:
    """
    Log the errors of transports whose clients left, without a traceback: such an error is not a
    defect.
    """

    def handle(loop: asyncio.AbstractEventLoop, about: dict[str, Any]) -> None:
        if "transport" in about and isinstance(about.get("exception"), OSError):
            log.debug("client.lost", extra={"error": repr(about["exception"])})
        else:
            loop.default_exception_handler(about)

    loop.set_exception_handler(handle)
