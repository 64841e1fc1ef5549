"""A collector of OpenTelemetry for tests: OTLP over HTTP on a real socket."""

import gzip
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from attrs import field, frozen
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


@frozen
class Seen:
    """A span as it arrived. Ids are hexadecimal digits; `parent` is empty for a root."""

    trace: str
    id: str
    parent: str
    name: str
    kind: int
    began: int
    ended: int
    failed: bool
    error: str
    attributes: Mapping[str, Any] = field(factory=dict)
    links: tuple[str, ...] = ()
    resource: Mapping[str, Any] = field(factory=dict)
    state: str = ""

    @property
    def step(self) -> str:
        return str(self.attributes.get("wfcore.step.name", ""))


class Collector:
    """What has arrived so far is in `spans`, as bytes in `raw`. `hangs`: it answers nobody."""

    def __init__(self) -> None:
        self.spans: list[Seen] = []
        self.raw: list[bytes] = []
        self.requests: list[tuple[str, Mapping[str, str]]] = []
        self.hangs = False
        self.released = threading.Event()
        self._more = threading.Condition()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,))
        self._thread.start()

    @property
    def settings(self) -> Mapping[str, str]:
        """What a server needs to send its spans here, soon."""
        return {
            "WFCORE_TRACES": "1",
            "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{self._server.server_address[1]}",
            "OTEL_BSP_SCHEDULE_DELAY": "20",
        }

    def wait(self, holds: Callable[[Sequence[Seen]], object], within_s: float = 60) -> list[Seen]:
        """Every span, as soon as they are what is waited for."""
        with self._more:
            assert self._more.wait_for(lambda: holds(self.spans), within_s), self.spans
            return list(self.spans)

    def trace(self, id: str, holds: Callable[[Sequence[Seen]], object]) -> list[Seen]:
        """The spans of one trace, as soon as they are what is waited for."""

        def of(spans: Sequence[Seen]) -> list[Seen]:
            return [one for one in spans if one.trace == id]

        return of(self.wait(lambda spans: holds(of(spans))))

    def close(self) -> None:
        self.released.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def take(self, path: str, headers: Mapping[str, str], body: bytes) -> None:
        """One request."""
        if headers.get("Content-Encoding") == "gzip":
            body = gzip.decompress(body)
        found = list(_spans(ExportTraceServiceRequest.FromString(body)))
        with self._more:
            self.requests.append((path, headers))
            self.raw.append(body)
            self.spans += found
            self._more.notify_all()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        collector = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                if collector.hangs:
                    collector.released.wait()
                    return
                collector.take(self.path, dict(self.headers), body)
                self.send_response(200)
                self.send_header("content-type", "application/x-protobuf")
                self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, *_: object) -> None:
                """Silence."""

        return Handler


def _spans(request: Any) -> Iterator[Seen]:
    for group in request.resource_spans:
        resource = _attributes(group.resource.attributes)
        for scope in group.scope_spans:
            for one in scope.spans:
                yield Seen(
                    one.trace_id.hex(),
                    one.span_id.hex(),
                    one.parent_span_id.hex(),
                    one.name,
                    one.kind,
                    one.start_time_unix_nano,
                    one.end_time_unix_nano,
                    one.status.code == one.status.STATUS_CODE_ERROR,
                    one.status.message,
                    _attributes(one.attributes),
                    tuple(f"{link.trace_id.hex()}-{link.span_id.hex()}" for link in one.links),
                    resource,
                    one.trace_state,
                )


def _attributes(given: Any) -> Mapping[str, Any]:
    found = {}
    for one in given:
        kind = one.value.WhichOneof("value")
        value = getattr(one.value, kind)
        found[one.key] = (
            [each.string_value for each in value.values] if kind == "array_value" else value
        )
    return found


@contextmanager
def a_collector() -> Iterator[Collector]:
    made = Collector()
    try:
        yield made
    finally:
        made.close()
