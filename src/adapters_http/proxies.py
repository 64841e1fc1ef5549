"""
What proxies may say of a client, and the names that this application answers to. Decision 84.

Whoever connects may write `X-Forwarded-For`. Only what a trusted proxy wrote counts, and each adds
its own on the right: read from there, the first address that is not trusted itself is the client.
"""

from collections.abc import Sequence
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import TypeAlias

from attrs import frozen
from starlette.types import Scope

from adapters_http.config import Network
from adapters_http.transport.heads import is_host

Address: TypeAlias = IPv4Address | IPv6Address


@frozen
class Proxies:
    """The addresses and networks whose word is taken; none by default."""

    trusted: Sequence[Network] = ()

    def seen_through(self, scope: Scope) -> Scope:
        """
        *scope* with the client, the scheme and the `Host` as the trusted proxies in front say;
        *scope* itself where none of these sent it. `Forwarded` is not read.
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
        """The nearest one that is not trusted; where a hop cannot be read, who reported it."""
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
    """The parts of a list that may be spread over several fields, first to last, lower case."""
    values = [value.decode("latin-1") for key, value in scope["headers"] if key == name]
    return [part.strip().lower() for part in ",".join(values).split(",")] if values else []


def _address(text: str) -> Address | None:
    """`192.0.2.1`, `192.0.2.1:80`, `2001:db8::1`, `[2001:db8::1]:80`; None: something else."""
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
