"""
The place of an execution in a distributed trace: W3C Trace Context. TR-1, TR-2, TR-3, decision 208.

The ids of spans are derived from their subjects. So a process that makes a span, after a restart or
on another machine, can name the parent without any message.
"""

import re
from hashlib import sha256

from attrs import evolve, frozen

_PARENT = re.compile(r"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?", re.ASCII)
_NO_TRACE, _NO_SPAN = "0" * 32, "0" * 16
_VERSION = "00"
_LONGEST_STATE, _MOST_MEMBERS = 512, 32
_MEMBER = re.compile(
    r"([a-z][_0-9a-z*/-]{0,255}|[a-z0-9][_0-9a-z*/-]{0,240}@[a-z][_0-9a-z*/-]{0,13})"
    r"=[\x20-\x2b\x2d-\x3c\x3e-\x7e]{0,255}[\x21-\x2b\x2d-\x3c\x3e-\x7e]",
    re.ASCII,
)
_SAMPLED = 1


@frozen
class Trace:
    """
    `id`: the trace. `parent`: the span that caused the execution; None if the trace begins with the
    execution. Both ids are hexadecimal. `sampled`: the flag for callees. `state`: the `tracestate`
    of the request. `recorded`: whether spans are made of the execution; decided once, when the
    execution is accepted. `cause`: the span of another trace from which the execution follows, as a
    `traceparent`.
    """

    id: str
    parent: str | None = None
    sampled: bool = False
    state: str = ""
    recorded: bool = False
    cause: str | None = None

    def traceparent(self, span: str) -> str:
        """The header, or environment variable, that makes *span* the parent of a callee's spans."""
        return f"{_VERSION}-{self.id}-{span}-{int(self.sampled):02x}"

    def below(self, span: str) -> "Trace":
        """The trace for executions that *span* starts; the same trace if spans are not recorded."""
        return evolve(self, parent=span, cause=None) if self.recorded else self

    def handed_on(self, span: str) -> str | None:
        """
        The `traceparent` for calls of *span*. If no spans are made: the `traceparent` of the
        caller's span, or None without a caller.
        """
        parent = span if self.recorded else self.parent
        return None if parent is None else self.traceparent(parent)


def trace_from(traceparent: str | None, tracestate: str | None = None) -> Trace | None:
    """
    The trace of a caller's headers; None if *traceparent* is absent or malformed: a malformed
    header is ignored. Of later versions, the known part is read. A malformed *tracestate* alone is
    dropped. TR-1.
    """
    read = _PARENT.fullmatch(traceparent or "")
    if read is None:
        return None
    version, id, parent, flags, more = read.groups()
    if version == "ff" or (version == _VERSION and more) or id == _NO_TRACE or parent == _NO_SPAN:
        return None
    return Trace(id, parent, bool(int(flags, 16) & _SAMPLED), _state_in(tracestate or ""))


def _state_in(sent: str) -> str:
    """
    The members of a `tracestate`; empty for a long `tracestate` and for malformed or repeated
    members.
    """
    if len(sent) > _LONGEST_STATE:
        return ""
    members = [one for part in sent.split(",") if (one := part.strip(" \t"))]
    keys = {read[1] for one in members if (read := _MEMBER.fullmatch(one))}
    return ",".join(members) if len(keys) == len(members) <= _MOST_MEMBERS else ""


def trace_id_for(cause: str) -> str:
    """The id of the trace that begins with this execution."""
    return _digits(f"trace/{cause}", 32)


def span_of(execution_id: str) -> str:
    """The id of an execution's span."""
    return _digits(f"execution/{execution_id}", 16)


def span_of_attempt(execution_id: str, step: str, attempt: int) -> str:
    """The id of the span of one attempt of the step with that key. TR-3."""
    return _digits(f"step/{execution_id}/{step}/{attempt}", 16)


def span_about(execution_id: str, what: str) -> str:
    """The id of the span for another event in an execution's life."""
    return _digits(f"{what}/{execution_id}", 16)


def _digits(text: str, length: int) -> str:
    return sha256(text.encode(errors="surrogatepass")).hexdigest()[:length]
