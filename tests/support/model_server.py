"""
A provider of models for tests: a real socket, both wire protocols, and every way to fail.

What it does with the next request is a turn, queued by the test; without one it says "hello".
"""

import json
import socket
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

from attrs import define, field, frozen

KEY = "sk-test-5d1f0c7e9a3b4826"
TEXT = "hello"


@frozen
class Asked:
    """One request as it came. `body` is its JSON, or None."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: Any

    @property
    def prompt(self) -> str:
        return str(self.body["messages"][-1]["content"])


class Line:
    """One connection: a request read, and what the turn sends back."""

    def __init__(self, peer: socket.socket) -> None:
        self.peer = peer
        self.asked = self._read()

    def send(
        self,
        status: int = 200,
        body: bytes = b"",
        headers: Mapping[str, str] | None = None,
        length: int | None = None,
    ) -> None:
        """A whole answer; with *length* a Content-Length that may be a lie."""
        fields = {"Content-Type": "application/json", **(headers or {})}
        fields["Content-Length"] = str(len(body) if length is None else length)
        head = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
        self.peer.sendall(f"HTTP/1.1 {status} X\r\n{head}\r\n".encode() + body)

    def wait_for_close(self) -> None:
        """Return when the other side is gone."""
        with suppress(OSError):
            while self.peer.recv(4_096):
                pass

    def _read(self) -> Asked:
        data = b""
        while b"\r\n\r\n" not in data:
            data += self._received()
        head, _, body = data.partition(b"\r\n\r\n")
        first, *lines = head.decode("ascii").split("\r\n")
        headers = {
            name.lower(): value.strip()
            for name, _, value in (line.partition(":") for line in lines)
        }
        while len(body) < int(headers.get("content-length", 0)):
            body += self._received()
        method, path, _ = first.split(" ")
        return Asked(method, path, headers, json.loads(body) if body else None)

    def _received(self) -> bytes:
        data = self.peer.recv(65_536)
        if not data:
            raise ConnectionError
        return data


Turn = Callable[[Line], None]


def document(path: str, text: str, used: tuple[Any, Any] = (12, 3), finish: str = "") -> Any:
    """A response of the protocol that *path* belongs to."""
    if path.endswith("/messages"):
        return {
            "type": "message",
            "content": [{"type": "text", "text": text}],
            "stop_reason": finish or "end_turn",
            "usage": {"input_tokens": used[0], "output_tokens": used[1]},
        }
    return {
        "object": "chat.completion",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": text},
                "finish_reason": finish or "stop",
            }
        ],
        "usage": {"prompt_tokens": used[0], "completion_tokens": used[1]},
    }


def says(text: Any, used: tuple[Any, Any] = (12, 3), finish: str = "") -> Turn:
    """An answer; what is no text is said as JSON."""
    said = text if isinstance(text, str) else json.dumps(text)

    def turn(line: Line) -> None:
        line.send(body=json.dumps(document(line.asked.path, said, used, finish)).encode())

    return turn


def refuses(status: int, message: str = "no", headers: Mapping[str, str] | None = None) -> Turn:
    """An error in the shape that providers use."""
    body = json.dumps({"error": {"message": message, "type": "error"}}).encode()
    return lambda line: line.send(status, body, headers)


def sends(body: bytes, kind: str = "application/json", **headers: str) -> Turn:
    """A 200 with any body."""
    return lambda line: line.send(200, body, {"Content-Type": kind, **headers})


def hangs(line: Line) -> None:
    """Nothing, until the other side gives up."""
    line.wait_for_close()


def cuts(line: Line) -> None:
    """Half an answer, and gone."""
    body = json.dumps(document(line.asked.path, TEXT)).encode()
    line.send(body=body[: len(body) // 2], length=len(body))


def floods(size: int) -> Turn:
    """An answer of *size* bytes, as far as the other side takes it."""

    def turn(line: Line) -> None:
        line.send(body=b'{"choices": "', length=size)
        left, chunk = size, b"x" * 65_536
        with suppress(OSError):
            while left > 0:
                line.peer.sendall(chunk)
                left -= len(chunk)
        line.flooded = size - left  # type: ignore[attr-defined]

    return turn


@define
class ModelServer:
    """The provider: where it is, what it was asked, who is connected."""

    url: str
    turns: deque[Turn] = field(factory=deque)
    asked: list[Asked] = field(factory=list)
    lines: list[Line] = field(factory=list)
    connected: int = 0
    _lock: threading.Lock = field(factory=threading.Lock)

    @property
    def openai(self) -> str:
        return f"{self.url}/v1"

    def will(self, *turns: Turn) -> None:
        """What it does with the next requests."""
        self.turns.extend(turns)

    def serve_one(self, peer: socket.socket) -> None:
        """Read a request, take the next turn, close."""
        with self._lock:
            self.connected += 1
        try:
            with peer, suppress(OSError, ConnectionError):
                line = Line(peer)
                with self._lock:
                    self.asked.append(line.asked)
                    self.lines.append(line)
                    turn = self.turns.popleft() if self.turns else says(TEXT)
                turn(line)
        finally:
            with self._lock:
                self.connected -= 1


@contextmanager
def a_model_server(
    wrap: Callable[[socket.socket], socket.socket] | None = None,
) -> Iterator[ModelServer]:
    """A provider on a free port of 127.0.0.1 as long as the block lasts; *wrap* may add TLS."""
    listener = socket.create_server(("127.0.0.1", 0))
    scheme = "https" if wrap else "http"
    server = ModelServer(f"{scheme}://127.0.0.1:{listener.getsockname()[1]}")
    peers: list[socket.socket] = []

    def accept() -> None:
        while True:
            try:
                peer, _ = listener.accept()
            except OSError:
                return
            peers.append(peer)
            threading.Thread(target=serve, args=(peer,), daemon=True).start()

    def serve(peer: socket.socket) -> None:
        with suppress(OSError):
            server.serve_one(wrap(peer) if wrap else peer)

    thread = threading.Thread(target=accept, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join()
        for peer in peers:
            with suppress(OSError):
                peer.shutdown(socket.SHUT_RDWR)
            peer.close()
