"""Where effects meet ports: those of the unit before the commit, the hints after it."""

from collections.abc import Iterable

from attrs import evolve

from wfcore.effects import (
    DeadlineSet,
    Effect,
    OpenApproval,
    Outcome,
    StartStep,
    StopSteps,
    WakeRunner,
    WithdrawApprovals,
)
from wfcore.instants import EpochMs
from wfcore.model.approval import ApprovalStatus
from wfcore.model.event import Event, EventKind
from wfcore.model.execution import Execution
from wfcore.ports.dispatch import Wakeup
from wfcore.ports.store import Unit
from wfcore.rules.approval import BY_END, Withdraw, decide
from wfcore.rules.execution import numbered


async def store_run(unit: Unit, outcome: Outcome[Execution], now: EpochMs) -> Execution:
    """
    Collect an execution's next record, its events, and what belongs to the same unit.

    Returns the record as it was put (withdrawn approvals add events to it).
    """
    run, events = outcome.record, list(outcome.events)
    for effect in outcome.effects:
        match effect:
            case OpenApproval(approval):
                unit.approvals.put(approval)
            case WithdrawApprovals():
                told = await _withdraw(unit, run, now)
                run = evolve(run, events=run.events + len(told))
                events += told
            case _:
                pass
    unit.executions.put(run)
    for event in events:
        unit.events.append(event)
    return run


async def _withdraw(unit: Unit, run: Execution, now: EpochMs) -> tuple[Event, ...]:
    """An ended execution asks nobody any more. AP-5."""
    if not any(result.approval_id for result in run.step_results.values()):
        return ()
    said = []
    for approval in await unit.approvals.of_execution(run.id):
        if approval.status is ApprovalStatus.PENDING:
            unit.approvals.put(decide(approval, Withdraw(), BY_END, now).record)
            about = {"step": approval.step_name, "approvalId": approval.id}
            said.append((EventKind.APPROVAL_CANCELLED, about))
    return numbered(run, now, tuple(said))


def hint(wakeup: Wakeup, execution_id: str, effects: Iterable[Effect]) -> tuple[StartStep, ...]:
    """Pass the hints on, after the commit. The steps to start are the caller's: returned."""
    wakeup.events(execution_id)
    begun: list[StartStep] = []
    for effect in effects:
        match effect:
            case StartStep():
                begun.append(effect)
            case WakeRunner():
                wakeup.runner()
            case StopSteps(id):
                wakeup.stop(id)
            case DeadlineSet():
                wakeup.timer()
            case _:
                pass
    return tuple(begun)
