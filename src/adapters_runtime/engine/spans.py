"""
The spans of a distributed trace for committed changes of executions. TR-3, TR-4, decision 208.

A change shows which attempts have ended: those that were open before the change, and those that
began and ended within it. The instants of a span are those of the records, and its id is derived
from its subject. So nothing is kept from one unit to the next, and the process that commits the end
of a span makes it.

    HTTP request                      by the server, see `wfserver.serving.traces`
      workflow refunds                from acceptance to the end
        accept                        the commit that made it durable
        claim                         until a worker took it
        resume                        the claim after a decision or an interruption
        step load                     each attempt, with a link to the one before
        step each                     a container holds the steps inside of it
          step pay                    an attempt; for approvals and delays, the wait
        step settle
          workflow settlement         the execution that a step started
        POST                          an attempt at the callback

Attributes are ids, names, statuses and counts. An error is the recorded error, masked and cut.
SC-4.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from attrs import field, frozen

from adapters_runtime.engine.journal import (
    STEP_KINDS,
    UNKNOWN_KIND,
    ExecutionChange,
    short_error,
)
from wfcore.model.event import Event, EventKind
from wfcore.model.execution import Execution, StepResult, StepStatus
from wfcore.model.trace import Trace, span_about, span_of, span_of_attempt
from wfcore.model.workflow import ApprovalStep, Definition
from wfcore.rules.execution.budget import total
from wfcore.rules.execution.machine import EXECUTION
from wfcore.rules.execution.scope import name_of, prefix_of
from wfcore.time import EpochMs

MOST_OF_A_NAME = 200
"""The most characters of a name in a span."""

Value = str | int | float | bool | tuple[str, ...]

INTERNAL, SERVER, CLIENT = "INTERNAL", "SERVER", "CLIENT"
"""The kinds of spans, by OpenTelemetry's names."""


@frozen
class Span:
    """
    A span that has ended. Instants are nanoseconds since 1970.

    `parent`: the id of a span of the same trace, or None for the first span. `error`: why the
    operation failed, or None. `links`: further spans, each as a `traceparent`.
    """

    trace: Trace
    id: str
    parent: str | None
    name: str
    began_ns: int
    ended_ns: int
    attributes: Mapping[str, Value] = field(factory=dict)
    kind: str = INTERNAL
    error: str | None = None
    links: tuple[str, ...] = ()


def spans_of(change: ExecutionChange) -> Iterator[Span]:
    """The spans that a committed change ended."""
    run = change.run
    if run.trace is None or not change.events:
        return
    for event in change.events:
        if event.kind is EventKind.EXECUTION_PENDING:
            yield _accepted(run, run.trace, event, change.seconds)
        elif event.kind is EventKind.EXECUTION_RUNNING:
            yield _claimed(change, run.trace, event)
    for key, result in _ended(change):
        yield _attempt(change, run.trace, key, result)
    if change.events[-1].kind in _ENDS:
        yield _whole(run, run.trace, max(change.events[-1].at, run.accepted_at))


_ENDS = frozenset(EventKind(f"execution.{one.lower()}") for one in EXECUTION.final)


def _ended(change: ExecutionChange) -> Iterator[tuple[str, StepResult]]:
    """
    The attempts that the change ended, each as (key, last result). One commit holds no second
    attempt of a step, since a retry waits.
    """
    before = change.before.step_results if change.before is not None else {}
    begun = {str(one.data["step"]) for one in change.events if one.kind in _BEGINNINGS}
    for key, was in before.items():
        now = _now(change.run, key)
        goes_on = now is None or now is was or _is_open(change.definition, key, now)
        if now is None or goes_on or not _is_open(change.definition, key, was):
            continue
        if now.attempts == was.attempts:  # otherwise the attempt was postponed, and never began
            yield key, now
    for key in sorted(begun):
        now, earlier = _now(change.run, key), before.get(key)
        new = now is not None and (earlier is None or now.attempts > earlier.attempts)
        if now is not None and new and not _is_open(change.definition, key, now):
            yield key, now


_BEGINNINGS = (EventKind.STEP_STARTED, EventKind.STEP_FAILED)
"""A step whose condition or items cannot be evaluated fails without having started."""


def _now(run: Execution, key: str) -> StepResult | None:
    """The result of the step, or of its last round that was put aside."""
    found = run.step_results.get(key)
    if found is None and (aside := run.rounds_of(key)):
        return aside[-1]
    return found


def _is_open(definition: Definition | None, key: str, result: StepResult) -> bool:
    """
    Whether the attempt of *result* has not ended. An attempt that waits for a decision about the
    budget has ended; its next attempt has not begun.
    """
    if result.status is StepStatus.AWAITING_APPROVAL:
        return definition is None or isinstance(_step(definition, key), ApprovalStep)
    return result.status is StepStatus.RUNNING and result.retry_at is None


def _step(definition: Definition | None, key: str) -> Any:
    try:
        return definition and definition.step(name_of(key))
    except KeyError:
        return None


def _accepted(run: Execution, trace: Trace, event: Event, seconds: float) -> Span:
    began = _ns(event.at)
    id, ended = span_about(run.id, "accept"), began + int(seconds * 1e9)
    return Span(trace, id, span_of(run.id), "accept", began, ended, _about(run))


def _claimed(change: ExecutionChange, trace: Trace, event: Event) -> Span:
    """The span of a claim. The first claim, event 2 of an execution, begins at its acceptance."""
    run, before = change.run, change.before
    began = run.accepted_at if event.number == _FIRST_CLAIM else event.at
    claimed = before is None or before.worker is not None
    id, name = span_about(run.id, f"claim/{event.number}"), "claim" if claimed else "resume"
    about = {**_about(run), **_worker(before)}
    return Span(trace, id, span_of(run.id), name, _ns(began), _ns(max(event.at, began)), about)


def _worker(before: Execution | None) -> Mapping[str, Value]:
    """The attribute for the worker that held the execution before the unit."""
    if before is None or before.worker is None:
        return {}
    return {"wfcore.worker": before.worker}


_FIRST_CLAIM = 2


def _attempt(change: ExecutionChange, trace: Trace, key: str, result: StepResult) -> Span:
    run, step, attempt = change.run, _step(change.definition, key), result.attempts
    again, now = result.retry_at is not None, change.events[-1].at
    error = result.error or "" if again or result.status in _BAD else None
    began = result.started_at if result.attempt_at is None else result.attempt_at
    ended = max(result.completed_at if result.completed_at is not None else now, began)
    about: dict[str, Value] = {
        **_about(run),
        **_worker(change.before),
        "wfcore.step.name": key[:MOST_OF_A_NAME],
        "wfcore.step.kind": STEP_KINDS.get(type(step), UNKNOWN_KIND),
        "wfcore.step.attempt": attempt,
        "wfcore.step.status": "RETRYING" if again else result.status.value,
    }
    if result.approval_id is not None:
        about["wfcore.approval.id"] = result.approval_id
    if error is not None:
        about["error.type"] = result.reason.value if result.reason else result.status.value
    before = trace.traceparent(span_of_attempt(run.id, key, attempt - 1))
    return Span(
        trace,
        span_of_attempt(run.id, key, attempt),
        _parent(run, change.definition, key),
        f"step {name_of(key)}"[:MOST_OF_A_NAME],
        _ns(began),
        _ns(ended),
        about,
        error=None if error is None else short_error(run, error),
        links=(before,) if result.tries > 1 else (),
    )


_BAD = (StepStatus.FAILED, StepStatus.REJECTED, StepStatus.INTERRUPTED)


def _parent(run: Execution, definition: Definition | None, key: str) -> str:
    """The id of the span of the container around a step, or of the execution."""
    prefix = prefix_of(key)
    inside = _container(definition, name_of(key))
    around = prefix + inside if inside is not None else prefix.rpartition(".")[0].rpartition(".")[0]
    holder = _now(run, around)
    return span_of(run.id) if holder is None else span_of_attempt(run.id, around, holder.attempts)


def _container(definition: Definition | None, name: str) -> str | None:
    """The container around a step within the same frame. A loop contains frames, not steps."""
    frames = definition.frames.values() if definition is not None else ()
    return next((one.inside for frame in frames for one in frame if one.name == name), None)


def _whole(run: Execution, trace: Trace, ended: EpochMs) -> Span:
    spent, reason = total(run.every_result), run.status_reason
    about: dict[str, Value] = {
        **_about(run),
        "wfcore.execution.status": run.status.value,
        "wfcore.execution.trigger": run.trigger_source.value,
        "wfcore.workflow.revision": run.revision,
    }
    if spent.input_tokens or spent.output_tokens:
        about["gen_ai.usage.input_tokens"] = spent.input_tokens
        about["gen_ai.usage.output_tokens"] = spent.output_tokens
    if reason is not None:
        about["wfcore.execution.reason"] = reason.code.value
        about["error.type"] = reason.code.value
    return Span(
        trace,
        span_of(run.id),
        trace.parent,
        f"workflow {run.workflow_name}"[:MOST_OF_A_NAME],
        _ns(run.accepted_at),
        _ns(ended),
        about,
        error=None if run.error is None else short_error(run, run.error),
        links=(trace.cause,) if trace.cause else (),
    )


def _about(run: Execution) -> Mapping[str, Value]:
    return {
        "wfcore.execution.id": run.id,
        "wfcore.workflow.id": run.workflow_id,
        "wfcore.workflow.name": run.workflow_name[:MOST_OF_A_NAME],
    }


def _ns(at: EpochMs) -> int:
    return at * 1_000_000
