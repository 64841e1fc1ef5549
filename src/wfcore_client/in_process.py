"""
A transport to an ASGI application in this process, in place of a server.

The transport of httpx collects a whole response before it returns: an event stream would be silent
until the execution has ended. This transport passes on a response piece by piece.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping
from typing import Any, TypeAlias

import httpx2 as httpx

Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
App: TypeAlias = Callable[[Message, Receive, Send], Awaitable[None]]


class InProcess(httpx.AsyncBaseTransport):
    """Sends requests to *app*, whose lifespan its owner has to run."""

    def __init__(self, app: App) -> None:
        self._app = app

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """The response, once it begins. Raises the errors of the application before that."""
        exchange = _Exchange(self._app, request, await request.aread())
        head = await exchange.message()
        return httpx.Response(head["status"], headers=head.get("headers", []), stream=exchange)


class _Exchange(httpx.AsyncByteStream):
    """A request, and the body of its response."""

    def __init__(self, app: App, request: httpx.Request, body: bytes) -> None:
        self._request: Message = {"type": "http.request", "body": body, "more_body": False}
        self._sent: asyncio.Queue[Message] = asyncio.Queue(1)
        self._more = True
        self._over = asyncio.Event()
        self._work = asyncio.ensure_future(app(_scope(request), self._receive, self._sent.put))

    async def _receive(self) -> Message:
        if self._request:
            message, self._request = self._request, {}
            return message
        await self._over.wait()
        return {"type": "http.disconnect"}

    async def message(self) -> Message:
        """The next message of the application. Raises the error with which it ends instead."""
        coming = asyncio.ensure_future(self._sent.get())
        try:
            await asyncio.wait({coming, self._work}, return_when=asyncio.FIRST_COMPLETED)
            if not coming.done() and self._sent.empty():
                await self._work
                raise httpx.RemoteProtocolError("the application ended before its response did")
            return await coming
        finally:
            coming.cancel()

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while self._more:
            message = await self.message()
            self._more = message.get("more_body", False)
            yield message.get("body", b"")

    async def aclose(self) -> None:
        """Close the exchange; an application that is still sending is cancelled."""
        self._over.set()
        if self._more:
            self._work.cancel()
        await asyncio.wait({self._work})
        if not self._work.cancelled():
            self._work.exception()  # the response was complete: a later error is not the caller's


def _scope(request: httpx.Request) -> Message:
    url = request.url
    return {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": request.method,
        "headers": [(name.lower(), value) for name, value in request.headers.raw],
        "scheme": url.scheme,
        "path": url.path,
        "raw_path": url.raw_path.split(b"?")[0],
        "query_string": url.query,
        "server": (url.host, url.port),
        "client": ("127.0.0.1", 0),
        "root_path": "",
    }
