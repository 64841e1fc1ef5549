"""Where effects meet ports: those of the unit before the commit, the hints after it."""

from collections.abc import Iterable, Sequence

from attrs import evolve

from wfcore.effects import (
    CallBack,
    CancelChildren,
    DeadlineSet,
    Effect,
    LogGrew,
    LookAgain,
    OpenApproval,
    Outcome,
    SetTimers,
    StartStep,
    StopSteps,
    TellParent,
    WakeRunner,
    WithdrawApprovals,
)
from wfcore.model.approval import Approval, ApprovalStatus
from wfcore.model.execution import Execution
from wfcore.ports.dispatch import Wakeup
from wfcore.ports.store import Unit
from wfcore.rules.approval.machine import BY_END, Withdraw, decide
from wfcore.rules.execution.children import child_end, waits_for
from wfcore.rules.execution.fold import advance
from wfcore.rules.execution.machine import EXECUTION, ParentEnded
from wfcore.rules.triggers.chain import keys_of, timers_after
from wfcore.time import EpochMs


async def stage(unit: Unit, outcome: Outcome[Execution], now: EpochMs) -> Outcome[Execution]:
    """
    Put an execution's next record, its events, and what belongs to the same unit: also what it
    means for the execution that started it, and for those that it started. FL-6.

    The outcome with the hints that follow from what was collected.
    """
    unit.put(outcome.record)
    for event in outcome.events:
        unit.append(event)
    hints: list[Effect] = []
    for effect in outcome.effects:
        match effect:
            case OpenApproval(approval):
                unit.put(approval)
            case CallBack(callback):
                unit.put(callback)
            case WithdrawApprovals(ids):
                await _withdraw(unit, ids, now)
            case SetTimers():
                hints += await _set_timers(unit, outcome.record)
            case CancelChildren(ids):
                hints += await _cancel_children(unit, ids, now)
            case TellParent(parent_id):
                hints += await _tell_parent(unit, parent_id, outcome.record, now)
            case _:
                pass
    return evolve(outcome, effects=(*outcome.effects, *hints)) if hints else outcome


async def _set_timers(unit: Unit, run: Execution) -> Sequence[Effect]:
    """Completion and timers are one unit: no completion can be lost, none counts twice. CH-1."""
    timers = timers_after(run, await unit.triggers.watching(keys_of(run)))
    for timer in timers:
        unit.put(timer)
    return (DeadlineSet(),) if timers else ()


async def _withdraw(unit: Unit, ids: Iterable[str], now: EpochMs) -> None:
    """An ended execution, or an ended step, asks nobody any more. AP-5."""
    for id in ids:
        approval = await unit.get(Approval, id)
        if approval is not None and approval.status is ApprovalStatus.PENDING:
            unit.put(decide(approval, Withdraw(), BY_END, now).record)


async def _cancel_children(unit: Unit, ids: Iterable[str], now: EpochMs) -> Sequence[Effect]:
    """Nobody waits for them any more: they end, and what they have started with them. FL-6."""
    hints: list[Effect] = []
    for id in ids:
        child = await unit.get(Execution, id)
        if child is not None and EXECUTION.allows(child.status, ParentEnded):
            ended = await stage(unit, advance(child, ParentEnded(), now), now)
            hints += (LogGrew(id), *ended.effects)
    return hints


async def _tell_parent(
    unit: Unit, parent_id: str, child: Execution, now: EpochMs
) -> Sequence[Effect]:
    """The step that started an execution learns of its end in the same unit. FL-6."""
    parent = await unit.get(Execution, parent_id)
    if parent is None or not waits_for(parent, child.id, child.parent_step):
        return ()
    told = await stage(unit, advance(parent, child_end(child), now), now)
    return (LogGrew(parent_id), *told.effects)


def notify(wakeup: Wakeup, execution_id: str, effects: Iterable[Effect]) -> tuple[StartStep, ...]:
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
            case LookAgain(id):
                wakeup.look(id)
            case LogGrew(id):
                wakeup.events(id)
            case DeadlineSet():
                wakeup.timer()
            case _:
                pass
    return tuple(begun)
