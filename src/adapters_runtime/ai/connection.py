"""
One HTTP exchange with a provider on a connection of its own.

No redirect is followed, no proxy or credential of the environment is used, no more than
`MOST_BYTES` are read, and certificates are checked. When it has returned or raised, the
connection is closed. AI-4, AI-5, AI-6.
"""

import asyncio
import ssl
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from attrs import frozen

from adapters_runtime.ai.address import Address, addresses_of
from wfcore.ports.models import AnswerLost, ModelBusy, ModelFailed, ModelRefused

if TYPE_CHECKING:
    import httpx2

MOST_BYTES = 10 * 1_048_576
CONNECT_S = 10.0


@frozen
class Reply:
    """What came back. Names of headers are in small letters."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class Connections:
    """Makes connections. The HTTP library is imported by a thread when it is first needed."""

    def __init__(self) -> None:
        self._context: ssl.SSLContext | None = None

    async def exchange(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes = b""
    ) -> Reply:
        """
        Send one request and read its whole answer.

        Raises `ModelBusy` (no connection), `ModelRefused` (no trust in the server), `AnswerLost`.
        """
        if self._context is None:
            self._context = await asyncio.to_thread(_prepared)
        where = urlsplit(url)
        port = where.port or (443 if where.scheme == "https" else 80)
        trouble: ModelFailed | None = None
        for address in await addresses_of(where.hostname or "", port):
            try:
                request = _request(method, url, address, headers, body)
                return await _exchange(request, self._context)
            except ModelBusy as failure:
                trouble = failure
        assert trouble
        raise trouble


def _prepared() -> ssl.SSLContext:
    import httpx2

    return httpx2.create_ssl_context()


def _request(
    method: str, url: str, address: Address, headers: Mapping[str, str], body: bytes
) -> "httpx2.Request":
    """A request for *url* that goes to *address* and to nowhere else."""
    import httpx2

    where = httpx2.URL(url)
    return httpx2.Request(
        method,
        where.copy_with(host=str(address)),
        headers={
            "host": where.netloc.decode("ascii"),
            "accept": "application/json",
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


async def _exchange(request: "httpx2.Request", context: ssl.SSLContext) -> Reply:
    import httpx2

    host = request.headers["host"]
    limits = httpx2.Limits(max_connections=1, max_keepalive_connections=0)
    try:
        transport = httpx2.AsyncHTTPTransport(verify=context, trust_env=False, limits=limits)
        async with transport:
            response = await transport.handle_async_request(request)
            try:
                return await _read(response)
            finally:
                await response.aclose()
    except (httpx2.ConnectError, httpx2.ConnectTimeout) as failure:
        raise _not_connected(host, failure) from None
    except httpx2.TransportError as failure:
        what = str(failure) or type(failure).__name__
        raise AnswerLost(f"the connection to {host} broke: {what}") from None


async def _read(response: "httpx2.Response") -> Reply:
    headers = {name.lower(): value for name, value in response.headers.items()}
    if headers.get("content-encoding", "identity").lower() != "identity":
        raise AnswerLost("the answer is compressed, which was not asked for")
    chunks: list[bytes] = []
    size = 0
    stream: Any = response.stream
    async for chunk in stream:
        size += len(chunk)
        if size > MOST_BYTES:
            raise AnswerLost(f"the answer is over {MOST_BYTES // 1_048_576} MB")
        chunks.append(chunk)
    return Reply(response.status_code, headers, b"".join(chunks))


def _not_connected(host: str, failure: BaseException) -> ModelFailed:
    """Nothing was sent yet. A certificate that is wrong now will be wrong again."""
    cause: BaseException | None = failure
    while cause is not None:
        if isinstance(cause, ssl.SSLCertVerificationError):
            return ModelRefused(f"the certificate of {host} is not valid: {cause.verify_message}")
        cause = cause.__cause__ or cause.__context__
    return ModelBusy(f"cannot connect to {host}: {failure or type(failure).__name__}")
