"""
Spans to a collector: OpenTelemetry's SDK, over OTLP and HTTP. The extra `otel`; decision 208.

Loaded only if `WFCORE_TRACES` is set. The SDK reads endpoint, headers, timeouts, queue, sampler and
resource from the variables `OTEL_…`. A thread of the SDK sends spans from a bounded queue; spans
that do not fit are dropped.
"""

import asyncio
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from threading import Thread

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import SERVICE_NAME, SERVICE_VERSION, Resource
from opentelemetry.sdk.trace import ReadableSpan, SpanLimits, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.trace.sampling import Decision
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import (
    Link,
    NonRecordingSpan,
    SpanContext,
    SpanKind,
    Status,
    StatusCode,
    TraceFlags,
    set_span_in_context,
)
from opentelemetry.trace.span import TraceState

import wfcore
from adapters_runtime.engine.spans import Span, Value
from wfcore.model.trace import Trace, trace_from

FLUSH_S = 2.0
"""The longest time that a stop waits for a collector."""
_SCOPE = InstrumentationScope("wfcore", wfcore.__version__)


class OtlpSpans:
    """`Spans` for the collector that the environment names."""

    def __init__(self) -> None:
        named = {SERVICE_NAME: "wfcore"} if not _names_service(os.environ) else {}
        resource = Resource.create({SERVICE_VERSION: wfcore.__version__, **named})
        provider = TracerProvider(resource=resource, shutdown_on_exit=False)
        self._resource, self._sampler = provider.resource, provider.sampler
        self._longest = SpanLimits().max_span_attribute_length
        self._exporter = OTLPSpanExporter()
        self._queue = BatchSpanProcessor(self._exporter)

    def put(self, span: Span) -> None:
        """Queue *span*; if the queue is full, the span is lost."""
        self._queue.on_end(self._made(span))

    def sampled(self, trace_id: str, sent: Trace | None) -> bool:
        """The decision of the sampler in `OTEL_TRACES_SAMPLER`."""
        above = None
        if sent is not None and sent.parent is not None:
            above = set_span_in_context(NonRecordingSpan(_context(sent, sent.parent, remote=True)))
        result = self._sampler.should_sample(above, int(trace_id, 16), "wfcore", SpanKind.SERVER)
        return result.decision is Decision.RECORD_AND_SAMPLE

    def close(self) -> None:
        """Send all queued spans, however long that takes; take no more spans."""
        self._queue.shutdown()  # type: ignore[no-untyped-call]

    def give_up(self) -> None:
        """Stop sending; queued spans are lost."""
        self._exporter.shutdown()  # type: ignore[no-untyped-call]

    def _made(self, span: Span) -> ReadableSpan:
        failed = span.error is not None
        return ReadableSpan(
            span.name,
            _context(span.trace, span.id),
            None if span.parent is None else _context(span.trace, span.parent),
            self._resource,
            {name: self._cut(value) for name, value in span.attributes.items()},
            links=[
                Link(_context(one, one.parent))
                for one in map(trace_from, span.links)
                if one is not None and one.parent is not None
            ],
            kind=SpanKind[span.kind],
            status=Status(StatusCode.ERROR, span.error or None) if failed else Status(),
            start_time=span.began_ns,
            end_time=span.ended_ns,
            instrumentation_scope=_SCOPE,
        )

    def _cut(self, value: Value) -> Value:
        return value[: self._longest] if isinstance(value, str) else value


def _names_service(environment: Mapping[str, str]) -> bool:
    attributes = environment.get("OTEL_RESOURCE_ATTRIBUTES", "")
    return bool(environment.get("OTEL_SERVICE_NAME")) or "service.name=" in attributes


def _context(trace: Trace, span: str, remote: bool = False) -> SpanContext:
    flags = TraceFlags(TraceFlags.SAMPLED if trace.sampled else TraceFlags.DEFAULT)
    state = TraceState.from_header([trace.state]) if trace.state else None
    return SpanContext(int(trace.id, 16), int(span, 16), remote, flags, state)


@asynccontextmanager
async def otlp_spans() -> AsyncIterator[OtlpSpans]:
    """The spans of this process; on leaving, queued spans are sent within `FLUSH_S`."""
    spans = OtlpSpans()
    try:
        yield spans
    finally:
        # A daemon thread, so that a collector that hangs cannot keep the process alive
        flushing = Thread(target=spans.close, name="traces", daemon=True)
        flushing.start()
        await asyncio.to_thread(flushing.join, FLUSH_S)
        if flushing.is_alive():
            spans.give_up()
