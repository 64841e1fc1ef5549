"""
How decisions change the steps that wait for them: a part of `rules.execution.fold`.

An approval belongs to the step that opened it, except an approval for more budget: that one belongs
to the execution, and every step that reaches the exceeded budget waits for it. So a decision is
folded into all steps that wait for the approval, whichever step opened it. BU-4.
"""

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from wfcore.errors import IllegalMove
from wfcore.model.event import EventKind
from wfcore.model.evolving import evolve
from wfcore.model.execution import Execution, StepResult, StepStatus
from wfcore.model.json import JsonObject
from wfcore.rules.execution import machine as facts
from wfcore.rules.execution.fold_steps import Change, NewEvents, close_all, completed, due, known
from wfcore.rules.execution.open_approval import open_questions
from wfcore.rules.execution.step_machine import STEP, state_of
from wfcore.rules.execution.usage import total
from wfcore.time import EpochMs

Results = Mapping[str, StepResult]
Decided: TypeAlias = facts.Approved | facts.BudgetExtended | facts.Rejected


def reject_steps(run: Execution, fact: facts.Rejected, now: EpochMs) -> Change:
    """The steps that wait for the approval become REJECTED."""
    why = "Nobody decided in time" if fact.timed_out else "Rejected"
    rejected = close_all(_waiting(run, fact), type(fact), now, why)
    events = _about(fact, EventKind.APPROVAL_REJECTED)
    return Change({"step_results": {**run.step_results, **rejected}}, events)


def _budget_reached(run: Execution, fact: facts.BudgetReached, now: EpochMs) -> Change:
    """
    The step waits for a decision on the budget. Earlier attempts stay on record, and the next one
    has not begun. BU-2. An approval that other steps already wait for is not opened again. BU-4.
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
    return _going_on(run, {fact.step_name: change.result}, now, events)


def _budget_extended(run: Execution, fact: facts.BudgetExtended, now: EpochMs) -> Change:
    """
    The budget is granted anew, and the next attempt of every step that waits for it is due. BU-2,
    BU-4.
    """
    next_attempts = {
        name: evolve(one, status=StepStatus.RUNNING, error=None, retry_at=now, approval_id=None)
        for name, one in _waiting(run, fact).items()
    }
    granted = total(run.step_results.values())
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
    for name in found or (fact.step_name,):
        known(run, name, fact)
    if not found:
        raise _refusal(run, fact)
    return found


def _refusal(run: Execution, fact: Decided) -> IllegalMove:
    state = state_of(run.step_results.get(fact.step_name))
    return STEP.refusal(state, type(fact), f"step '{fact.step_name}'")


def _about(fact: Decided | facts.BudgetReached, kind: EventKind) -> NewEvents:
    data: JsonObject = {"step": fact.step_name, "approvalId": fact.approval_id}
    return ((kind, data),)


APPROVAL_FOLDS: Mapping[type, Callable[[Execution, Any, EpochMs], Change]] = {
    facts.BudgetReached: _budget_reached,
    facts.Approved: _approved,
    facts.BudgetExtended: _budget_extended,
}
"""Facts about approvals after which the execution goes on."""
