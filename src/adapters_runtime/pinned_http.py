"""
One HTTP exchange with one checked address, for callbacks, AI calls and notices.

A name is resolved once, its addresses are checked, and the connection goes to a checked address, so
that a later change of the name has no effect (DNS rebinding). The `Host` header and the name that
the certificate must have are those of the URL. No redirect is followed; no proxy, credential or
cookie of the environment is used; the response is bounded; the connection is closed at the end.

The caller limits the time, by `asyncio.timeout` around the exchange.
"""

import asyncio
import errno
import socket
import ssl
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from attrs import field, frozen

from adapters_runtime.sandbox.shortage import describe, is_shortage

if TYPE_CHECKING:
    import httpx2

CONNECT_S = 10.0

Choice = Callable[[Sequence[str]], Sequence[str]]
"""A function from the addresses of a name to the addresses that may be connected to, best first."""
Resolver = Callable[[str, int], Awaitable[Sequence[str]]]
Transport = Callable[[ssl.SSLContext], "httpx2.AsyncBaseTransport"]


@frozen
class HttpReply:
    """A response. Header names are in lower case; `body` is empty if it was not read."""

    status: int
    headers: Mapping[str, str] = field(repr=False)
    body: bytes = field(repr=False)


class ExchangeFailed(Exception):
    """
    Raised when an exchange gives no response. The message never shows path, query, headers or body.
    """


class HostShort(ExchangeFailed):
    """
    Raised when this machine lacks something for a connection; the message says what. Nothing was
    sent.
    """


class NotResolved(ExchangeFailed):
    """Raised when the name cannot be resolved. Nothing was sent."""


class NotAllowed(ExchangeFailed):
    """
    Raised when no address of the host may be connected to; `addresses` has them all. Nothing was
    sent.
    """

    def __init__(self, host: str, addresses: Sequence[str]) -> None:
        super().__init__(f"{host} leads to {', '.join(addresses)}")
        self.addresses = addresses


class NotConnected(ExchangeFailed):
    """Raised when no address accepts a connection. Nothing was sent."""


class NotTrusted(ExchangeFailed):
    """Raised when the server's certificate is not valid for the name. Nothing was sent."""


class ConnectionBroke(ExchangeFailed):
    """Raised when the connection ends, or the response is malformed, after something was sent."""


async def resolve(host: str, port: int) -> Sequence[str]:
    """The addresses of *host* according to the system, best first, without scope ids."""
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(one[4][0]).partition("%")[0] for one in found))


def _new_transport(context: ssl.SSLContext) -> "httpx2.AsyncBaseTransport":
    import httpx2

    limits = httpx2.Limits(max_connections=1, max_keepalive_connections=0)
    return httpx2.AsyncHTTPTransport(verify=context, trust_env=False, limits=limits)


class PinnedHttp:
    """
    Makes exchanges with addresses that *choice* allows.

    Tests replace *resolver* and *transport*. The HTTP library is imported in a thread with the
    first exchange, because most servers never make one.
    """

    def __init__(
        self, choice: Choice, resolver: Resolver = resolve, transport: Transport = _new_transport
    ) -> None:
        self._choice = choice
        self._resolver = resolver
        self._transport = transport
        self._context: ssl.SSLContext | None = None

    async def exchange(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes, most_bytes: int
    ) -> HttpReply:
        """
        Send one request, and return the response with a body of at most *most_bytes*.

        If *most_bytes* is 0, the body is not read. The next address is tried only if nothing was
        sent to the previous one. Raises `ExchangeFailed`.
        """
        await self._require_context()
        trouble: ExchangeFailed | None = None
        for address in await self._addresses(url):
            try:
                request = _request(method, url, address, headers, body)
                return await self._send(request, most_bytes)
            except NotConnected as failure:
                trouble = failure
        assert trouble
        raise trouble

    async def _require_context(self) -> None:
        if self._context is None:
            try:
                self._context = await asyncio.to_thread(_load)
            except (OSError, RuntimeError) as failure:
                if lacking := _lacking(failure):
                    raise HostShort(lacking) from None
                raise NotConnected(f"certificates cannot be read: {failure}") from None

    async def _addresses(self, url: str) -> Sequence[str]:
        where = urlsplit(url)
        host = where.hostname or ""
        try:
            port = 443 if where.scheme == "https" else 80
            found = await self._resolver(host, where.port or port)
        except (OSError, UnicodeError, RuntimeError) as trouble:
            if lacking := _lacking(trouble) or _lacking_a_socket():
                raise HostShort(lacking) from None
            raise NotResolved(f"cannot look up {host}: {trouble}") from None
        allowed = self._choice(found)
        if not allowed:
            raise NotAllowed(host, found)
        return allowed

    async def _send(self, request: "httpx2.Request", most_bytes: int) -> HttpReply:
        import httpx2

        host = request.headers["host"]
        assert self._context
        try:
            async with self._transport(self._context) as transport:
                response = await transport.handle_async_request(request)
                try:
                    return await _read(response, most_bytes)
                finally:
                    await response.aclose()
        except (httpx2.ConnectError, httpx2.ConnectTimeout) as failure:
            raise _not_connected(host, failure) from None
        except httpx2.TransportError as failure:
            what = str(failure) or type(failure).__name__
            raise ConnectionBroke(f"the connection to {host} broke: {what}") from None


def _load() -> ssl.SSLContext:
    import httpx2

    return httpx2.create_ssl_context()


def _request(
    method: str, url: str, address: str, headers: Mapping[str, str], body: bytes
) -> "httpx2.Request":
    """A request for *url* that goes to *address*."""
    import httpx2

    where = httpx2.URL(url)
    return httpx2.Request(
        method,
        where.copy_with(host=address),
        headers={
            "host": where.netloc.decode("ascii"),
            "accept-encoding": "identity",
            "connection": "close",
            **headers,
        },
        content=body,
        extensions={
            "timeout": {"connect": CONNECT_S, "read": None, "write": None, "pool": None},
            "sni_hostname": where.host,
        },
    )


async def _read(response: "httpx2.Response", most_bytes: int) -> HttpReply:
    headers = {name.lower(): value for name, value in response.headers.items()}
    if most_bytes == 0:
        return HttpReply(response.status_code, headers, b"")
    if headers.get("content-encoding", "identity").lower() != "identity":
        raise ConnectionBroke("the answer is compressed, which was not asked for")
    chunks: list[bytes] = []
    size = 0
    stream: Any = response.stream
    async for chunk in stream:
        size += len(chunk)
        if size > most_bytes:
            raise ConnectionBroke(f"the answer is over {most_bytes // 1_048_576} MB")
        chunks.append(chunk)
    return HttpReply(response.status_code, headers, b"".join(chunks))


def _not_connected(host: str, failure: BaseException) -> ExchangeFailed:
    """
    The error for *failure*: `NotTrusted` will come again, `HostShort` and other errors may pass.
    """
    if lacking := _lacking(failure):
        return HostShort(lacking)
    cause: BaseException | None = failure
    while cause is not None:
        if isinstance(cause, ssl.SSLCertVerificationError):
            return NotTrusted(f"the certificate of {host} is not valid: {cause.verify_message}")
        cause = cause.__cause__ or cause.__context__
    return NotConnected(f"cannot connect to {host}: {failure or type(failure).__name__}")


def _lacking(failure: BaseException | None) -> str | None:
    """The shortage of this machine that caused *failure*, or None. Nothing was sent then."""
    while failure is not None:
        if isinstance(failure, RuntimeError) and "new thread" in str(failure):
            return describe(errno.EAGAIN, str(failure))
        if isinstance(failure, OSError) and is_shortage(failure.errno):
            return describe(failure.errno, failure.strerror or str(failure))
        failure = failure.__cause__ or failure.__context__
    return None


def _lacking_a_socket() -> str | None:
    """
    The shortage that keeps this machine from opening a socket, or None.

    The resolver reports such a shortage as a name server that does not answer.
    """
    try:
        socket.socket().close()
    except OSError as trouble:
        return _lacking(trouble)
    return None
