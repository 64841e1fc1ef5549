"""
Sending callbacks over HTTP, to public addresses only. Contract §9, reliability of outgoing calls.

A name is resolved once, every address it has is checked, and the connection goes to one that
was: a name that changes between check and use changes nothing.
"""

import asyncio
import socket
from collections.abc import Mapping
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from wfcore.ports.callbacks import Answer
from wfcore.rules.callback import may_connect

if TYPE_CHECKING:
    import httpx2 as httpx

TIMEOUT_S = 15.0
_AGENT = "wfcore-callback"


class HttpCourier:
    """
    The `Courier` of a server. *allow_private*: private and loopback addresses are let through.

    The HTTP client is loaded with the first call: most servers never make one.
    """

    def __init__(self, allow_private: bool = False, timeout_s: float = TIMEOUT_S) -> None:
        self._allow_private = allow_private
        self._timeout_s = timeout_s
        self._client: httpx.AsyncClient | None = None

    async def post(self, url: str, headers: Mapping[str, str], body: bytes) -> Answer:
        """Send *body* once; see `Courier`."""
        import httpx2 as httpx

        try:
            async with asyncio.timeout(self._timeout_s):
                return await self._post(url, headers, body)
        except (TimeoutError, httpx.TimeoutException):
            return Answer(error=f"no answer within {self._timeout_s:g} s")
        except (OSError, httpx.HTTPError, httpx.InvalidURL) as error:
            return Answer(error=f"could not be reached: {type(error).__name__}")

    async def _post(self, url: str, headers: Mapping[str, str], body: bytes) -> Answer:
        parts = urlsplit(url)
        host = parts.hostname or ""
        address = await self._address(host, parts.port or (443 if parts.scheme == "https" else 80))
        if address is None:
            return Answer(error="its address is private or a loopback one")
        client = self._open()
        sent = {**headers, "host": parts.netloc, "content-type": "application/json"}
        request = client.build_request(
            "POST", url, headers=sent, content=body, extensions={"sni_hostname": host}
        )
        request.url = request.url.copy_with(host=address)
        answer = await client.send(request, stream=True, follow_redirects=False)
        await answer.aclose()  # what it says beyond its status is not even read
        return Answer(answer.status_code)

    async def _address(self, host: str, port: int) -> str | None:
        """An address of *host*; None where one of them is not for us."""
        loop = asyncio.get_running_loop()
        found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        addresses = [str(one[4][0]) for one in found]
        if not self._allow_private and not all(map(_is_public, addresses)):
            return None
        return addresses[0]

    def _open(self) -> "httpx.AsyncClient":
        import httpx2 as httpx

        if self._client is None:
            self._client = httpx.AsyncClient(
                headers={"user-agent": _AGENT},
                timeout=self._timeout_s,
                trust_env=False,  # a proxy would resolve the name again
                limits=httpx.Limits(max_keepalive_connections=0),
            )
        return self._client

    async def close(self) -> None:
        """Close every connection."""
        if self._client is not None:
            await self._client.aclose()


def _is_public(address: str) -> bool:
    try:
        return may_connect(address)
    except ValueError:
        return False  # a scoped address such as fe80::1%eth0
