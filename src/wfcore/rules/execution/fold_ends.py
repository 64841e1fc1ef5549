"""
How an execution ends before its steps have: a part of `rules.execution.fold`.

What is open ends with it; who wants to know why finds the reason in the record and in the event.
"""

from collections.abc import Mapping

from wfcore.effects import WakeRunner
from wfcore.model.event import EventKind
from wfcore.model.execution import (
    Execution,
    PendingFailure,
    ReasonCode,
    StatusReason,
    StepResult,
)
from wfcore.model.json import JsonObject
from wfcore.rules.execution import machine as facts
from wfcore.rules.execution.fold_steps import Change, NewEvents, close_all, fold_step, state_of
from wfcore.rules.execution.machine import EXECUTION, Fact
from wfcore.rules.execution.step_machine import StepState
from wfcore.time import EpochMs

INTERRUPTED_ERROR = "Execution interrupted"


def cancelled(run: Execution, fact: facts.CancelAsked, now: EpochMs) -> Change:
    results = close_all(run.step_results, type(fact), now, "Cancelled")
    return because(StatusReason(ReasonCode.CANCEL_REQUESTED), results)


def parent_ended(run: Execution, fact: facts.ParentEnded, now: EpochMs) -> Change:
    why = "The execution that started this one has ended"
    results = close_all(run.step_results, type(fact), now, why)
    return because(StatusReason(ReasonCode.PARENT_CANCELLED), results)


def failed(run: Execution, fact: facts.Failed | facts.Failing, now: EpochMs) -> Change:
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
    ended = because(reason, results, change.events)
    return Change({**ended.changes, "error": error}, ended.events, _about_failure(reason, error))


def failing(run: Execution, fact: facts.Failing, now: EpochMs) -> Change:
    """
    As `failed`, except that the verdict is kept for later. Its worker stops what still runs, as it
    does for a container that failed. EX-31, EX-32.
    """
    if run.failing is not None:
        raise EXECUTION.refusal(run.status, type(fact))
    ended = failed(run, fact, now)
    code = ReasonCode.TIMEOUT if fact.timed_out else ReasonCode.STEP_FAILED
    error = str(ended.changes["error"])
    failing = PendingFailure(error, StatusReason(code, fact.step_name))
    events = (*ended.events, (EventKind.FAILURE_STARTED, ended.status_data))
    return Change({"step_results": ended.results, "failing": failing}, events)


def failing_after_grace(run: Execution, fact: facts.FailingAfterGrace, now: EpochMs) -> Change:
    """What was interrupted stays so; a worker takes the execution up for its `onFailure` steps."""
    results = close_all(run.step_results, type(fact), now, INTERRUPTED_ERROR)
    reason = run.status_reason or StatusReason(ReasonCode.INTERRUPTED)
    failing = PendingFailure(INTERRUPTED_ERROR, reason)
    event = (EventKind.FAILURE_STARTED, _about_failure(reason, INTERRUPTED_ERROR))
    changes = {"step_results": results, "failing": failing, "due_at": now, "status_reason": None}
    return Change(changes, (event,), effects=(WakeRunner(),))


def failure_handled(run: Execution, fact: facts.FailureHandled, now: EpochMs) -> Change:
    return _as_it_was_going_to(run, fact, fact.failure, now)


def _as_it_was_going_to(
    run: Execution, fact: Fact, failure: PendingFailure, now: EpochMs
) -> Change:
    """It fails, whatever became of its `onFailure` steps. EX-31."""
    results = close_all(run.step_results, type(fact), now, "The execution failed")
    ended, error = because(failure.reason, results), failure.error
    changes = {**ended.changes, "error": error}
    return Change(changes, status_data=_about_failure(failure.reason, error))


def grace_over(run: Execution, fact: facts.GraceOver, now: EpochMs) -> Change:
    if run.failing is not None:
        return _as_it_was_going_to(run, fact, run.failing, now)
    results = close_all(run.step_results, type(fact), now, INTERRUPTED_ERROR)
    changes = {"error": INTERRUPTED_ERROR, "step_results": results}
    return Change(changes, status_data={"error": INTERRUPTED_ERROR})


def because(
    reason: StatusReason, results: Mapping[str, StepResult], events: NewEvents = ()
) -> Change:
    changes = {"step_results": results, "status_reason": reason}
    return Change(changes, events, _about_end(reason))


def _about_failure(reason: StatusReason, error: str) -> JsonObject:
    return {**(_about_end(reason) if reason.step_name else {}), "error": error}


def _about_end(reason: StatusReason) -> JsonObject:
    """What the event of an end says about its reason."""
    return {
        "reason": reason.code.value,
        **({"step": reason.step_name} if reason.step_name else {}),
        **({"approvalId": reason.approval_id} if reason.approval_id else {}),
    }
