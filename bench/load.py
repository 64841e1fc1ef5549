"""A small HTTP load client: keep-alive connections, one request after another on each."""

import asyncio
import time
from collections.abc import Callable, Sequence
from typing import cast

import uvloop
from attrs import frozen


@frozen
class Load:
    """What came of a run: requests answered 2xx, others, seconds, latencies in ms (sorted)."""

    good: int
    bad: int
    seconds: float
    latencies: Sequence[float]

    @property
    def per_second(self) -> float:
        return self.good / self.seconds

    def percentile(self, share: float) -> float:
        return self.latencies[min(int(len(self.latencies) * share), len(self.latencies) - 1)]


class _Client(asyncio.Protocol):
    """One connection. `next_request` gives the bytes to send."""

    def __init__(self, next_request: Callable[[], bytes], until: float) -> None:
        self._next = next_request
        self._until = until
        self._buffer = b""
        self._sent = 0.0
        self.good = self.bad = 0
        self.latencies: list[float] = []
        self.over: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._send()

    def _send(self) -> None:
        now = time.perf_counter()
        if now >= self._until:
            self._transport.close()
            return
        self._sent = now
        self._transport.write(self._next())

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        head, found, body = self._buffer.partition(b"\r\n\r\n")
        if not found or len(body) < _content_length(head):
            return
        self._buffer = b""
        if head[9:10] == b"2":
            self.good += 1
        else:
            self.bad += 1
        self.latencies.append((time.perf_counter() - self._sent) * 1_000)
        self._send()

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.over.done():
            self.over.set_result(None)


def _content_length(head: bytes) -> int:
    lower = head.lower()
    at = lower.find(b"content-length:")
    return int(lower[at + 15 :].split(b"\r\n", 1)[0]) if at >= 0 else 0


def load(port: int, clients: int, seconds: float, next_request: Callable[[], bytes]) -> Load:
    """Send requests to a loopback port for *seconds* from *clients* connections."""
    return uvloop.run(_load(port, clients, seconds, next_request))


async def _load(port: int, clients: int, seconds: float, next_request: Callable[[], bytes]) -> Load:
    loop = asyncio.get_running_loop()
    start = time.perf_counter()
    connections = [
        (
            await loop.create_connection(
                lambda: _Client(next_request, start + seconds), "127.0.0.1", port
            )
        )[1]
        for _ in range(clients)
    ]
    await asyncio.gather(*(connection.over for connection in connections))
    took = time.perf_counter() - start
    return Load(
        sum(connection.good for connection in connections),
        sum(connection.bad for connection in connections),
        took,
        sorted(one for connection in connections for one in connection.latencies),
    )


def request(method: str, path: str, key: str = "", body: bytes = b"") -> bytes:
    """The bytes of one keep-alive request."""
    lines = [f"{method} {path} HTTP/1.1", "Host: 127.0.0.1"]
    if key:
        lines.append(f"Authorization: Bearer {key}")
    if body or method == "POST":
        lines += ["Content-Type: application/json", f"Content-Length: {len(body)}"]
    return "\r\n".join([*lines, "", ""]).encode() + body
