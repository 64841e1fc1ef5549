"""
The effect of facts on the results of steps: a part of `rules.execution.fold`.

The table `STEP` decides whether a fact is possible, in one place, `known`. The folds below rely on
the table's guarantees: a step that ends has begun, and a step that begins has not. They check
identity only. EX-3.
"""

import json
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias, cast

from attrs import evolve as evolve_change
from attrs import field, frozen

from wfcore.effects import CancelChildren, Effect, Reload, WakeRunner, WithdrawApprovals
from wfcore.model.event import EventKind
from wfcore.model.execution import (
    Awaits,
    Execution,
    ExecutionStatus,
    ReasonCode,
    StepResult,
    StepStatus,
    Usage,
    evolve,
    left_out,
)
from wfcore.model.json import Json, JsonObject
from wfcore.model.workflow import Definition, lists_of
from wfcore.rules.execution import machine as facts
from wfcore.rules.execution.budget import NOTHING, added
from wfcore.rules.execution.scope import name_of
from wfcore.rules.execution.step_machine import STEP, StepState
from wfcore.time import EpochMs

NewEvent: TypeAlias = tuple[EventKind, JsonObject]
NewEvents: TypeAlias = tuple[NewEvent, ...]
"""Events in their order, before they are numbered."""


def state_of(result: StepResult | None) -> StepState:
    """
    The state of a step with this *result* (None: the step has not begun).

    WAITING_FOR_RETRY: the next attempt is due at `retry_at`, after a failed or postponed one, or
    because the budget was extended. CHILD_FAILED: the next state is undecided.
    """
    if result is None:
        return StepState.NOT_STARTED
    if result.status is not StepStatus.RUNNING:
        return StepState(result.status)
    if result.retry_at is not None:
        return StepState.WAITING_FOR_RETRY
    if result.awaits is Awaits.CHILD and result.error is not None:
        return StepState.CHILD_FAILED
    return _AWAITS[result.awaits]


_AWAITS: Mapping[Awaits | None, StepState] = {
    None: StepState.RUNNING,
    Awaits.STEPS: StepState.WAITING_FOR_STEPS,
    Awaits.TIME: StepState.DELAYED,
    Awaits.CHILD: StepState.WAITING_FOR_CHILD,
    Awaits.MAIL: StepState.WAITING_FOR_MAIL,
}


@frozen
class Change:
    """
    The changes of a fact in an execution, by field, with its events and effects.

    `status_data`: data for the event about the new status, if the status changes.
    """

    changes: Mapping[str, object] = field(factory=dict)
    events: NewEvents = ()
    status_data: JsonObject = field(factory=dict)
    effects: tuple[Effect, ...] = ()

    @property
    def results(self) -> Mapping[str, StepResult]:
        """The new step results."""
        return cast("Mapping[str, StepResult]", self.changes["step_results"])


@frozen
class StepChange:
    """The new result of one step, with its events and effects."""

    result: StepResult
    events: NewEvents = ()
    effects: tuple[Effect, ...] = ()


def fold_step(run: Execution, fact: facts.StepFact, now: EpochMs) -> Change:
    """
    Fold a fact about one step into its result.

    Raises `IllegalMove` if the table has no row, or if the fact is about another child.
    `Execution.total_steps` does not count the steps of `onFailure`. FL-8.
    """
    before = known(run, fact.step_name, fact)
    change = STEP_FOLDS[type(fact)](before, fact, now)
    if before is None and (rounds := run.rounds_of(fact.step_name)):
        change = _counted_on(change, rounds[-1].attempts)
    result = change.result if run.failing is None else evolve(change.result, steps=0)
    results = {**run.step_results, fact.step_name: result}
    wakes = isinstance(fact, facts.ChildEnded | facts.MailEnded)
    changes, effects = due(run, now) if wakes else ({}, change.effects)
    size = size_after(run, before, result, _counts(fact, before))
    changed = {**changes, "step_results": results, "outputs_size": size}
    return Change(changed, change.events, effects=effects)


_as_json = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def size_of(*values: Json) -> int:
    """The characters of *values* as JSON without spaces; 0 for null. FL-14."""
    given = (one for one in values if one is not None)
    return sum(len(_as_json(one)) for one in given)


def held_by(result: StepResult | None, output: int | None = None) -> int:
    """
    The size of a step result: its output, and a loop's items until it has ended. *output*: the size
    of the output, if it is known. FL-14.
    """
    if result is None:
        return 0
    known = {name: one.size for name, one in left_out(result).items()}
    if output is not None:
        known["output"] = output
    read = (getattr(result, name) for name in ("output", "items") if name not in known)
    return size_of(*read) + sum(known.values())


def held(definition: Definition, results: Mapping[str, StepResult]) -> int:
    """
    The size of *results* in sum. The output of a container repeats the outputs of its steps, and
    does not count again. FL-14.
    """
    containers = {step.name for step in definition.walk() if any(True for _ in lists_of(step))}
    return sum(
        held_by(one, 0 if name_of(key.rpartition("/")[2]) in containers else None)
        for key, one in results.items()
    )


def _counts(fact: facts.StepFact, before: StepResult | None) -> int | None:
    """
    The size of the output in *fact*; None if unknown. The output of a container repeats those of
    its steps, and counts 0. FL-14.
    """
    if before is not None and before.awaits is Awaits.STEPS:
        return 0
    return fact.size if isinstance(fact, facts.StepDone | facts.DataGiven) else None


def size_after(
    run: Execution, before: StepResult | None, after: StepResult, output: int | None = None
) -> int:
    """
    The size of all results of *run* once *before* has become *after*. *output* as in `held_by`.
    """
    return run.outputs_size + held_by(after, output) - held_by(before)


def _counted_on(change: StepChange, earlier: int) -> StepChange:
    """
    The change of a step's first fact in a later round: its attempts continue the earlier count.
    AP-31.
    """
    attempts = change.result.attempts + earlier
    events = tuple(
        (kind, {**data, "attempt": attempts} if "attempt" in data else data)
        for kind, data in change.events
    )
    result = evolve(change.result, attempts=attempts, earlier=earlier)
    return evolve_change(change, result=result, events=events)


def known(run: Execution, name: str, fact: object) -> StepResult | None:
    """The step's result. Raises `IllegalMove` if its state has no row for *fact*."""
    result = run.step_results.get(name)
    STEP.target(state_of(result), type(fact), f"step '{name}'")
    return result


def due(run: Execution, now: EpochMs) -> tuple[Mapping[str, object], tuple[Effect, ...]]:
    """
    The changes and effects with which the execution can continue, with its worker or another. An
    interrupted execution continues only when it is resumed. FL-10.
    """
    if run.status is ExecutionStatus.INTERRUPTED:
        return {}, ()
    return {"due_at": now}, (WakeRunner() if run.worker is None else Reload(run.id),)


def closed(result: StepResult, status: StepStatus, now: EpochMs, error: str | None) -> StepResult:
    """
    *result* with the final *status*, without anything that waits or runs. A loop keeps its items,
    because a redrive continues with them.

    The end is never before the start, even if *now* was read before the step began. EX-30.
    """
    return evolve(
        result,
        status=status,
        completed_at=now if result.started_at is None else max(now, result.started_at),
        error=error,
        retry_at=None,
        awaits=None,
        until=None,
        postponed=0,
    )


def close_all(
    results: Mapping[str, StepResult], fact: type, now: EpochMs, why: str
) -> Mapping[str, StepResult]:
    """
    The results after a fact that reaches every step: the steps whose state has a row for the fact
    are closed.
    """
    after = dict(results)
    for name, result in results.items():
        row = STEP.row(state_of(result), fact)
        if row is not None and row.target is not row.state:
            after[name] = closed(result, StepStatus(row.target), now, why)
    return after


def cancel_steps(run: Execution, fact: facts.StepsCancelled, now: EpochMs) -> Change:
    """
    End the steps that *fact* names, their children, and the approvals for which no other step
    waits.
    """
    for name in fact.step_names:
        known(run, name, fact)
    before = {name: run.step_results[name] for name in fact.step_names}
    after = {**run.step_results, **close_all(before, type(fact), now, fact.why)}
    open = open_questions(after)
    withdrawn = {id: name for id, name in open_questions(before).items() if id not in open}
    events = tuple(
        (EventKind.APPROVAL_CANCELLED, {"step": name, "approvalId": id})
        for id, name in withdrawn.items()
    )
    effects: list[Effect] = [WithdrawApprovals(tuple(withdrawn))] if withdrawn else []
    for result in before.values():
        effects.extend(_cancel_child(result))
    return Change({"step_results": after}, events, effects=tuple(effects))


def open_questions(results: Mapping[str, StepResult]) -> Mapping[str, str]:
    """
    The first step that waits for each open approval. Several steps may wait for the same approval
    about the budget.
    """
    found: dict[str, str] = {}
    for name, result in results.items():
        if result.status is StepStatus.AWAITING_APPROVAL and result.approval_id is not None:
            found.setdefault(result.approval_id, name)
    return found


def completed(
    name: str, before: StepResult, now: EpochMs, state: tuple[str, ...] = ()
) -> StepChange:
    """The completion of the step, which wrote the names *state*."""
    result = closed(before, StepStatus.COMPLETED, now, None)
    data: JsonObject = {"step": name, "duration": result.duration_ms}
    if result.model is not None:
        data = {**data, "model": result.model}
    data = {**data, "state": list(state)} if state else data
    return StepChange(result, ((EventKind.STEP_COMPLETED, data),))


def _begun(before: StepResult | None, fact: facts.StepBegun, now: EpochMs) -> StepChange:
    return _started(fact, _attempt(before, now))


def _container_started(before: None, fact: facts.ContainerStarted, now: EpochMs) -> StepChange:
    result = evolve(
        _attempt(before, now),
        awaits=Awaits.STEPS,
        until=fact.until,
        items=fact.items,
        case=fact.case,
        rounds=len(fact.items) if isinstance(fact.items, list | tuple) else None,
    )
    return _started(fact, result, {} if result.rounds is None else {"rounds": result.rounds})


def _data_given(before: None, fact: facts.DataGiven, now: EpochMs) -> StepChange:
    begun = _started(fact, _attempt(before, now))
    ended = completed(fact.step_name, evolve(begun.result, output=fact.output), now)
    return evolve_change(ended, events=begun.events + ended.events)


def _delay_begun(before: None, fact: facts.DelayBegun, now: EpochMs) -> StepChange:
    return _started(fact, evolve(_attempt(before, now), awaits=Awaits.TIME, until=fact.until))


def _child_started(before: StepResult | None, fact: facts.ChildStarted, now: EpochMs) -> StepChange:
    result = evolve(
        _attempt(before, now), awaits=Awaits.CHILD, until=fact.until, child_id=fact.child_id
    )
    return _started(fact, result, {"executionId": fact.child_id})


def _child_completed(before: StepResult, fact: facts.ChildCompleted, now: EpochMs) -> StepChange:
    _require_child(before, fact)
    result = evolve(_with_usage(before, fact.usage), output=fact.output)
    return completed(fact.step_name, result, now)


def _child_failed(before: StepResult, fact: facts.ChildFailed, now: EpochMs) -> StepChange:
    """
    Record the failure of the child. The planner decides what follows, because the planner knows the
    step's `retry`.
    """
    _require_child(before, fact)
    reason = ReasonCode.INTERRUPTED if fact.interrupted else None
    return StepChange(evolve(_with_usage(before, fact.usage), error=fact.error, reason=reason))


def _mail_queued(before: None, fact: facts.MailQueued, now: EpochMs) -> StepChange:
    return _started(fact, evolve(_attempt(before, now), awaits=Awaits.MAIL, until=fact.until))


def _mail_taken(before: StepResult, fact: facts.MailTaken, now: EpochMs) -> StepChange:
    _require_attempt(before, fact)
    return completed(fact.step_name, evolve(before, output=fact.output), now)


def _mail_refused(before: StepResult, fact: facts.MailRefused, now: EpochMs) -> StepChange:
    _require_attempt(before, fact)
    return _failed(before, facts.StepFailed(fact.step_name, fact.error, steps=fact.steps), now)


def _require_attempt(before: StepResult, fact: facts.MailEnded) -> None:
    if before.attempts != fact.attempt:
        raise STEP.refusal(state_of(before), type(fact), f"step '{fact.step_name}'")


def _skipped(before: None, fact: facts.StepSkipped, now: EpochMs) -> StepChange:
    result = StepResult(StepStatus.SKIPPED, now, now, attempts=0, steps=fact.steps)
    return StepChange(result, ((EventKind.STEP_SKIPPED, {"step": fact.step_name}),))


def _done(before: StepResult, fact: facts.StepDone, now: EpochMs) -> StepChange:
    result = evolve(before, output=fact.output, items=None, steps=fact.steps)
    return completed(fact.step_name, result, now, fact.state)


def _usage_recorded(before: StepResult, fact: facts.UsageRecorded, now: EpochMs) -> StepChange:
    return StepChange(evolve(_with_usage(before, fact.usage), model=fact.model))


def _files_refused(before: StepResult, fact: facts.FilesRefused, now: EpochMs) -> StepChange:
    return StepChange(evolve(before, refused=fact.files))


def _retrying(before: StepResult, fact: facts.StepRetrying, now: EpochMs) -> StepChange:
    result = evolve(
        before, error=fact.error, retry_at=fact.retry_at, awaits=None, until=None, postponed=0
    )
    data: JsonObject = {"step": fact.step_name, "error": fact.error, "retryAt": fact.retry_at}
    return StepChange(result, ((EventKind.STEP_RETRYING, data),), _cancel_child(before))


def _postponed(before: StepResult, fact: facts.StepPostponed, now: EpochMs) -> StepChange:
    """
    The attempt does not count, since it never began. The same attempt begins again later. EX-27.
    """
    result = evolve(
        before,
        error=fact.why,
        retry_at=fact.retry_at,
        attempts=before.attempts - 1,
        postponed=before.postponed + 1,
    )
    data: JsonObject = {
        "step": fact.step_name,
        "attempt": before.attempts,
        "reason": fact.why,
        "retryAt": fact.retry_at,
    }
    return StepChange(result, ((EventKind.STEP_POSTPONED, data),))


def _failed(before: StepResult | None, fact: facts.StepFailed, now: EpochMs) -> StepChange:
    before = before or StepResult(StepStatus.FAILED, now, attempts=0)
    reason = ReasonCode.TIMEOUT if fact.timed_out else ReasonCode.STEP_FAILED
    if before.reason is ReasonCode.INTERRUPTED:
        reason = before.reason
    after = closed(before, StepStatus.FAILED, now, fact.error)
    data: JsonObject = {"step": fact.step_name, "error": fact.error}
    result = evolve(after, reason=reason, steps=fact.steps)
    return StepChange(result, ((EventKind.STEP_FAILED, data),), _cancel_child(before))


def _approval_opened(before: None, fact: facts.ApprovalOpened, now: EpochMs) -> StepChange:
    waiting = StepResult(StepStatus.AWAITING_APPROVAL, now, approval_id=fact.approval_id)
    created: JsonObject = {"step": fact.step_name, "approvalId": fact.approval_id}
    started = _started(fact, waiting).events
    return StepChange(waiting, (*started, (EventKind.APPROVAL_CREATED, created)))


def _attempt(before: StepResult | None, now: EpochMs) -> StepResult:
    """The step's result with one more attempt: the first, a retry, or one after a resumption."""
    if before is None:
        return StepResult(StepStatus.RUNNING, now)
    return evolve(
        before,
        status=StepStatus.RUNNING,
        started_at=before.started_at if before.tries else now,
        attempt_at=now if before.tries else None,
        completed_at=None,
        error=None,
        retry_at=None,
        refused=(),
        attempts=before.attempts + 1,
    )


def _started(
    fact: facts.StepFact, result: StepResult, more: Mapping[str, Json] | None = None
) -> StepChange:
    data: JsonObject = {"step": fact.step_name, "attempt": result.attempts, **(more or {})}
    return StepChange(result, ((EventKind.STEP_STARTED, data),))


def _require_child(before: StepResult, fact: facts.ChildEnded) -> None:
    if before.child_id != fact.child_id:
        raise STEP.refusal(state_of(before), type(fact), f"step '{fact.step_name}'")


def _with_usage(before: StepResult, usage: Usage | None) -> StepResult:
    if usage is None:
        return before
    return evolve(before, usage=added(before.usage or NOTHING, usage))


def _cancel_child(before: StepResult) -> tuple[Effect, ...]:
    """The effect that ends the child of a step that no longer waits for it."""
    return (CancelChildren((before.open_child,)),) if before.open_child else ()


STEP_FOLDS: Mapping[type, Callable[[Any, Any, EpochMs], StepChange]] = {
    facts.StepBegun: _begun,
    facts.ContainerStarted: _container_started,
    facts.DelayBegun: _delay_begun,
    facts.DataGiven: _data_given,
    facts.ChildStarted: _child_started,
    facts.ChildCompleted: _child_completed,
    facts.ChildFailed: _child_failed,
    facts.MailQueued: _mail_queued,
    facts.MailTaken: _mail_taken,
    facts.MailRefused: _mail_refused,
    facts.StepSkipped: _skipped,
    facts.StepDone: _done,
    facts.UsageRecorded: _usage_recorded,
    facts.FilesRefused: _files_refused,
    facts.StepRetrying: _retrying,
    facts.StepPostponed: _postponed,
    facts.StepFailed: _failed,
    facts.ApprovalOpened: _approval_opened,
}
"""
The folds of facts that concern one step alone. Each fold takes the step's result before the fact.
"""
