"""Where effects meet ports: those of the unit before the commit, the hints after it."""

from collections.abc import Iterable, Sequence

from attrs import evolve

from wfcore.effects import (
    CallBack,
    DeadlineSet,
    Effect,
    OpenApproval,
    Outcome,
    SetTimers,
    StartStep,
    StopSteps,
    WakeRunner,
    WithdrawApprovals,
)
from wfcore.instants import EpochMs
from wfcore.model.approval import ApprovalStatus
from wfcore.model.execution import Execution
from wfcore.ports.dispatch import Wakeup
from wfcore.ports.store import Unit
from wfcore.rules.approval import BY_END, Withdraw, decide
from wfcore.rules.chain import keys_of, timers_after


async def collect(unit: Unit, outcome: Outcome[Execution], now: EpochMs) -> Outcome[Execution]:
    """
    Put an execution's next record, its events, and what belongs to the same unit.

    The outcome with the hints that follow from what was collected.
    """
    unit.executions.put(outcome.record)
    for event in outcome.events:
        unit.events.append(event)
    hints: list[Effect] = []
    for effect in outcome.effects:
        match effect:
            case OpenApproval(approval):
                unit.approvals.put(approval)
            case CallBack(callback):
                unit.callbacks.put(callback)
            case WithdrawApprovals():
                await _withdraw(unit, outcome.record, now)
            case SetTimers():
                hints += await _set_timers(unit, outcome.record)
            case _:
                pass
    return evolve(outcome, effects=(*outcome.effects, *hints)) if hints else outcome


async def _set_timers(unit: Unit, run: Execution) -> Sequence[Effect]:
    """Completion and timers are one unit: no completion can be lost, none counts twice. CH-1."""
    timers = timers_after(run, await unit.triggers.watching(keys_of(run)))
    for timer in timers:
        unit.timers.put(timer)
    return (DeadlineSet(),) if timers else ()


async def _withdraw(unit: Unit, run: Execution, now: EpochMs) -> None:
    """An ended execution asks nobody any more. AP-5."""
    if not any(result.approval_id for result in run.step_results.values()):
        return
    for approval in await unit.approvals.of_execution(run.id):
        if approval.status is ApprovalStatus.PENDING:
            unit.approvals.put(decide(approval, Withdraw(), BY_END, now).record)


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
