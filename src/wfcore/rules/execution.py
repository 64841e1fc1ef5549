"""
How a fact changes an execution: the fold over the machine. Contract §2.

Every change of status is an event of its own, after the events of the fact that caused it;
numbers have no gaps, and a terminal event is the last. EX-20.
"""

from collections.abc import Iterator, Mapping, Sequence

from attrs import field, frozen

from wfcore.effects import (
    CallBack,
    DeadlineSet,
    Effect,
    Outcome,
    SetTimers,
    StopSteps,
    WakeRunner,
    WithdrawApprovals,
)
from wfcore.instants import EpochMs, later
from wfcore.model.event import Event, EventKind
from wfcore.model.evolving import evolve
from wfcore.model.execution import (
    Execution,
    ExecutionStatus,
    ReasonCode,
    StatusReason,
    StepResult,
    StepStatus,
)
from wfcore.model.json import JsonObject
from wfcore.rules import execution_machine as facts
from wfcore.rules.callback import owed
from wfcore.rules.execution_machine import EXECUTION, Fact
from wfcore.rules.spending import NOTHING, added, total

INTERRUPTED_ERROR = "Execution interrupted"


def advance(run: Execution, fact: Fact, now: EpochMs) -> Outcome[Execution]:
    """
    Fold one fact into an execution. Pure: same run, fact and time, same outcome.

    Raises `IllegalMove` where the table has no row, for ended executions always. EX-9.
    """
    status = EXECUTION.target(run.status, type(fact))
    move = _move(run, fact, now)
    changes: dict[str, object] = dict(move.changes)
    said, effects = move.said, move.effects
    if status in EXECUTION.final:
        said = (*said, *_withdrawn(run, fact))
    if status is not run.status:
        changes["status"] = status
        said = (*said, (EventKind(f"execution.{status.lower()}"), move.about))
    if status in EXECUTION.final:
        changes |= {"completed_at": now, "worker": None, "due_at": None}
        effects = (*effects, WithdrawApprovals(run.id))
        if set(run.in_flight) - {getattr(fact, "step_name", None)}:
            effects = (*effects, StopSteps(run.id))
        if run.callback_url is not None:
            effects = (*effects, CallBack(owed(run, run.callback_url, now)), DeadlineSet())
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
    decided = fact.step_name if isinstance(fact, facts.Rejected) else None
    for name, result in run.step_results.items():
        if result.status is StepStatus.AWAITING_APPROVAL and name != decided:
            yield EventKind.APPROVAL_CANCELLED, {"step": name, "approvalId": result.approval_id}


def _numbered(
    run: Execution, now: EpochMs, said: tuple[tuple[EventKind, JsonObject], ...]
) -> tuple[Event, ...]:
    return tuple(
        Event(run.id, number, now, kind, data)
        for number, (kind, data) in enumerate(said, start=run.events + 1)
    )


@frozen
class _Move:
    """What one fact changes, what is said before and about the new status, what follows."""

    changes: Mapping[str, object] = field(factory=dict)
    said: tuple[tuple[EventKind, JsonObject], ...] = ()
    about: JsonObject = field(factory=dict)
    effects: tuple[Effect, ...] = ()


def _move(run: Execution, fact: Fact, now: EpochMs) -> _Move:
    match fact:
        case facts.Claimed():
            return _Move({"due_at": None})
        case facts.LeaseReturned():
            return _Move({"worker": None, "due_at": now}, effects=(WakeRunner(),))
        case facts.Rested(until):
            return _Move({"worker": None, "due_at": until}, effects=(DeadlineSet(),))
        case facts.Paused(approval_id, name):
            about = {"step": name, "approvalId": approval_id}
            return _Move({"worker": None, "due_at": None}, about=about, effects=(DeadlineSet(),))
        case facts.Finished(output):
            return _Move({"output": output}, effects=(SetTimers(),))
        case facts.Broke():
            return _broke(run, fact, now)
        case facts.CancelAsked():
            results = _stopped(run, StepStatus.CANCELLED, "Cancelled", now)
            return _ended(results, StatusReason(ReasonCode.CANCEL_REQUESTED))
        case facts.WorkerLost(grace_until):
            return _lost(run, grace_until, now)
        case facts.Resumed():
            changes = {"due_at": now, "resumes": run.resumes + 1, "status_reason": None}
            return _Move(changes, effects=(WakeRunner(),))
        case facts.GraceOver():
            return _Move({"error": INTERRUPTED_ERROR}, about={"error": INTERRUPTED_ERROR})
        case facts.Approved():
            return _extended(run, fact, now) if fact.extends else _approved(run, fact, now)
        case facts.Rejected():
            return _rejected(run, fact, now)
        case _:
            return _step_move(run, fact, now)


def _step_move(run: Execution, fact: Fact, now: EpochMs) -> _Move:
    """Facts about one step that leave the execution RUNNING."""
    match fact:
        case facts.StepBegun(name):
            result = _begun(run.step_results.get(name), now)
            about: JsonObject = {"step": name, "attempt": result.attempts}
            return _Move(_with(run, name, result), ((EventKind.STEP_STARTED, about),))
        case facts.StepSkipped(name):
            result = StepResult(StepStatus.SKIPPED, now, now, attempts=0)
            return _Move(_with(run, name, result), ((EventKind.STEP_SKIPPED, {"step": name}),))
        case facts.StepDone(name, output):
            result = evolve(
                run.step_results[name],
                status=StepStatus.COMPLETED,
                completed_at=now,
                output=output,
                error=None,
            )
            about = {"step": name, "duration": result.duration_ms}
            return _Move(_with(run, name, result), ((EventKind.STEP_COMPLETED, about),))
        case facts.Spent(name, usage):
            before = run.step_results[name]
            result = evolve(before, usage=added(before.usage or NOTHING, usage))
            return _Move(_with(run, name, result))
        case facts.Refused(name, files):
            return _Move(_with(run, name, evolve(run.step_results[name], refused=files)))
        case facts.StepRetrying(name, error, retry_at):
            result = evolve(run.step_results[name], error=error, retry_at=retry_at)
            about = {"step": name, "error": error, "retryAt": retry_at}
            return _Move(_with(run, name, result), ((EventKind.STEP_RETRYING, about),))
        case facts.StepFailed(name, error):
            return _Move(*_failed(run, name, error, now))
        case facts.BudgetReached(name, approval_id):
            return _budget_reached(run, name, approval_id, now)
        case facts.ApprovalOpened(name, approval_id):
            waiting = StepResult(StepStatus.AWAITING_APPROVAL, now, approval_id=approval_id)
            about = {"step": name, "approvalId": approval_id}
            begun: JsonObject = {"step": name, "attempt": 1}
            return _Move(
                _with(run, name, waiting),
                ((EventKind.STEP_STARTED, begun), (EventKind.APPROVAL_CREATED, about)),
            )
        case _:
            raise AssertionError(f"no fold for {fact!r}")


def _begun(before: StepResult | None, now: EpochMs) -> StepResult:
    if before is None:
        return StepResult(StepStatus.RUNNING, now)
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


def _budget_reached(run: Execution, name: str, approval_id: str, now: EpochMs) -> _Move:
    """What is known of earlier attempts stays; the next one has not begun. BU-2."""
    before = run.step_results.get(name) or StepResult(StepStatus.RUNNING, now, attempts=0)
    waiting = evolve(
        before,
        status=StepStatus.AWAITING_APPROVAL,
        completed_at=None,
        retry_at=None,
        approval_id=approval_id,
    )
    about: JsonObject = {"step": name, "approvalId": approval_id}
    return _Move(_with(run, name, waiting), ((EventKind.APPROVAL_CREATED, about),))


def _extended(run: Execution, fact: facts.Approved, now: EpochMs) -> _Move:
    """The budget counts from here on again, and the step's next attempt is due. BU-2."""
    due = evolve(
        run.step_results[fact.step_name],
        status=StepStatus.RUNNING,
        error=None,
        retry_at=now,
        approval_id=None,
    )
    about: JsonObject = {"step": fact.step_name, "approvalId": fact.approval_id}
    granted = total(run.step_results.values())
    changes = {**_with(run, fact.step_name, due), "granted": granted, "due_at": now}
    return _Move(changes, ((EventKind.APPROVAL_APPROVED, about),), effects=(WakeRunner(),))


def _failed(
    run: Execution, name: str, error: str, now: EpochMs
) -> tuple[Mapping[str, object], tuple[tuple[EventKind, JsonObject], ...]]:
    before = run.step_results.get(name) or StepResult(StepStatus.FAILED, now, attempts=0)
    result = evolve(before, status=StepStatus.FAILED, completed_at=now, error=error, retry_at=None)
    return _with(run, name, result), ((EventKind.STEP_FAILED, {"step": name, "error": error}),)


def _broke(run: Execution, fact: facts.Broke, now: EpochMs) -> _Move:
    code = ReasonCode.TIMEOUT if fact.timed_out else ReasonCode.STEP_FAILED
    reason = StatusReason(code, fact.step_name)
    if fact.step_name is None:
        return _Move({"error": fact.error, "status_reason": reason}, about={"error": fact.error})
    changes, said = _failed(run, fact.step_name, fact.error, now)
    failed = evolve(run, step_results=changes["step_results"])  # type: ignore[arg-type]
    results = _stopped(failed, StepStatus.CANCELLED, "Another step failed", now)
    error = f"Step '{fact.step_name}' failed: {fact.error}"
    ended = _ended(results, reason)
    return _Move({**ended.changes, "error": error}, said, {**ended.about, "error": error})


def _lost(run: Execution, grace_until: EpochMs, now: EpochMs) -> _Move:
    reason = StatusReason(ReasonCode.INTERRUPTED, next(iter(run.in_flight), None))
    results = _stopped(run, StepStatus.INTERRUPTED, "The worker stopped", now)
    ended = _ended(results, reason)
    changes = {**ended.changes, "worker": None, "due_at": grace_until}
    return _Move(changes, about=ended.about, effects=(DeadlineSet(), StopSteps(run.id)))


def _approved(run: Execution, fact: facts.Approved, now: EpochMs) -> _Move:
    result = evolve(
        run.step_results[fact.step_name],
        status=StepStatus.COMPLETED,
        completed_at=now,
        output=fact.output,
    )
    about: JsonObject = {"step": fact.step_name, "approvalId": fact.approval_id}
    said = (
        (EventKind.APPROVAL_APPROVED, about),
        (EventKind.STEP_COMPLETED, {"step": fact.step_name, "duration": result.duration_ms}),
    )
    changes = {**_with(run, fact.step_name, result), "due_at": now}
    return _Move(changes, said, effects=(WakeRunner(),))


def _rejected(run: Execution, fact: facts.Rejected, now: EpochMs) -> _Move:
    code = ReasonCode.APPROVAL_TIMEOUT if fact.timed_out else ReasonCode.APPROVAL_REJECTED
    reason = StatusReason(code, fact.step_name, fact.approval_id)
    why = "Nobody decided in time" if fact.timed_out else "Rejected"
    result = evolve(
        run.step_results[fact.step_name],
        status=StepStatus.REJECTED,
        completed_at=now,
        error=why,
    )
    about: JsonObject = {"step": fact.step_name, "approvalId": fact.approval_id}
    rejected = evolve(run, step_results={**run.step_results, fact.step_name: result})
    results = _stopped(rejected, StepStatus.CANCELLED, "An approval was rejected", now)
    ended = _ended(results, reason)
    return _Move(ended.changes, ((EventKind.APPROVAL_REJECTED, about),), ended.about)


def _with(run: Execution, name: str, result: StepResult) -> Mapping[str, object]:
    return {"step_results": {**run.step_results, name: result}}


def _stopped(
    run: Execution, status: StepStatus, why: str, now: EpochMs
) -> Mapping[str, StepResult]:
    """Results with every step that has not ended brought to *status*."""
    over = {StepStatus.RUNNING, StepStatus.AWAITING_APPROVAL}
    if status is StepStatus.CANCELLED:
        over.add(StepStatus.INTERRUPTED)
    return {
        name: evolve(result, status=status, completed_at=now, error=why, retry_at=None)
        if result.status in over
        else result
        for name, result in run.step_results.items()
    }


def _ended(results: Mapping[str, StepResult], reason: StatusReason) -> _Move:
    about: JsonObject = {
        "reason": reason.code.value,
        **({"step": reason.step_name} if reason.step_name else {}),
        **({"approvalId": reason.approval_id} if reason.approval_id else {}),
    }
    return _Move({"step_results": results, "status_reason": reason}, about=about)


RESUMABLE = frozenset({"manual", "schedule", "delayed_completion", "workflow"})
MAX_RESUMES = 3


def loss(run: Execution, now: EpochMs, grace_ms: int) -> Fact:
    """
    What the loss of its worker means: with nothing in flight it simply goes on (EX-15), else
    it is interrupted, and looked at again at once or after the grace. EX-11.
    """
    if not run.in_flight:
        return facts.LeaseReturned()
    return facts.WorkerLost(now if _resumable(run) else later(now, grace_ms))


def may_resume(run: Execution) -> bool:
    """
    Whether the service itself takes up an interrupted execution again. EX-12, EX-14.

    Never one that came by API or webhook: its caller is responsible for trying again.
    """
    return run.status is ExecutionStatus.INTERRUPTED and _resumable(run)


def _resumable(run: Execution) -> bool:
    return run.trigger_source in RESUMABLE and run.resumes < MAX_RESUMES
