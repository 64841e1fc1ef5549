"""A small HTTP load client: keep-alive connections, one request after another on each."""

import socket
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from select import EPOLLIN, epoll
from time import perf_counter

from attrs import define, frozen


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


@define(eq=False)
class _Client:
    """One connection. `sent`: when its last request left; `buffer`: what has come of the answer."""

    socket: socket.socket
    sent: float = 0.0
    buffer: bytes = b""

    def send(self, request: bytes, now: float) -> None:
        self.sent = now
        self.socket.sendall(request)

    def answered(self) -> bytes | None:
        """The head of the answer once it is complete. Raises `ConnectionError` at its end."""
        data = self.socket.recv(_READ)
        if not data:
            raise ConnectionError("the server closed the connection")
        data = self.buffer + data if self.buffer else data
        head, found, body = data.partition(b"\r\n\r\n")
        if not found or len(body) < _content_length(head):
            self.buffer = data
            return None
        self.buffer = b""
        return head


_READ = 1 << 18


def _content_length(head: bytes) -> int:
    lower = head.lower()
    at = lower.find(b"content-length:")
    return int(lower[at + 15 :].split(b"\r\n", 1)[0]) if at >= 0 else 0


def load(port: int, clients: int, seconds: float, next_request: Callable[[], bytes]) -> Load:
    """
    Send requests to a loopback port for *seconds* from *clients* connections.

    No event loop: what the clients take of the processors is missing to the servers.
    """
    good = bad = 0
    latencies: list[float] = []
    with ExitStack() as stack, epoll() as ready:
        waiting: dict[int, _Client] = {}
        start = perf_counter()
        for _ in range(clients):
            one = stack.enter_context(socket.create_connection(("127.0.0.1", port)))
            one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            ready.register(one, EPOLLIN)
            waiting[one.fileno()] = _Client(one)
        for client in waiting.values():
            client.send(next_request(), perf_counter())
        until = start + seconds
        while waiting:
            for number, _ in ready.poll():
                head = waiting[number].answered()
                if head is None:
                    continue
                now = perf_counter()
                if head[9:10] == b"2":
                    good += 1
                else:
                    bad += 1
                latencies.append((now - waiting[number].sent) * 1_000)
                if now < until:
                    waiting[number].send(next_request(), now)
                else:
                    del waiting[number]
        took = perf_counter() - start
    return Load(good, bad, took, sorted(latencies))


def request(method: str, path: str, key: str = "", body: bytes = b"") -> bytes:
    """The bytes of one keep-alive request."""
    lines = [f"{method} {path} HTTP/1.1", "Host: 127.0.0.1"]
    if key:
        lines.append(f"Authorization: Bearer {key}")
    if body or method == "POST":
        lines += ["Content-Type: application/json", f"Content-Length: {len(body)}"]
    return "\r\n".join([*lines, "", ""]).encode() + body
