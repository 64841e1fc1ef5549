"""
How facts about steps change their results: a part of the fold of `rules.execution.fold`.

Each fact is held against what is known of its step: a step that is not in flight cannot end,
one that has ended cannot begin. So whatever reports twice, or too late, changes nothing. EX-3.
"""

from collections.abc import Callable, Mapping
from typing import Any, cast

from attrs import field, frozen

from wfcore.effects import (
    CancelChildren,
    Effect,
    LookAgain,
    WakeRunner,
    WithdrawApprovals,
)
from wfcore.errors import IllegalMove
from wfcore.model.event import EventKind
from wfcore.model.evolving import evolve
from wfcore.model.execution import (
    Awaits,
    Execution,
    ExecutionStatus,
    ReasonCode,
    StatusReason,
    StepResult,
    StepStatus,
)
from wfcore.model.json import JsonObject
from wfcore.rules.execution import machine as facts
from wfcore.rules.execution.open_approval import open_questions
from wfcore.rules.execution.usage import NOTHING, added, total
from wfcore.time import EpochMs

Said = tuple[tuple[EventKind, JsonObject], ...]


@frozen
class Change:
    """What one fact changes, what is said before and about the new status, what follows."""

    changes: Mapping[str, object] = field(factory=dict)
    said: Said = ()
    about: JsonObject = field(factory=dict)
    effects: tuple[Effect, ...] = ()

    @property
    def results(self) -> Mapping[str, StepResult]:
        """The step results that it leads to."""
        return cast("Mapping[str, StepResult]", self.changes["step_results"])


def closed(result: StepResult, status: StepStatus, now: EpochMs, error: str | None) -> StepResult:
    """
    *result* ended in *status*: nothing of the step waits or runs any more. The items of a loop
    stay, since a redrive goes on with them.
    """
    return evolve(
        result,
        status=status,
        completed_at=now,
        error=error,
        retry_at=None,
        awaits=None,
        until=None,
        postponed=0,
    )


def about_end(reason: StatusReason) -> JsonObject:
    """What the event of an end says of its reason."""
    return {
        "reason": reason.code.value,
        **({"step": reason.step_name} if reason.step_name else {}),
        **({"approvalId": reason.approval_id} if reason.approval_id else {}),
    }


def failed(
    run: Execution, name: str, error: str, now: EpochMs, code: ReasonCode, steps: int
) -> Change:
    """The step's result after its final failure."""
    before = run.step_results.get(name) or StepResult(StepStatus.FAILED, now, attempts=0)
    if before.reason is ReasonCode.INTERRUPTED:
        code = before.reason
    result = evolve(closed(before, StepStatus.FAILED, now, error), reason=code, steps=steps)
    said: Said = ((EventKind.STEP_FAILED, {"step": name, "error": error}),)
    return Change(_with(run, name, result), said, effects=_without_child(before))


def rejected(run: Execution, fact: facts.Rejected, now: EpochMs) -> Change:
    """The results of the steps that wait for it after a no."""
    why = "Nobody decided in time" if fact.timed_out else "Rejected"
    waiting = _asking(run, fact)
    over = {name: closed(one, StepStatus.REJECTED, now, why) for name, one in waiting.items()}
    about: JsonObject = {"step": fact.step_name, "approvalId": fact.approval_id}
    said: Said = ((EventKind.APPROVAL_REJECTED, about),)
    return Change({"step_results": {**run.step_results, **over}}, said)


def _begun(run: Execution, fact: facts.StepBegun, now: EpochMs) -> Change:
    result = _attempt(run, fact.step_name, fact, now)
    return _started(run, fact.step_name, result)


def _entered(run: Execution, fact: facts.ContainerStarted, now: EpochMs) -> Change:
    _require(fact.step_name not in run.step_results, run, fact.step_name, fact)
    result = StepResult(
        StepStatus.RUNNING, now, awaits=Awaits.STEPS, until=fact.until, items=fact.items
    )
    return _started(run, fact.step_name, result)


def _delayed(run: Execution, fact: facts.DelayBegun, now: EpochMs) -> Change:
    _require(fact.step_name not in run.step_results, run, fact.step_name, fact)
    result = StepResult(StepStatus.RUNNING, now, awaits=Awaits.TIME, until=fact.until)
    return _started(run, fact.step_name, result)


def _child_started(run: Execution, fact: facts.ChildStarted, now: EpochMs) -> Change:
    attempt = _attempt(run, fact.step_name, fact, now)
    result = evolve(attempt, awaits=Awaits.CHILD, until=fact.until, child_id=fact.child_id)
    return _started(run, fact.step_name, result, {"executionId": fact.child_id})


def _child_ended(run: Execution, fact: facts.ChildEnded, now: EpochMs) -> Change:
    """What a bad end means is for the planner to say: it knows the step's `retry`."""
    before = run.step_results.get(fact.step_name)
    held = before is not None and before.open_child == fact.child_id
    _require(held, run, fact.step_name, fact)
    assert before is not None
    changes, effects = _due(run, now)
    if fact.usage is not None:
        before = evolve(before, usage=added(before.usage or NOTHING, fact.usage))
    if fact.error is not None:
        reason = ReasonCode.INTERRUPTED if fact.interrupted else None
        result = evolve(before, error=fact.error, reason=reason)
        return Change({**changes, **_with(run, fact.step_name, result)}, effects=effects)
    result = evolve(closed(before, StepStatus.COMPLETED, now, None), output=fact.output)
    said = _completed(fact.step_name, result)
    return Change({**changes, **_with(run, fact.step_name, result)}, said, effects=effects)


def _skipped(run: Execution, fact: facts.StepSkipped, now: EpochMs) -> Change:
    name = fact.step_name
    _require(name not in run.step_results, run, name, fact)
    result = StepResult(StepStatus.SKIPPED, now, now, attempts=0, steps=fact.steps)
    return Change(_with(run, name, result), ((EventKind.STEP_SKIPPED, {"step": name}),))


def _done(run: Execution, fact: facts.StepDone, now: EpochMs) -> Change:
    name = fact.step_name
    before = _running(run, name, fact)
    result = evolve(
        before,
        status=StepStatus.COMPLETED,
        completed_at=now,
        output=fact.output,
        error=None,
        awaits=None,
        until=None,
        items=None,
        steps=fact.steps,
        postponed=0,
    )
    return Change(_with(run, name, result), _completed(name, result))


def _spent(run: Execution, fact: facts.UsageRecorded, now: EpochMs) -> Change:
    """What an attempt consumed, before it is said how it ended."""
    before = _running(run, fact.step_name, fact)
    result = evolve(before, usage=added(before.usage or NOTHING, fact.usage))
    return Change(_with(run, fact.step_name, result))


def _refused(run: Execution, fact: facts.FilesRefused, now: EpochMs) -> Change:
    before = _running(run, fact.step_name, fact)
    return Change(_with(run, fact.step_name, evolve(before, refused=fact.files)))


def _retrying(run: Execution, fact: facts.StepRetrying, now: EpochMs) -> Change:
    name = fact.step_name
    before = _running(run, name, fact)
    result = evolve(
        before, error=fact.error, retry_at=fact.retry_at, awaits=None, until=None, postponed=0
    )
    about: JsonObject = {"step": name, "error": fact.error, "retryAt": fact.retry_at}
    said: Said = ((EventKind.STEP_RETRYING, about),)
    return Change(_with(run, name, result), said, effects=_without_child(before))


def _postponed(run: Execution, fact: facts.StepPostponed, now: EpochMs) -> Change:
    """The attempt is taken back: it has not begun, and what begins next is the same one. EX-27."""
    name = fact.step_name
    before = _running(run, name, fact)
    _require(before.awaits is None, run, name, fact)
    result = evolve(
        before,
        error=fact.why,
        retry_at=fact.retry_at,
        attempts=before.attempts - 1,
        postponed=before.postponed + 1,
    )
    about: JsonObject = {
        "step": name,
        "attempt": before.attempts,
        "reason": fact.why,
        "retryAt": fact.retry_at,
    }
    return Change(_with(run, name, result), ((EventKind.STEP_POSTPONED, about),))


def _failed(run: Execution, fact: facts.StepFailed, now: EpochMs) -> Change:
    before = run.step_results.get(fact.step_name)
    over = before is not None and before.status not in (StepStatus.RUNNING, StepStatus.INTERRUPTED)
    _require(not over, run, fact.step_name, fact)
    code = ReasonCode.TIMEOUT if fact.timed_out else ReasonCode.STEP_FAILED
    return failed(run, fact.step_name, fact.error, now, code, fact.steps)


def _stopped(run: Execution, fact: facts.StepsCancelled, now: EpochMs) -> Change:
    before = {name: run.step_results[name] for name in fact.step_names}
    over = {
        name: closed(result, StepStatus.CANCELLED, now, fact.why) for name, result in before.items()
    }
    after = {**run.step_results, **over}
    still = open_questions(after)
    asked = {id: name for id, name in open_questions(before).items() if id not in still}
    said = tuple(
        (EventKind.APPROVAL_CANCELLED, {"step": name, "approvalId": id})
        for id, name in asked.items()
    )
    effects: list[Effect] = [WithdrawApprovals(run.id, tuple(asked))] if asked else []
    for result in before.values():
        effects.extend(_without_child(result))
    return Change({"step_results": after}, said, effects=tuple(effects))


def _opened(run: Execution, fact: facts.ApprovalOpened, now: EpochMs) -> Change:
    name = fact.step_name
    _require(name not in run.step_results, run, name, fact)
    waiting = StepResult(StepStatus.AWAITING_APPROVAL, now, approval_id=fact.approval_id)
    about: JsonObject = {"step": name, "approvalId": fact.approval_id}
    begun: JsonObject = {"step": name, "attempt": 1}
    said: Said = ((EventKind.STEP_STARTED, begun), (EventKind.APPROVAL_CREATED, about))
    return Change(_with(run, name, waiting), said)


def _budget_reached(run: Execution, fact: facts.BudgetReached, now: EpochMs) -> Change:
    """
    What is known of earlier attempts stays; the next one has not begun. BU-2. Where others wait
    for that approval already, it is not told as a new one. BU-4.
    """
    name = fact.step_name
    before = run.step_results.get(name)
    _require(before is None or _may_begin(before), run, name, fact)
    waiting = evolve(
        before or StepResult(StepStatus.RUNNING, now, attempts=0),
        status=StepStatus.AWAITING_APPROVAL,
        completed_at=None,
        retry_at=None,
        approval_id=fact.approval_id,
    )
    about: JsonObject = {"step": name, "approvalId": fact.approval_id}
    joins = fact.approval_id in open_questions(run.step_results)
    said: Said = () if joins else ((EventKind.APPROVAL_CREATED, about),)
    return Change(_with(run, name, waiting), said)


def _approved(run: Execution, fact: facts.Approved, now: EpochMs) -> Change:
    if fact.extends:
        return _extended(run, fact, now)
    name = fact.step_name
    before = _asking(run, fact)[name]
    result = evolve(closed(before, StepStatus.COMPLETED, now, None), output=fact.output)
    about: JsonObject = {"step": name, "approvalId": fact.approval_id}
    said: Said = ((EventKind.APPROVAL_APPROVED, about), *_completed(name, result))
    changes, effects = _due(run, now)
    return Change({**changes, **_with(run, name, result)}, said, effects=effects)


def _extended(run: Execution, fact: facts.Approved, now: EpochMs) -> Change:
    """
    The budget counts from here on again, and the next attempt of every step that waits is
    due. BU-2, BU-4.
    """
    due = {
        name: evolve(one, status=StepStatus.RUNNING, error=None, retry_at=now, approval_id=None)
        for name, one in _asking(run, fact).items()
    }
    about: JsonObject = {"step": fact.step_name, "approvalId": fact.approval_id}
    changes, effects = _due(run, now)
    granted = total(run.step_results.values())
    changed = {**changes, "step_results": {**run.step_results, **due}, "granted": granted}
    return Change(changed, ((EventKind.APPROVAL_APPROVED, about),), effects=effects)


def _due(run: Execution, now: EpochMs) -> tuple[Mapping[str, object], tuple[Effect, ...]]:
    """
    The execution can go on: by the worker that holds it, or by whoever takes it. An
    interrupted one does so when it is resumed. FL-10.
    """
    if run.status is ExecutionStatus.INTERRUPTED:
        return {}, ()
    if run.worker is not None:
        return {"due_at": now}, (LookAgain(run.id),)
    return {"due_at": now}, (WakeRunner(),)


def _attempt(run: Execution, name: str, fact: object, now: EpochMs) -> StepResult:
    """The step's result with one attempt more: its first, after a failed one, or resumed."""
    before = run.step_results.get(name)
    if before is None:
        return StepResult(StepStatus.RUNNING, now)
    _require(_may_begin(before), run, name, fact)
    return evolve(
        before,
        status=StepStatus.RUNNING,
        started_at=before.started_at if before.attempts else now,
        completed_at=None,
        error=None,
        retry_at=None,
        refused=(),
        attempts=before.attempts + 1,
    )


def _may_begin(before: StepResult) -> bool:
    """Whether another attempt may: the last one failed and was granted one, or is unknown."""
    return before.status is StepStatus.INTERRUPTED or before.retry_at is not None


def _started(
    run: Execution, name: str, result: StepResult, more: JsonObject | None = None
) -> Change:
    about: JsonObject = {"step": name, "attempt": result.attempts, **(more or {})}
    return Change(_with(run, name, result), ((EventKind.STEP_STARTED, about),))


def _completed(name: str, result: StepResult) -> Said:
    return ((EventKind.STEP_COMPLETED, {"step": name, "duration": result.duration_ms}),)


def _without_child(result: StepResult) -> tuple[Effect, ...]:
    """A step that does not wait for its child any more ends it."""
    return (CancelChildren((result.open_child,)),) if result.open_child else ()


def _running(run: Execution, name: str, fact: object) -> StepResult:
    """The step's result, if an attempt of it has begun and not ended."""
    result = run.step_results.get(name)
    running = result is not None and result.status is StepStatus.RUNNING
    _require(running and result is not None and result.retry_at is None, run, name, fact)
    assert result is not None
    return result


def _asking(run: Execution, fact: facts.Approved | facts.Rejected) -> Mapping[str, StepResult]:
    """The steps that wait for that very approval, at least one; for a budget several may. BU-4."""
    found = {
        name: result
        for name, result in run.step_results.items()
        if result.status is StepStatus.AWAITING_APPROVAL and result.approval_id == fact.approval_id
    }
    _require(bool(found), run, fact.step_name, fact)
    return found


def _require(holds: bool, run: Execution, name: str, fact: object) -> None:
    if not holds:
        known = run.step_results.get(name)
        state = str(known.status) if known is not None else "not begun"
        kind = type(fact).__name__
        raise IllegalMove(f"step '{name}' is {state}: {kind} is not possible", "step", state, kind)


def _with(run: Execution, name: str, result: StepResult) -> Mapping[str, object]:
    return {"step_results": {**run.step_results, name: result}}


STEP_FOLDS: Mapping[type, Callable[[Execution, Any, EpochMs], Change]] = {
    facts.StepBegun: _begun,
    facts.ContainerStarted: _entered,
    facts.DelayBegun: _delayed,
    facts.ChildStarted: _child_started,
    facts.ChildEnded: _child_ended,
    facts.StepSkipped: _skipped,
    facts.StepDone: _done,
    facts.UsageRecorded: _spent,
    facts.FilesRefused: _refused,
    facts.StepRetrying: _retrying,
    facts.StepPostponed: _postponed,
    facts.StepFailed: _failed,
    facts.StepsCancelled: _stopped,
    facts.ApprovalOpened: _opened,
    facts.BudgetReached: _budget_reached,
    facts.Approved: _approved,
}
"""Facts that change the result of a step, and the execution at most by being due."""
