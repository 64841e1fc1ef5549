"""A server on a real socket that notes what it is sent and answers as it is told."""

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple


class Received(NamedTuple):
    """One request."""

    path: str
    headers: Mapping[str, str]
    body: bytes


class Receiver:
    """
    `answers` are statuses for the next requests, then 204; a status 0 never answers, -1 hangs up.
    """

    def __init__(self) -> None:
        self.received: list[Received] = []
        self.answers: list[int] = []
        self.location = ""
        self.retry_after = ""
        self.release = threading.Event()
        self._more = threading.Condition()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self.port = self._server.server_address[1]
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,))
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/told?for=me"

    def wait_for(self, count: int, within_s: float = 60) -> list[Received]:
        """The first *count* requests, waited for."""
        with self._more:
            assert self._more.wait_for(lambda: len(self.received) >= count, within_s)
            return self.received[:count]

    def close(self) -> None:
        self.release.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                status = receiver.answers.pop(0) if receiver.answers else 204
                with receiver._more:
                    receiver.received.append(Received(self.path, dict(self.headers), body))
                    receiver._more.notify_all()
                if status == 0:
                    receiver.release.wait()
                    return
                if status < 0:
                    self.close_connection = True
                    return
                self.send_response(status)
                if 300 <= status < 400:
                    self.send_header("location", receiver.location)
                if receiver.retry_after:
                    self.send_header("retry-after", receiver.retry_after)
                self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, *_: object) -> None:
                """Silence."""

        return Handler


@contextmanager
def a_receiver() -> Iterator[Receiver]:
    receiver = Receiver()
    try:
        yield receiver
    finally:
        receiver.close()
