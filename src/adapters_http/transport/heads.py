"""
Heads: what that of a request must be before anything else looks at it, and how that of an answer
leaves. RFC 9110, RFC 9112.

llhttp, the parser, refuses what breaks the grammar: folded fields, bare line feeds, two lengths, a
length beside chunks. It lets pass what only a server can judge; that is judged here, so that this
server and a proxy in front of it never take one request for two different ones. Decision 84.
"""

import asyncio
import re
from collections.abc import Callable, Iterable, Sequence
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import TypeAlias

from attrs import frozen
from starlette.types import Scope

from adapters_http.config import Network

Problem = tuple[int, str]
"""A status, and what to say."""
Fields = Iterable[tuple[bytes, bytes]]
"""Names in lower case."""

_HOST = re.compile(rb"(?:[A-Za-z0-9._~-]+|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?")
_ABSOLUTE = re.compile(rb"https?://([^/?#]*)", re.IGNORECASE)


def problem_of(version: str, target: bytes, fields: Fields) -> Problem | None:
    """
    Why a request with this HTTP *version*, *target* and *fields* must not be answered.

    HTTP/1.1 requires one `Host`, HTTP/1.0 may omit it. A target in absolute form must name the same
    host, because two names for one resource are ambiguous.
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


Address: TypeAlias = IPv4Address | IPv6Address


@frozen
class Proxies:
    """The trusted addresses and networks; none by default."""

    trusted: Sequence[Network] = ()

    def seen_through(self, scope: Scope) -> Scope:
        """
        *scope* with the client, the scheme and the `Host` as reported by the trusted proxies in
        front; *scope* itself if none of these sent it. `Forwarded` is not read.
        """
        peer = _address(scope["client"][0]) if self.trusted and scope.get("client") else None
        if peer is None or not self._trusts(peer):
            return scope
        seen = dict(scope)
        client = self._client(peer, _said(scope, b"x-forwarded-for"))
        seen["client"] = (str(client), scope["client"][1] if client == peer else 0)
        scheme = _said(scope, b"x-forwarded-proto")[-1:]
        if scheme in (["http"], ["https"]):
            (seen["scheme"],) = scheme
        host = _said(scope, b"x-forwarded-host")[-1:]
        if host and is_host(host[0].encode("latin-1")):
            others = [field for field in scope["headers"] if field[0] != b"host"]
            seen["headers"] = [(b"host", host[0].encode("latin-1")), *others]
        return seen

    def _client(self, peer: Address, hops: Sequence[str]) -> Address:
        """
        The nearest address that is not trusted; if a hop cannot be read, the one who reported it.
        """
        client = peer
        for hop in reversed(hops):
            address = _address(hop)
            if address is None:
                break
            client = address
            if not self._trusts(client):
                break
        return client

    def _trusts(self, address: Address) -> bool:
        return any(address in network for network in self.trusted)


def _said(scope: Scope, name: bytes) -> list[str]:
    """The items of a list that may be spread over several fields, first to last, lower case."""
    values = [value.decode("latin-1") for key, value in scope["headers"] if key == name]
    return [part.strip().lower() for part in ",".join(values).split(",")] if values else []


def _address(text: str) -> Address | None:
    """`192.0.2.1`, `192.0.2.1:80`, `2001:db8::1`, `[2001:db8::1]:80`; None for anything else."""
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
    """The name in a `Host` field: without port and final dot, in lower case."""
    name, colon, port = host.strip().lower().rpartition(":")
    bare = name if colon and port.isdigit() else host.strip().lower()
    return bare.removesuffix(".")


def is_loopback(host: str) -> bool:
    """Whether browsers take that host for this very machine: a loopback address or `localhost`."""
    address = _address(host.strip("[]"))
    if address is not None:
        return address.is_loopback
    return host == "localhost" or host.endswith(".localhost")


class HeadFirst:
    """
    The transport of one answer: its head waits for the first part of its body, so that both are one
    write. A head without a body so far is sent at the end of the loop's turn.
    """

    def __init__(
        self,
        transport: asyncio.Transport,
        loop: asyncio.AbstractEventLoop,
        close: Callable[[], None],
    ) -> None:
        self._transport = transport
        self._loop = loop
        self._close = close
        self._head: bytes | None = None
        self.is_closing = transport.is_closing

    def write(self, data: bytes) -> None:
        if self._head is None:
            self._head = data
            self._loop.call_soon(self.flush)
        else:
            self._transport.write(self._head + data)
            self._head = b""

    def flush(self) -> None:
        """Do not wait for a body."""
        if self._head:
            self._transport.write(self._head)
            self._head = b""

    def close(self) -> None:
        self.flush()
        self._close()
