"""
Requests as parts of distributed traces: what they bring along, and the spans that are made of them.

A request has a span if it may start an execution, or if it is a part of a trace already; probes,
lists and pages have none. Where nobody makes spans, the context of a request that starts an
execution is kept all the same, and its steps get it unchanged. TR-1, TR-2, decision 208.
"""

from collections.abc import Iterable
from typing import Protocol

from starlette.types import Scope

from wfcore.model.trace import Trace, trace_from

_PARENT, _STATE = b"traceparent", b"tracestate"


class RequestTracing(Protocol):
    """Makes spans of requests. Called in the event loop; must neither wait nor raise."""

    def began(self, sent: Trace | None) -> Trace:
        """The trace for what a new request causes: below its span, which is in the trace *sent*."""

    def answered(
        self, trace: Trace, sent: Trace | None, method: str, route: str, status: int, seconds: float
    ) -> None:
        """The request of *trace* is over. *route*: the template of its path."""


class RequestTrace:
    """What one request brought along, and what it passes on: `trace`."""

    __slots__ = ("_sent", "_tracing", "trace")

    def __init__(self, tracing: RequestTracing | None, scope: Scope, starts: bool) -> None:
        self._tracing = tracing
        self.trace = self._sent = sent_in(scope["headers"])
        if tracing is not None and (starts or self._sent is not None):
            self.trace = tracing.began(self._sent)

    def answered(self, method: str, route: str, status: int, seconds: float) -> None:
        """The request is over."""
        if self._tracing is not None and self.trace is not None:
            self._tracing.answered(self.trace, self._sent, method, route, status, seconds)


def sent_in(headers: Iterable[tuple[bytes, bytes]]) -> Trace | None:
    """The context in a request's headers; None if there is none, or more than one `traceparent`."""
    found: dict[bytes, list[str]] = {}
    for name, value in headers:
        if name in (_PARENT, _STATE):
            found.setdefault(name, []).append(value.decode("latin-1").strip())
    parents = found.get(_PARENT, [])
    return trace_from(parents[0], ",".join(found.get(_STATE, []))) if len(parents) == 1 else None
