"""
Requests as parts of distributed traces: the trace context in their headers, and their spans.

A request has a span if it may start an execution, or if it belongs to a trace; probes, lists and
pages have no span. Without spans, the steps of an execution get the context of the request that
started it, unchanged. TR-1, TR-2, decision 208.
"""

from collections.abc import Iterable
from typing import Protocol

from starlette.types import Scope

from wfcore.model.trace import Trace, trace_from

_PARENT, _STATE = b"traceparent", b"tracestate"


class RequestTracing(Protocol):
    """Makes spans of requests. Called in the event loop; must neither wait nor raise."""

    def began(self, sent: Trace | None) -> Trace:
        """
        Begin the span of a new request, in the trace *sent*. Returns the trace, below that span,
        for all work that the request causes.
        """

    def answered(
        self, trace: Trace, sent: Trace | None, method: str, route: str, status: int, seconds: float
    ) -> None:
        """End the span of the request of *trace*. *route*: the template of its path."""


class RequestTrace:
    """The trace context of one request, and `trace`, the context that the request passes on."""

    __slots__ = ("_sent", "_tracing", "trace")

    def __init__(self, tracing: RequestTracing | None, scope: Scope, starts: bool) -> None:
        self._tracing = tracing
        self.trace = self._sent = context_in(scope["headers"])
        if tracing is not None and (starts or self._sent is not None):
            self.trace = tracing.began(self._sent)

    def answered(self, method: str, route: str, status: int, seconds: float) -> None:
        """End the span of the request."""
        if self._tracing is not None and self.trace is not None:
            self._tracing.answered(self.trace, self._sent, method, route, status, seconds)


def context_in(headers: Iterable[tuple[bytes, bytes]]) -> Trace | None:
    """The trace context in *headers*; None unless there is exactly one `traceparent`."""
    found: dict[bytes, list[str]] = {}
    for name, value in headers:
        if name in (_PARENT, _STATE):
            found.setdefault(name, []).append(value.decode("latin-1").strip())
    parents = found.get(_PARENT, [])
    return trace_from(parents[0], ",".join(found.get(_STATE, []))) if len(parents) == 1 else None
