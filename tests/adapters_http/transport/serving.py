"""A real uvicorn on a real uvloop in a thread, and raw sockets to treat it badly."""

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn
from attrs import define

from adapters_http.transport.connections import DEFAULT_LIMITS, ConnectionLimits
from adapters_http.transport.uvicorn_protocol import Limits, protocol_with, server_config

PATIENCE_S = 60.0
QUICK = Limits(head_s=0.3, body_s=0.3, linger_s=0.3, stall_s=0.5)


@define
class Running:
    """A served application: where it listens, and the server itself."""

    port: int
    server: uvicorn.Server

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE_S)

    def ask(self, request: bytes) -> bytes:
        """Everything that comes back until the server closes."""
        with self.connect() as client:
            client.sendall(request)
            return everything(client)

    def connections(self) -> int:
        return len(self.server.server_state.connections)


@contextmanager
def serving(
    app, limits: Limits = QUICK, room: ConnectionLimits = DEFAULT_LIMITS, **over
) -> Iterator[Running]:
    """Serve *app* on a free port until the block ends."""
    over = {"http": protocol_with(room, limits), "log_config": None, **over}
    config = server_config(app, host="127.0.0.1", port=0, **over)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        until(lambda: server.started or not thread.is_alive())
        yield Running(server.servers[0].sockets[0].getsockname()[1], server)
    finally:
        server.should_exit = server.force_exit = True
        thread.join(PATIENCE_S)
        assert not thread.is_alive()


def everything(client: socket.socket) -> bytes:
    """What the server sends until it closes; a reset counts as closing."""
    got = b""
    try:
        while chunk := client.recv(65_536):
            got += chunk
    except ConnectionError:
        pass
    return got


def one_answer(client: socket.socket) -> bytes:
    """One answer with a Content-Length, from a connection that stays open."""
    got = b""
    while b"\r\n\r\n" not in got:
        got += receive(client)
    head, _, body = got.partition(b"\r\n\r\n")
    size = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
    while len(body) < size:
        body += receive(client)
    return head + b"\r\n\r\n" + body


def receive(client: socket.socket) -> bytes:
    chunk = client.recv(65_536)
    assert chunk, "the server closed the connection"
    return chunk


def until(condition) -> None:
    """Wait for *condition*, and fail when it does not come."""
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, "this never became true"
        time.sleep(0.005)
