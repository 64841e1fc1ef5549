"""
The effect of a fact on an execution: the fold over both machines.

`advance` is the only way in which an execution changes. It is a pure function in three steps: the
table decides whether the fact is possible and which status follows; the fold of that fact makes the
other changes; and the consequences of the new status are added, for every fact alike. So a fold
never sets a status, and the consequences of an end (the worker lets go, approvals are withdrawn,
children are cancelled, parent and caller get a message) are written once, for every fact that can
cause it.

Nothing outside of the record happens here. The required acts are returned as effects. The use case
that stores the record carries the effects out; effects that must not be lost are carried out in the
same unit of work.

Events are numbered here and nowhere else, without gaps. A change of status is an event of its own,
after the events of the fact that caused it. The terminal event is the last one, so a reader who has
the terminal event has all events. EX-20.

The folds of facts about single steps are in `fold_steps`. They, too, check their table first: a
repeated or late report is refused before anything changes.

Decisions of people are folded here, because an approval may concern several steps. An approval
belongs to the step that opened it, except an approval for more budget: that approval is the
execution's, and every step that reaches the spent budget waits for the same approval. So a decision
is folded into all steps that wait for that approval, whichever of them opened it. BU-4.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from wfcore.effects import (
    CallBack,
    CancelChildren,
    DeadlineSet,
    Effect,
    Outcome,
    SetTimers,
    StopSteps,
    TellParent,
    TellTrigger,
    WakeRunner,
    WithdrawApprovals,
)
from wfcore.errors import IllegalMove
from wfcore.model.event import Event, EventKind
from wfcore.model.execution import (
    Execution,
    PendingFailure,
    ReasonCode,
    StatusReason,
    StepResult,
    StepStatus,
    aside_key,
    evolve,
)
from wfcore.model.json import JsonObject
from wfcore.rules.callback import owed
from wfcore.rules.execution import machine as facts
from wfcore.rules.execution.budget import total
from wfcore.rules.execution.fold_steps import (
    STEP_FOLDS,
    Change,
    NewEvent,
    NewEvents,
    cancel_steps,
    close_all,
    completed,
    due,
    fold_step,
    known,
    open_questions,
    size_after,
    state_of,
)
from wfcore.rules.execution.machine import EXECUTION, Fact
from wfcore.rules.execution.step_machine import STEP, StepState
from wfcore.time import EpochMs

INTERRUPTED_ERROR = "Execution interrupted"


def advance(run: Execution, fact: Fact, now: EpochMs) -> Outcome[Execution]:
    """
    Fold one fact into an execution. Pure: the same run, fact and time give the same outcome.

    Raises `IllegalMove` if the table of the execution or of the step has no row; for ended
    executions and steps always (EX-9, EX-3).
    """
    status = EXECUTION.target(run.status, type(fact))
    change = FOLDS[type(fact)](run, fact, now)
    changes: dict[str, object] = dict(change.changes)
    events, effects = change.events, change.effects
    if isinstance(fact, facts.ExecutionAborted):
        events += tuple(
            (EventKind.APPROVAL_CANCELLED, {"step": name, "approvalId": id})
            for id, name in _withdrawn(run, fact).items()
        )
        effects = (*effects, *_let_go(run, fact))
    if status is not run.status:
        changes["status"] = status
        events = (*events, (EventKind(f"execution.{status.lower()}"), change.status_data))
    if status in EXECUTION.final:
        ended = max(now, run.accepted_at)
        changes |= {"completed_at": ended, "worker": None, "due_at": None}
        effects = (*effects, *_at_the_end(run, fact, now))
    numbered = _numbered(run, now, events)
    record = evolve(run, events=run.events + len(numbered), **changes)  # type: ignore[arg-type]
    return Outcome(record, numbered, effects)


def announce(run: Execution, events: Sequence[NewEvent], now: EpochMs) -> Outcome[Execution]:
    """Add events that change nothing else: output lines, artifacts."""
    numbered = _numbered(run, now, tuple(events))
    return Outcome(evolve(run, events=run.events + len(numbered)), numbered)


def _withdrawn(run: Execution, fact: Fact) -> Mapping[str, str]:
    """The approvals that the fact withdraws, each with the first step that waits for it. AP-5."""
    decided = fact.approval_id if isinstance(fact, facts.Rejected) else None
    return {id: name for id, name in open_questions(run.step_results).items() if id != decided}


def _let_go(run: Execution, fact: Fact) -> Iterator[Effect]:
    """The effects on approvals and children when the steps that wait for them are aborted."""
    if withdrawn := _withdrawn(run, fact):
        yield WithdrawApprovals(tuple(withdrawn))
    children = tuple(one.open_child for one in run.step_results.values() if one.open_child)
    if children:
        yield CancelChildren(children)


def _at_the_end(run: Execution, fact: Fact, now: EpochMs) -> Iterator[Effect]:
    """
    The effects of the execution's end on its processes, its concurrency group, its parent, trigger
    and caller, and on chains that follow it.
    """
    yield SetTimers()
    if set(run.in_flight) - {getattr(fact, "step_name", None)}:
        yield StopSteps(run.id)
    if run.concurrency_group is not None:
        yield WakeRunner()
    if run.trigger_id is not None:
        yield TellTrigger(run.trigger_id)
    if run.parent_id is not None:
        yield TellParent(run.parent_id)
    if run.callback_url is not None:
        yield CallBack(owed(run, run.callback_url, now))
        yield DeadlineSet()


def _numbered(run: Execution, now: EpochMs, events: NewEvents) -> tuple[Event, ...]:
    return tuple(
        Event(run.id, number, now, kind, data)
        for number, (kind, data) in enumerate(events, start=run.events + 1)
    )


def _claimed(run: Execution, fact: facts.Claimed, now: EpochMs) -> Change:
    return Change({"due_at": None})


def _lease_returned(run: Execution, fact: facts.LeaseReturned, now: EpochMs) -> Change:
    return Change({"worker": None, "due_at": now}, effects=(WakeRunner(),))


def _wake_at(run: Execution, fact: facts.WakeAt, now: EpochMs) -> Change:
    return Change({"due_at": fact.until})


def _suspended(run: Execution, fact: facts.Suspended, now: EpochMs) -> Change:
    return Change({"worker": None, "due_at": fact.until}, effects=_to_be_claimed(fact.until))


def _awaiting_approval(run: Execution, fact: facts.AwaitingApproval, now: EpochMs) -> Change:
    data: JsonObject = {"step": fact.step_name, "approvalId": fact.approval_id}
    changes = {"worker": None, "due_at": fact.until}
    effects = (DeadlineSet(), *_to_be_claimed(fact.until))
    return Change(changes, status_data=data, effects=effects)


def _to_be_claimed(at: EpochMs | None) -> tuple[Effect, ...]:
    return () if at is None else (WakeRunner(),)


def _finished(run: Execution, fact: facts.Finished, now: EpochMs) -> Change:
    return Change({"output": fact.output})


def _worker_lost(run: Execution, fact: facts.WorkerLost, now: EpochMs) -> Change:
    """
    The steps in flight are interrupted, since nobody knows how far these steps got; steps that were
    only waiting keep waiting.
    """
    results = close_all(run.step_results, type(fact), now, "The worker stopped")
    reason = StatusReason(ReasonCode.INTERRUPTED, next(iter(run.in_flight), None))
    change = _because(reason, results)
    changes = {**change.changes, "worker": None, "due_at": fact.grace_until}
    effects = (DeadlineSet(), StopSteps(run.id))
    return Change(changes, status_data=change.status_data, effects=effects)


def _resumed(run: Execution, fact: facts.Resumed, now: EpochMs) -> Change:
    changes = {"due_at": now, "resumes": run.resumes + 1, "status_reason": None}
    return Change(changes, effects=(WakeRunner(),))


def _rejected(run: Execution, fact: facts.Rejected, now: EpochMs) -> Change:
    """
    The steps that wait for the approval are REJECTED. All other open steps are aborted, even steps
    that wait for another approval.
    """
    code = ReasonCode.APPROVAL_TIMEOUT if fact.timed_out else ReasonCode.APPROVAL_REJECTED
    reason = StatusReason(code, fact.step_name, fact.approval_id)
    change = _reject_steps(run, fact, now)
    why = "An approval was rejected"
    results = close_all(change.results, facts.ExecutionAborted, now, why)
    return _because(reason, results, change.events)


def _cancelled(run: Execution, fact: facts.CancelAsked, now: EpochMs) -> Change:
    results = close_all(run.step_results, type(fact), now, "Cancelled")
    return _because(StatusReason(ReasonCode.CANCEL_REQUESTED), results)


def _parent_ended(run: Execution, fact: facts.ParentEnded, now: EpochMs) -> Change:
    why = "The execution that started this one has ended"
    results = close_all(run.step_results, type(fact), now, why)
    return _because(StatusReason(ReasonCode.PARENT_CANCELLED), results)


def _failed(run: Execution, fact: facts.Failed | facts.Failing, now: EpochMs) -> Change:
    """
    The step that the fact names fails, unless it has failed already; all other open steps are
    aborted.
    """
    name, error = fact.step_name, fact.error
    change = Change({"step_results": run.step_results})
    if name is not None:
        if state_of(run.step_results.get(name)) is not StepState.FAILED:
            change = fold_step(run, facts.StepFailed(name, error, fact.timed_out, steps=0), now)
        error = f"Step '{name}' failed: {error}"
    results = close_all(change.results, type(fact), now, "Another step failed")
    code = ReasonCode.TIMEOUT if fact.timed_out else ReasonCode.STEP_FAILED
    reason = StatusReason(code, name)
    ended = _because(reason, results, change.events)
    return Change({**ended.changes, "error": error}, ended.events, _about_failure(reason, error))


def _failing(run: Execution, fact: facts.Failing, now: EpochMs) -> Change:
    """
    As `_failed`, except that the failure is kept for later. The worker stops the steps that still
    run, as it does for a container that failed. EX-31, EX-32.
    """
    if run.failing is not None:
        raise EXECUTION.refusal(run.status, type(fact))
    ended = _failed(run, fact, now)
    code = ReasonCode.TIMEOUT if fact.timed_out else ReasonCode.STEP_FAILED
    error = str(ended.changes["error"])
    failing = PendingFailure(error, StatusReason(code, fact.step_name))
    events = (*ended.events, (EventKind.FAILURE_STARTED, ended.status_data))
    return Change({"step_results": ended.results, "failing": failing}, events)


def _failing_after_grace(run: Execution, fact: facts.FailingAfterGrace, now: EpochMs) -> Change:
    """The interrupted steps stay so; a worker takes the execution up for its `onFailure` steps."""
    results = close_all(run.step_results, type(fact), now, INTERRUPTED_ERROR)
    reason = run.status_reason or StatusReason(ReasonCode.INTERRUPTED)
    failing = PendingFailure(INTERRUPTED_ERROR, reason)
    event = (EventKind.FAILURE_STARTED, _about_failure(reason, INTERRUPTED_ERROR))
    changes = {"step_results": results, "failing": failing, "due_at": now, "status_reason": None}
    return Change(changes, (event,), effects=(WakeRunner(),))


def _failure_handled(run: Execution, fact: facts.FailureHandled, now: EpochMs) -> Change:
    return _as_it_was_going_to(run, fact, fact.failure, now)


def _as_it_was_going_to(
    run: Execution, fact: Fact, failure: PendingFailure, now: EpochMs
) -> Change:
    """The execution fails, whatever the results of its `onFailure` steps are. EX-31."""
    results = close_all(run.step_results, type(fact), now, "The execution failed")
    ended, error = _because(failure.reason, results), failure.error
    changes = {**ended.changes, "error": error}
    return Change(changes, status_data=_about_failure(failure.reason, error))


def _grace_over(run: Execution, fact: facts.GraceOver, now: EpochMs) -> Change:
    if run.failing is not None:
        return _as_it_was_going_to(run, fact, run.failing, now)
    results = close_all(run.step_results, type(fact), now, INTERRUPTED_ERROR)
    changes = {"error": INTERRUPTED_ERROR, "step_results": results}
    return Change(changes, status_data={"error": INTERRUPTED_ERROR})


def _because(
    reason: StatusReason, results: Mapping[str, StepResult], events: NewEvents = ()
) -> Change:
    changes = {"step_results": results, "status_reason": reason}
    return Change(changes, events, _about_end(reason))


def _about_failure(reason: StatusReason, error: str) -> JsonObject:
    return {**(_about_end(reason) if reason.step_name else {}), "error": error}


def _about_end(reason: StatusReason) -> JsonObject:
    """The reason of an end, as data of its event."""
    return {
        "reason": reason.code.value,
        **({"step": reason.step_name} if reason.step_name else {}),
        **({"approvalId": reason.approval_id} if reason.approval_id else {}),
    }


Results = Mapping[str, StepResult]
Decided: TypeAlias = facts.Approved | facts.Revised | facts.BudgetExtended | facts.Rejected


def _reject_steps(run: Execution, fact: facts.Rejected, now: EpochMs) -> Change:
    """The steps that wait for the approval are REJECTED."""
    why = "Nobody decided in time" if fact.timed_out else "Rejected"
    rejected = close_all(_waiting(run, fact), type(fact), now, why)
    events = _about(fact, EventKind.APPROVAL_REJECTED)
    return Change({"step_results": {**run.step_results, **rejected}}, events)


def _budget_reached(run: Execution, fact: facts.BudgetReached, now: EpochMs) -> Change:
    """
    The step waits for a decision on the budget. Earlier attempts stay on record, and the next
    attempt has not begun. BU-2. An approval that other steps already wait for is not opened again.
    BU-4.
    """
    before = known(run, fact.step_name, fact) or StepResult(StepStatus.RUNNING, now, attempts=0)
    waiting = evolve(
        before,
        status=StepStatus.AWAITING_APPROVAL,
        completed_at=None,
        retry_at=None,
        approval_id=fact.approval_id,
    )
    joins = fact.approval_id in open_questions(run.step_results)
    events = () if joins else _about(fact, EventKind.APPROVAL_CREATED)
    return Change({"step_results": {**run.step_results, fact.step_name: waiting}}, events)


def _approved(run: Execution, fact: facts.Approved, now: EpochMs) -> Change:
    waiting = _waiting(run, fact)
    if fact.step_name not in waiting:
        raise _refusal(run, fact)
    before = evolve(waiting[fact.step_name], output=fact.output)
    change = completed(fact.step_name, before, now)
    events = (*_about(fact, EventKind.APPROVAL_APPROVED), *change.events)
    size = size_after(run, waiting[fact.step_name], change.result)
    return _going_on(run, {fact.step_name: change.result}, now, events, outputs_size=size)


def _revised(run: Execution, fact: facts.Revised, now: EpochMs) -> Change:
    """
    The step ends. The results of all steps that run again, this step included, are put aside.
    AP-31.
    """
    waiting = _waiting(run, fact)
    if fact.step_name not in waiting:
        raise _refusal(run, fact)
    change = completed(fact.step_name, evolve(waiting[fact.step_name], output=fact.output), now)
    results = {**run.step_results, fact.step_name: change.result}
    again = {key: results.pop(key) for key in fact.again if key in results}
    aside = {aside_key(len(run.rounds_of(key)) + 1, key): one for key, one in again.items()}
    changes, effects = due(run, now)
    size = size_after(run, waiting[fact.step_name], change.result)
    changes = {**changes, "outputs_size": size}
    changed = {**changes, "step_results": results, "put_aside": {**run.put_aside, **aside}}
    events = (*_about(fact, EventKind.APPROVAL_REVISED), *change.events)
    return Change(changed, events, effects=effects)


def _budget_extended(run: Execution, fact: facts.BudgetExtended, now: EpochMs) -> Change:
    """
    The budget is granted anew, and the next attempt of every step that waits for the approval is
    due. BU-2, BU-4.
    """
    next_attempts = {
        name: evolve(one, status=StepStatus.RUNNING, error=None, retry_at=now, approval_id=None)
        for name, one in _waiting(run, fact).items()
    }
    granted = total(run.every_result)
    events = _about(fact, EventKind.APPROVAL_APPROVED)
    return _going_on(run, next_attempts, now, events, granted=granted)


def _going_on(
    run: Execution, results: Results, now: EpochMs, events: NewEvents, **more: object
) -> Change:
    changes, effects = due(run, now)
    changed = {**changes, "step_results": {**run.step_results, **results}, **more}
    return Change(changed, events, effects=effects)


def _waiting(run: Execution, fact: Decided) -> Results:
    """The steps that wait for exactly that approval. Raises `IllegalMove` if there are none."""
    found = {
        name: result
        for name, result in run.step_results.items()
        if result.status is StepStatus.AWAITING_APPROVAL and result.approval_id == fact.approval_id
    }
    if not found:
        raise _refusal(run, fact)
    return found


def _refusal(run: Execution, fact: Decided) -> IllegalMove:
    state = state_of(run.step_results.get(fact.step_name))
    return STEP.refusal(state, type(fact), f"step '{fact.step_name}'")


def _about(fact: Decided | facts.BudgetReached, kind: EventKind) -> NewEvents:
    data: JsonObject = {"step": fact.step_name, "approvalId": fact.approval_id}
    return ((kind, data),)


FOLDS: Mapping[type, Callable[[Execution, Any, EpochMs], Change]] = {
    **dict.fromkeys(STEP_FOLDS, fold_step),
    facts.BudgetReached: _budget_reached,
    facts.Approved: _approved,
    facts.Revised: _revised,
    facts.BudgetExtended: _budget_extended,
    facts.StepsCancelled: cancel_steps,
    facts.Claimed: _claimed,
    facts.LeaseReturned: _lease_returned,
    facts.WakeAt: _wake_at,
    facts.Suspended: _suspended,
    facts.AwaitingApproval: _awaiting_approval,
    facts.Finished: _finished,
    facts.CancelAsked: _cancelled,
    facts.ParentEnded: _parent_ended,
    facts.Failed: _failed,
    facts.Failing: _failing,
    facts.FailureHandled: _failure_handled,
    facts.WorkerLost: _worker_lost,
    facts.Resumed: _resumed,
    facts.GraceOver: _grace_over,
    facts.FailingAfterGrace: _failing_after_grace,
    facts.Rejected: _rejected,
}
"""The fold for each type of fact."""
