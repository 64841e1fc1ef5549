"""
The spans that one server makes: of its requests, of its commits, and of its own calls.

`adapters_runtime.engine.spans` makes the spans of commits. A request, a call of a model and an
attempt at a callback are timed here, by this machine's clock. This module does not know
OpenTelemetry: `wfserver.serving.otlp` sends spans and samples traces. Decision 208.

No attribute holds data of callers, models or steps: neither paths and queries, which may contain
tokens, nor prompts, answers, headers or bodies. SC-4.
"""

import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Protocol
from urllib.parse import urlsplit

from attrs import evolve, frozen

from adapters_runtime.engine.journal import ExecutionChange
from adapters_runtime.engine.spans import CLIENT, MOST_OF_A_NAME, SERVER, Span, Value, spans_of
from wfcore.model.trace import Trace, span_of, trace_from, trace_id_for
from wfcore.ports.callbacks import CallbackAnswer, CallbackClient
from wfcore.ports.models import Finish, ModelReply, ModelRequest, Models


class Spans(Protocol):
    """A receiver of spans, which neither waits nor raises; a span without room is lost."""

    def put(self, span: Span) -> None:
        """Receive a span that has ended."""

    def sampled(self, trace_id: str, sent: Trace | None) -> bool:
        """Whether a trace is recorded here. *sent*: the trace in a caller's header, if any."""


class Traces:
    """The maker of a server's spans, which go to *spans*."""

    def __init__(self, spans: Spans) -> None:
        self._spans = spans

    def begin(self, execution_id: str) -> Trace | None:
        """A `Tracing`: the trace of an execution that no request started. TR-2."""
        id = trace_id_for(execution_id)
        return Trace(id, sampled=True, recorded=True) if self._spans.sampled(id, None) else None

    def changed(self, change: ExecutionChange) -> None:
        """A `ChangeObserver`."""
        for span in spans_of(change):
            self._spans.put(span)

    def began(self, sent: Trace | None) -> Trace:
        """See `RequestTracing.began`. A trace that is not recorded is passed on unchanged."""
        id = sent.id if sent is not None else os.urandom(16).hex()
        if self._spans.sampled(id, sent):
            state = sent.state if sent is not None else ""
            return Trace(id, os.urandom(8).hex(), sampled=True, state=state, recorded=True)
        return sent or Trace(id)

    def answered(
        self, trace: Trace, sent: Trace | None, method: str, route: str, status: int, seconds: float
    ) -> None:
        """See `RequestTracing.answered`."""
        if not trace.recorded or trace.parent is None:
            return
        ended = time.time_ns()
        about: dict[str, Value] = {
            "http.request.method": method,
            "http.route": route,
            "http.response.status_code": status,
        }
        if status >= _DEFECT:
            about["error.type"] = str(status)
        self._spans.put(
            Span(
                trace,
                trace.parent,
                sent.parent if sent is not None else None,
                f"{method} {route}",
                ended - int(seconds * 1e9),
                ended,
                about,
                SERVER,
                "" if status >= _DEFECT else None,
            )
        )

    @contextmanager
    def calling(
        self, name: str, traceparent: str, parent: str, about: Mapping[str, Value]
    ) -> Iterator["OutgoingCall"]:
        """
        Records an outgoing call as a span: its ids are in *traceparent*, its parent is *parent*. An
        exception marks the span as failed.
        """
        call, began, trace = OutgoingCall(dict(about)), time.time_ns(), trace_from(traceparent)
        try:
            yield call
        except BaseException as error:
            call.fails(type(error).__name__)
            raise
        finally:
            if trace is not None and trace.parent is not None:
                ended = time.time_ns()
                span = Span(
                    trace, trace.parent, parent, name[:MOST_OF_A_NAME], began, ended, call.about
                )
                self._spans.put(evolve(span, kind=CLIENT, error=call.error))


_DEFECT = 500


class OutgoingCall:
    """The attributes and the error of a call by this server, while it runs."""

    def __init__(self, about: dict[str, Value]) -> None:
        self.about = about
        self.error: str | None = None

    def fails(self, what: str) -> None:
        """Mark the call as failed with an error of the type *what*."""
        self.about["error.type"], self.error = what, ""


_FINISHES = {Finish.DONE: "stop", Finish.LENGTH: "length", Finish.DECLINED: "content_filter"}


@frozen
class TracedModels:
    """*models*, with a span for each call, by the conventions for generative AI."""

    models: Models
    traces: Traces

    async def ask(self, question: ModelRequest) -> ModelReply:
        """See `Models.ask`."""
        above = trace_from(question.traceparent)
        if above is None or above.parent is None:
            return await self.models.ask(question)
        sent = above.traceparent(os.urandom(8).hex())
        provider, _, model = question.model.partition(":")
        name = f"chat {model}"
        with self.traces.calling(name, sent, above.parent, _asked(question, provider)) as call:
            answer = await self.models.ask(evolve(question, traceparent=sent))
            call.about["gen_ai.usage.input_tokens"] = answer.input_tokens
            call.about["gen_ai.usage.output_tokens"] = answer.output_tokens
            call.about["gen_ai.response.finish_reasons"] = (_FINISHES[answer.finish],)
        return answer


def _asked(question: ModelRequest, provider: str) -> Mapping[str, Value]:
    about: dict[str, Value] = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": provider[:MOST_OF_A_NAME],
        "gen_ai.request.model": question.model.partition(":")[2][:MOST_OF_A_NAME],
        "gen_ai.output.type": "text" if question.schema is None else "json",
    }
    if question.max_tokens is not None:
        about["gen_ai.request.max_tokens"] = question.max_tokens
    if question.temperature is not None:
        about["gen_ai.request.temperature"] = float(question.temperature)
    return about


@frozen
class TracedCallbacks:
    """*client*, with a span for each attempt at the callback of a recorded execution."""

    client: CallbackClient
    traces: Traces

    async def post(self, url: str, headers: Mapping[str, str], body: bytes) -> CallbackAnswer:
        """See `CallbackClient.post`."""
        traceparent = headers.get("traceparent")
        if traceparent is None:
            return await self.client.post(url, headers, body)
        parent = span_of(headers["webhook-id"].removeprefix("msg_"))
        about = {"http.request.method": "POST", "server.address": urlsplit(url).hostname or ""}
        with self.traces.calling("POST", traceparent, parent, about) as call:
            answer = await self.client.post(url, headers, body)
            if answer.status is not None:
                call.about["http.response.status_code"] = answer.status
            if answer.status is None or answer.status >= _REFUSED:
                call.fails(str(answer.status or "unreachable"))
        return answer


_REFUSED = 400
