"""The client, scheme and host of a request that came through proxies."""

from collections.abc import Sequence

from attrs import frozen
from starlette.types import Scope

from adapters_http.config import Network
from adapters_http.transport.connections import Address, address_of, is_host


@frozen
class Proxies:
    """The trusted addresses and networks; by default there are no trusted proxies."""

    trusted: Sequence[Network] = ()

    def resolve(self, scope: Scope) -> Scope:
        """
        *scope* with the client, scheme and `Host` that the trusted proxies report; *scope* itself
        if the request did not come from a trusted proxy. `Forwarded` is ignored.
        """
        peer = address_of(scope["client"][0]) if self.trusted and scope.get("client") else None
        if peer is None or not self._trusts(peer):
            return scope
        seen = dict(scope)
        client = self._client(peer, _items(scope, b"x-forwarded-for"))
        seen["client"] = (str(client), scope["client"][1] if client == peer else 0)
        scheme = _items(scope, b"x-forwarded-proto")[-1:]
        if scheme in (["http"], ["https"]):
            (seen["scheme"],) = scheme
        host = _items(scope, b"x-forwarded-host")[-1:]
        if host and is_host(host[0].encode("latin-1")):
            others = [field for field in scope["headers"] if field[0] != b"host"]
            seen["headers"] = [(b"host", host[0].encode("latin-1")), *others]
        return seen

    def _client(self, peer: Address, hops: Sequence[str]) -> Address:
        """
        The nearest address that is not trusted. A hop that is not an address ends the search: the
        proxy that reported this hop counts as the client.
        """
        client = peer
        for hop in reversed(hops):
            address = address_of(hop)
            if address is None:
                break
            client = address
            if not self._trusts(client):
                break
        return client

    def _trusts(self, address: Address) -> bool:
        return any(address in network for network in self.trusted)


def _items(scope: Scope, name: bytes) -> list[str]:
    """The items, in lower case, of a header that is a list; a header may occur several times."""
    values = [value.decode("latin-1") for key, value in scope["headers"] if key == name]
    return [part.strip().lower() for part in ",".join(values).split(",")] if values else []
