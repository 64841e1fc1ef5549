"""
How a fact changes an execution: the fold over the machine. Contract §2.

Every change of status is an event of its own, after the events of the fact that caused it;
numbers have no gaps, and a terminal event is the last. EX-20.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from wfcore.effects import (
    CallBack,
    CancelChildren,
    DeadlineSet,
    Effect,
    Outcome,
    SetTimers,
    StopSteps,
    TellParent,
    WakeRunner,
    WithdrawApprovals,
)
from wfcore.model.event import Event, EventKind
from wfcore.model.evolving import evolve
from wfcore.model.execution import (
    Execution,
    ReasonCode,
    StatusReason,
    StepResult,
    StepStatus,
)
from wfcore.model.json import JsonObject
from wfcore.rules.callback import owed
from wfcore.rules.execution import machine as facts
from wfcore.rules.execution.fold_steps import (
    STEP_FOLDS,
    Change,
    about_end,
    closed,
    failed,
    rejected,
)
from wfcore.rules.execution.machine import EXECUTION, Fact
from wfcore.time import EpochMs

INTERRUPTED_ERROR = "Execution interrupted"


def advance(run: Execution, fact: Fact, now: EpochMs) -> Outcome[Execution]:
    """
    Fold one fact into an execution. Pure: same run, fact and time, same outcome.

    Raises `IllegalMove` where the table has no row, for ended executions always (EX-9), and
    where the step is not where the fact says it was: what has ended ends once. EX-3.
    """
    status = EXECUTION.target(run.status, type(fact))
    change = FOLDS[type(fact)](run, fact, now)
    changes: dict[str, object] = dict(change.changes)
    said, effects = change.said, change.effects
    if status in EXECUTION.final:
        said = (*said, *_withdrawn(run, fact))
    if status is not run.status:
        changes["status"] = status
        said = (*said, (EventKind(f"execution.{status.lower()}"), change.about))
    if status in EXECUTION.final:
        changes |= {"completed_at": now, "worker": None, "due_at": None}
        effects = (*effects, *_at_the_end(run, fact, now))
    events = _numbered(run, now, said)
    record = evolve(run, events=run.events + len(events), **changes)  # type: ignore[arg-type]
    return Outcome(record, events, effects)


def announce(
    run: Execution, said: Sequence[tuple[EventKind, JsonObject]], now: EpochMs
) -> Outcome[Execution]:
    """Events that move nothing: output lines, artifacts."""
    events = _numbered(run, now, tuple(said))
    return Outcome(evolve(run, events=run.events + len(events)), events)


def _withdrawn(run: Execution, fact: Fact) -> Iterator[tuple[EventKind, JsonObject]]:
    """The end of an execution takes back every question that is still open. AP-5."""
    told = {fact.approval_id} if isinstance(fact, facts.Rejected) else set()
    for name, result in run.step_results.items():
        id = result.approval_id
        if result.status is StepStatus.AWAITING_APPROVAL and id not in told:
            told.add(id or "")
            yield EventKind.APPROVAL_CANCELLED, {"step": name, "approvalId": id}


def _at_the_end(run: Execution, fact: Fact, now: EpochMs) -> Iterator[Effect]:
    """What an end means for others: approvals, processes, children, the parent."""
    yield WithdrawApprovals(run.id)
    if set(run.in_flight) - {getattr(fact, "step_name", None)}:
        yield StopSteps(run.id)
    children = tuple(one.open_child for one in run.step_results.values() if one.open_child)
    if children:
        yield CancelChildren(children)
    if run.parent_id is not None:
        yield TellParent(run.parent_id)
    if run.callback_url is not None:
        yield CallBack(owed(run, run.callback_url, now))
        yield DeadlineSet()


def _numbered(
    run: Execution, now: EpochMs, said: tuple[tuple[EventKind, JsonObject], ...]
) -> tuple[Event, ...]:
    return tuple(
        Event(run.id, number, now, kind, data)
        for number, (kind, data) in enumerate(said, start=run.events + 1)
    )


def _claimed(run: Execution, fact: facts.Claimed, now: EpochMs) -> Change:
    return Change({"due_at": None})


def _returned(run: Execution, fact: facts.LeaseReturned, now: EpochMs) -> Change:
    return Change({"worker": None, "due_at": now}, effects=(WakeRunner(),))


def _waited(run: Execution, fact: facts.WakeAt, now: EpochMs) -> Change:
    return Change({"due_at": fact.until})


def _rested(run: Execution, fact: facts.Suspended, now: EpochMs) -> Change:
    return Change({"worker": None, "due_at": fact.until}, effects=(DeadlineSet(),))


def _paused(run: Execution, fact: facts.AwaitingApproval, now: EpochMs) -> Change:
    about: JsonObject = {"step": fact.step_name, "approvalId": fact.approval_id}
    changes = {"worker": None, "due_at": fact.until}
    return Change(changes, about=about, effects=(DeadlineSet(),))


def _finished(run: Execution, fact: facts.Finished, now: EpochMs) -> Change:
    return Change({"output": fact.output}, effects=(SetTimers(),))


def _cancelled(run: Execution, fact: facts.CancelAsked, now: EpochMs) -> Change:
    results = _all_closed(run.step_results, now, "Cancelled")
    return _over(results, StatusReason(ReasonCode.CANCEL_REQUESTED))


def _orphaned(run: Execution, fact: facts.ParentEnded, now: EpochMs) -> Change:
    results = _all_closed(run.step_results, now, "The execution that started this one has ended")
    return _over(results, StatusReason(ReasonCode.PARENT_CANCELLED))


def _broke(run: Execution, fact: facts.Failed, now: EpochMs) -> Change:
    code = ReasonCode.TIMEOUT if fact.timed_out else ReasonCode.STEP_FAILED
    name, error, said = fact.step_name, fact.error, Change().said
    results = run.step_results
    if name is not None:
        before = results.get(name)
        if before is None or before.status is not StepStatus.FAILED:
            change = failed(run, name, error, now, code, steps=0)
            results, said = change.results, change.said
        error = f"Step '{name}' failed: {error}"
    over = _over(_all_closed(results, now, "Another step failed"), StatusReason(code, name))
    about = {**over.about, "error": error} if name is not None else {"error": error}
    return Change({**over.changes, "error": error}, said, about)


def _lost(run: Execution, fact: facts.WorkerLost, now: EpochMs) -> Change:
    """Of what was in flight nobody knows how far it came; the rest waits as before."""
    reason = StatusReason(ReasonCode.INTERRUPTED, next(iter(run.in_flight), None))
    results = {
        key: closed(result, StepStatus.INTERRUPTED, now, "The worker stopped")
        if result.in_flight
        else result
        for key, result in run.step_results.items()
    }
    over = _over(results, reason)
    changes = {**over.changes, "worker": None, "due_at": fact.grace_until}
    return Change(changes, about=over.about, effects=(DeadlineSet(), StopSteps(run.id)))


def _resumed(run: Execution, fact: facts.Resumed, now: EpochMs) -> Change:
    changes = {"due_at": now, "resumes": run.resumes + 1, "status_reason": None}
    return Change(changes, effects=(WakeRunner(),))


def _grace_over(run: Execution, fact: facts.GraceOver, now: EpochMs) -> Change:
    results = _all_closed(run.step_results, now, INTERRUPTED_ERROR, but=StepStatus.INTERRUPTED)
    changes = {"error": INTERRUPTED_ERROR, "step_results": results}
    return Change(changes, about={"error": INTERRUPTED_ERROR})


def _rejected(run: Execution, fact: facts.Rejected, now: EpochMs) -> Change:
    code = ReasonCode.APPROVAL_TIMEOUT if fact.timed_out else ReasonCode.APPROVAL_REJECTED
    reason = StatusReason(code, fact.step_name, fact.approval_id)
    no = rejected(run, fact, now)
    over = _over(_all_closed(no.results, now, "An approval was rejected"), reason)
    return Change(over.changes, no.said, over.about)


def _all_closed(
    results: Mapping[str, StepResult], now: EpochMs, why: str, but: StepStatus | None = None
) -> Mapping[str, StepResult]:
    """Results with every step that has not ended CANCELLED; those in state *but* stay."""
    over = {StepStatus.RUNNING, StepStatus.AWAITING_APPROVAL, StepStatus.INTERRUPTED} - {but}
    return {
        key: closed(result, StepStatus.CANCELLED, now, why) if result.status in over else result
        for key, result in results.items()
    }


def _over(results: Mapping[str, StepResult], reason: StatusReason) -> Change:
    return Change({"step_results": results, "status_reason": reason}, about=about_end(reason))


FOLDS: Mapping[type, Callable[[Execution, Any, EpochMs], Change]] = {
    **STEP_FOLDS,
    facts.Claimed: _claimed,
    facts.LeaseReturned: _returned,
    facts.WakeAt: _waited,
    facts.Suspended: _rested,
    facts.AwaitingApproval: _paused,
    facts.Finished: _finished,
    facts.CancelAsked: _cancelled,
    facts.ParentEnded: _orphaned,
    facts.Failed: _broke,
    facts.WorkerLost: _lost,
    facts.Resumed: _resumed,
    facts.GraceOver: _grace_over,
    facts.Rejected: _rejected,
}
"""For each type of fact, what it changes."""
