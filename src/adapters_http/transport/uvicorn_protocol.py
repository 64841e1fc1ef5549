"""
The HTTP/1.1 transport, hardened: slow, incomplete and oversized requests end in time.

uvicorn waits for ever for the rest of a request. This subclass of its httptools protocol adds one
timer per connection. The timer starts when a head or a body is awaited, and stops when the
head or body is complete; single bytes do not extend the time:

- no head, or half a head, within `Limits.head_s`: closed;
- half a body within `Limits.body_s`: 408 (the application's own guard is a second faster);
- a head over `max_head` bytes or `max_fields` fields: 431, without reading further bytes;
- a body that continues after the response to its request: up to `discard_bytes` are discarded, so
  that the client can read the response (a 413, say) and continue; if the connection ends with that
  response, for `linger_s` at most;
- a head that the parser accepts but `connections.problem_of` refuses: 400 or 501;
- a response of which the client takes no byte for `stall_s`: the connection ends.

A request starts only after the client has taken the previous response, so at most one response of
each connection waits in memory. `connections` bounds the number of connections and the bytes that
wait for all clients; uvloop reports exactly (with a write buffer limit of 0) whether the kernel has
taken all bytes.

A refusal is answered as `{"error": ...}` with `Connection: close`.
"""

import asyncio
import logging
import secrets
import socket
import time
from functools import partial
from typing import Any, ClassVar, cast

from attrs import frozen
from uvicorn import Config
from uvicorn.protocols.http.httptools_impl import (
    STATUS_LINE,
    HttpToolsProtocol,
    RequestResponseCycle,
)

from adapters_http.json_text import dump_json
from adapters_http.transport.connections import (
    DEFAULT_LIMITS,
    WHOLE,
    ConnectionLimits,
    Connections,
    EndedBy,
    Headers,
    WholeAnswer,
    head_of,
    problem_of,
)

log = logging.getLogger("wfcore.http")

_TOO_MANY = "Too many connections; retry later"
_RETRY_S = 1
_KERNEL_BYTES = 256 * 1024
"""The unsent bytes that the kernel may hold for one client."""
_CLOSE = (b"connection", b"close")
_HEAD_TOO_LARGE = "Request header fields are too large"


@frozen
class Limits:
    """The limits of one connection. Times in seconds, sizes in bytes."""

    head_s: float = 10.0
    body_s: float = 31.0
    linger_s: float = 5.0
    stall_s: float = 30.0
    max_head: int = 32 * 1024
    max_fields: int = 100
    discard_bytes: int = 5 * 1024 * 1024


class ParserStopped(Exception):
    """An exception that stops the parser from inside a callback."""


class HardenedProtocol(HttpToolsProtocol):
    """uvicorn's protocol with `limits`. A subclass must have a `ledger` of its own."""

    limits: ClassVar[Limits] = Limits()
    ledger: ClassVar[Connections] = Connections(DEFAULT_LIMITS, time.monotonic)
    """The connections of one server."""

    def __init__(self, *args: Any, **named: Any) -> None:
        super().__init__(*args, **named)
        self.access_log = False  # a handler that somebody attaches would print `?api_key=`
        self._timer: asyncio.TimerHandle | None = None
        self._begun = False
        """Whether the first byte of a request has arrived but its last byte has not."""
        self._in_body = False
        self._overhead = 0
        """The bytes since the last part of a body or complete request: head, trailer, framing."""
        self._over = False
        """
        Whether the request is refused and the connection half closed; then further bytes are
        discarded.
        """
        self._discarded = 0
        self._refusal = (400, "Malformed HTTP request")
        self._running: RequestResponseCycle | None = None
        """The request at work; `cycle` is the newest request, which may wait for it."""
        self._next: tuple[RequestResponseCycle, Any] | None = None
        """The request that waits until the client has taken the previous response."""
        self._stall: asyncio.TimerHandle | None = None
        self.address = ""

    # -- connection

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.address = self.client[0] if self.client else ""
        if not self.ledger.enter(self):
            transport.write(self._error(503, _TOO_MANY, (b"retry-after", b"%d" % _RETRY_S)))
            transport.close()
            return
        self._arm(self.limits.head_s)
        transport.set_write_buffer_limits(0)
        self._streamed = cast("asyncio.Transport", EndedBy(transport, self._end))
        connection = transport.get_extra_info("socket")
        if connection is not None and connection.family in (socket.AF_INET, socket.AF_INET6):
            silent_ms = int(2 * self.limits.stall_s * 1_000)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, silent_ms)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, _KERNEL_BYTES)

    def connection_lost(self, exc: Exception | None) -> None:
        self._disarm()
        self._end_stall()
        self._next = None
        self.ledger.leave(self)
        super().connection_lost(exc)

    # -- called by the ledger

    def unsent(self) -> int:
        """The number of bytes that wait for the client."""
        try:
            return self.transport.get_write_buffer_size()
        except RuntimeError:  # uvloop raises this once it is closed
            return 0

    def drop(self) -> None:
        """Close the connection at once, without sending the remaining bytes."""
        self.transport.abort()

    # -- clients that do not read

    def pause_writing(self) -> None:
        super().pause_writing()
        self.ledger.is_slow(self)
        self._end_stall()
        self._stall = self.loop.call_later(self.limits.stall_s, self._check_progress)

    def resume_writing(self) -> None:
        super().resume_writing()
        self._end_stall()
        self.ledger.took_all(self)
        if self._next is not None:
            cycle, app = self._next
            self._next = None
            self._start_asgi_task(cycle, app)

    def _check_progress(self) -> None:
        left = self.limits.stall_s - self.ledger.took_nothing_for(self)
        if left <= 0:
            self.drop()
        else:
            self._stall = self.loop.call_later(left, self._check_progress)

    def _end_stall(self) -> None:
        if self._stall is not None:
            self._stall.cancel()
            self._stall = None

    def data_received(self, data: bytes) -> None:
        if self._over:
            self._discard(len(data))
            return
        self._overhead += len(data)
        super().data_received(data)
        if self._over or self.transport.is_closing():
            return
        if self._overhead > self.limits.max_head:
            self._refuse(431, _HEAD_TOO_LARGE)
        elif self._in_body and self.cycle.response_complete:
            self._discard(len(data))
        if self._timer is None and not self._over and (self._begun or not self._answering):
            self._arm(self.limits.body_s if self._in_body else self.limits.head_s)

    # -- one request

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._begun = True

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._in_body:
            self._stop(400, "Trailer fields are not accepted")
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        if len(self.headers) > self.limits.max_fields:
            self._stop(431, f"More than {self.limits.max_fields} request header fields")
        if self._overhead > self.limits.max_head:  # which may include bytes behind the head
            size = len(self.url) + sum([len(name) + len(value) + 4 for name, value in self.headers])
            if size > self.limits.max_head:
                self._stop(431, _HEAD_TOO_LARGE)
        problem = problem_of(self.parser.get_http_version(), self.url, self.headers)
        if problem is not None:
            self._stop(*problem)
        super().on_headers_complete()
        self.cycle.transport = self._streamed
        whole = WholeAnswer(self.cycle.send, partial(self._answer, self.cycle))
        self.scope["extensions"] = cast("Any", {WHOLE: whole})
        self._in_body = True
        self._discarded = 0
        self._disarm()

    def on_body(self, body: bytes) -> None:
        self._overhead = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._begun = self._in_body = False
        self._overhead = 0
        self._disarm()
        super().on_message_complete()

    def _discard(self, size: int) -> None:
        self._discarded += size
        if self._discarded > self.limits.discard_bytes:
            self.transport.close()

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        self._running = cycle
        self.ledger.busy(self)
        if self.flow.write_paused:
            self._next = cycle, app
            self.flow.pause_reading()
        else:
            super()._start_asgi_task(cycle, app)

    def _answer(
        self, cycle: RequestResponseCycle, status: int, headers: Headers, body: bytes
    ) -> None:
        """Send a whole response in one write, so that the client wakes up once."""
        if cycle.disconnected or cycle.response_complete:
            return
        if _CLOSE in headers:
            cycle.keep_alive = False
        elif not cycle.keep_alive:
            headers.append(_CLOSE)
        head = head_of(STATUS_LINE[status], (*cycle.default_headers, *headers))
        cycle.response_started = cycle.response_complete = True
        cycle.waiting_for_100_continue = False
        self.transport.write(head if cycle.scope["method"] == "HEAD" else head + body)
        cycle.message_event.set()
        if not cycle.keep_alive:
            self._end()
        cycle.on_response()

    def on_response_complete(self) -> None:
        self.ledger.idle(self)
        super().on_response_complete()

    @property
    def _answering(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    @property
    def _answering_earlier(self) -> bool:
        """Whether an earlier request than the arriving request is at work."""
        if self._running is None or self._running.response_complete:
            return False
        return self._running is not self.cycle or not self._in_body

    # -- time

    def _arm(self, seconds: float) -> None:
        self._timer = self.loop.call_later(seconds, self._out_of_time)

    def _disarm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _out_of_time(self) -> None:
        self._timer = None
        if self._over or not self._begun:
            self.transport.close()
        elif self._answering and not self._in_body:
            self._arm(
                self.limits.head_s
            )  # an incomplete pipelined request waits for the previous response
        else:
            self._refuse(408, "The request was not complete in time")

    # -- refusing

    def _stop(self, status: int, message: str) -> None:
        self._refusal = (status, message)
        raise ParserStopped

    def send_400_response(self, msg: str) -> None:
        """Refuse the request; uvicorn calls this when the parser, or a callback above, stopped."""
        self._refuse(*self._refusal)

    def _refuse(self, status: int, message: str) -> None:
        """
        Answer and close. If an earlier request is at work, its response is the last response; if
        the response to the faulty request has begun, the connection only ends.
        """
        running = self._running
        if running is not None and self._answering_earlier:
            self.pipeline.clear()
            running.keep_alive = False
            self.flow.pause_reading()
            return
        if not self._in_body or not self.cycle.response_started:
            self.transport.write(self._error(status, message))
        self._disconnect()
        self._hang_up()

    def _disconnect(self) -> None:
        """Report to an application that waits for the body that the client left."""
        if self._answering:
            self.cycle.disconnected = True
            self.cycle.message_event.set()

    def _end(self) -> None:
        """Close after the last response, perhaps before the client has sent its whole body."""
        if self._in_body:
            self._hang_up()
        else:
            self.transport.close()

    def _hang_up(self) -> None:
        """
        Close, but read on for a moment: an immediate close would destroy the response in flight.
        """
        self._disarm()
        self._over = True
        if self.transport.can_write_eof():
            self.transport.write_eof()
            self._arm(self.limits.linger_s)
        else:
            self.transport.close()

    def _error(self, status: int, message: str, *more: tuple[bytes, bytes]) -> bytes:
        body = dump_json({"error": message})
        headers = [
            *self.server_state.default_headers,
            (b"content-type", b"application/json"),
            (b"content-length", b"%d" % len(body)),
            (b"x-request-id", secrets.token_hex(16).encode()),
            _CLOSE,
            *more,
        ]
        return head_of(STATUS_LINE[status], headers) + body

    def _unsupported_upgrade_warning(self) -> None:
        """Ignore an upgrade (h2c, WebSocket): answer as usual, then close."""
        if self.cycle is not None:
            self.cycle.keep_alive = False


def protocol_with(shared: ConnectionLimits, limits: Limits = Limits()) -> type[HardenedProtocol]:
    """The protocol of one server, whose connections share the limits *shared*."""

    class Protocol(HardenedProtocol):
        ledger = Connections(shared, time.monotonic)

    Protocol.limits = limits
    return Protocol


def server_config(
    app: Any,
    *,
    host: str,
    port: int,
    shared: ConnectionLimits = DEFAULT_LIMITS,
    **over: Any,
) -> Config:
    """
    A uvicorn configuration for *app* with this protocol; *over* is passed to `uvicorn.Config`.
    """
    settings: dict[str, Any] = {
        "http": protocol_with(shared),
        "loop": "uvloop",
        "ws": "none",
        "lifespan": "on",
        "access_log": False,
        "server_header": False,
        "proxy_headers": False,  # uvicorn would believe any request from loopback; see `proxies`
    }
    return Config(app, host=host, port=port, **{**settings, **over})
