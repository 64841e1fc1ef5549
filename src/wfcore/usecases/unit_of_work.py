"""
The frame of every use case around its rule: load, stage, commit, notify, and retry after a lost
race.

A use case opens a unit of work and loads records with the access rules applied: a record that the
caller may not see is `NotFound` (`workflow_for`, `execution_for`, `approval_for`). The use case
calls a rule, which returns an `Outcome`: the next record, its events, and effects.

`stage` puts the record, its events and every IN UNIT effect into the unit. One outcome may lead to
other outcomes (an end cancels children and reports to the parent), so staging is recursive; all
outcomes are one commit. `notify` sends the HINT effects after that commit. Hints may be lost: each
announces a due row of the store.

`retried` repeats the whole use case if the commit loses a race (`Stale`). So an action that must
not happen twice comes after the commit.
"""

from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import wraps
from typing import ParamSpec, TypeVar

from attrs import define, evolve, frozen

from wfcore.effects import (
    CallBack,
    CancelChildren,
    DeadlineSet,
    Effect,
    LogGrew,
    OpenApproval,
    Outcome,
    Reload,
    SetTimers,
    StartStep,
    StopSteps,
    TellParent,
    TellTrigger,
    WakeRunner,
    WithdrawApprovals,
)
from wfcore.errors import (
    IllegalMove,
    NotFound,
    NotRead,
    Stale,
    StoreUnavailable,
)
from wfcore.model.access import OPERATOR, Caller, Permission, Principal, Share, Unrestricted
from wfcore.model.approval import Approval, ApprovalStatus
from wfcore.model.execution import Execution
from wfcore.model.trigger import Trigger
from wfcore.model.workflow import Definition, DefinitionSnapshot, Workflow
from wfcore.ports.hints import Wakeup
from wfcore.ports.store import Unit, View
from wfcore.rules.approval.machine import BY_END, Withdraw, decide
from wfcore.rules.auth.access import (
    require_links_open,
    require_permission,
    sees_approval,
    sees_execution,
)
from wfcore.rules.execution.children import child_end, waits_for
from wfcore.rules.execution.fold import advance
from wfcore.rules.execution.machine import EXECUTION, ParentEnded
from wfcore.rules.triggers.chain import keys_of, timers_after
from wfcore.rules.triggers.trigger import ended
from wfcore.time import EpochMs
from wfcore.usecases.reading import Wanted, execution_of, remembered, want


async def workflow_for(
    view: View | Unit, who: Principal | Unrestricted, workflow_id: str, wanted: Permission
) -> Workflow:
    """
    The workflow *workflow_id*, if *who* has the permission *wanted*. Raises `NotFound`,
    `Forbidden`.
    """
    workflow = await view.get(Workflow, workflow_id)
    if who is OPERATOR:
        if workflow is None:
            raise NotFound("Workflow")
        return workflow
    share = None
    if workflow is not None and workflow.owner_id != who.account.id:
        share = await view.get(Share, workflow_id, who.account.id)
    return require_permission(workflow, who.account.id, share, wanted)


async def execution_for(
    view: View | Unit, who: Caller | Unrestricted, execution_id: str, *, whole: bool = False
) -> Execution:
    """
    The execution. Large outputs may be left out unless *whole*. Raises `NotFound`, also for every
    guest: a guest's identity owns nothing. PL-2.
    """
    if whole:
        run = await view.get(Execution, execution_id)
    else:
        run = await execution_of(view, execution_id)
    if run is None or not (who is OPERATOR or sees_execution(run, who.identity)):
        raise NotFound("Execution")
    return run


async def approval_for(
    view: View | Unit, who: Caller | Unrestricted, approval_id: str
) -> tuple[Approval, Share | None]:
    """
    The approval, and the caller's share on its workflow.

    Raises `NotFound`; `SignInFirst` for a guest if the step requires sign-in.
    """
    approval = await view.get(Approval, approval_id)
    if approval is None:
        raise NotFound("Approval")
    if who is OPERATOR:
        return approval, None
    share = None
    if who.account_id is not None:
        share = await view.get(Share, approval.workflow_id, who.account_id)
    if not sees_approval(approval, who, share):
        raise NotFound("Approval")
    require_links_open(approval, who)
    return approval, share


async def definition_of(view: View | Unit, workflow_id: str, revision: int) -> Definition:
    """The definition of that revision. Snapshots are never deleted."""
    snapshot = await view.get(DefinitionSnapshot, workflow_id, revision)
    if snapshot is None:
        raise NotFound("Definition")
    return snapshot.definition


async def stage(unit: Unit, outcome: Outcome[Execution], now: EpochMs) -> Outcome[Execution]:
    """
    Put an execution's next record, its events, and every effect in the same unit: also effects on
    its parent and its children. FL-6. *now*: the store's time, from which the due times of other
    records follow.

    Returns the outcome with the resulting hints.
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
            case TellTrigger(trigger_id):
                await _tell_trigger(unit, trigger_id, outcome.record)
            case TellParent(parent_id):
                hints += await _tell_parent(unit, parent_id, outcome.record, now)
            case _:
                pass
    return evolve(outcome, effects=(*outcome.effects, *hints)) if hints else outcome


async def _set_timers(unit: Unit, run: Execution) -> Sequence[Effect]:
    """Completion and timers are one unit: no completion is lost or counted twice. CH-1."""
    timers = timers_after(run, await unit.triggers.watching(keys_of(run)))
    for timer in timers:
        unit.put(timer)
    return (DeadlineSet(),) if timers else ()


async def _tell_trigger(unit: Unit, trigger_id: str, run: Execution) -> None:
    """Store the end of the execution with its trigger, unless the trigger is gone. SH-10."""
    trigger = await unit.get(Trigger, trigger_id)
    if trigger is not None:
        unit.put(ended(trigger, run))


async def _withdraw(unit: Unit, ids: Iterable[str], now: EpochMs) -> None:
    """Cancel the open approvals of an ended execution or step. AP-5."""
    for id in ids:
        approval = await unit.get(Approval, id)
        if approval is not None and approval.status is ApprovalStatus.PENDING:
            unit.put(decide(approval, Withdraw(), BY_END, now).record)


async def _cancel_children(unit: Unit, ids: Iterable[str], now: EpochMs) -> Sequence[Effect]:
    """End the children, for which no step waits any more, and every execution below them. FL-6."""
    hints: list[Effect] = []
    for id in ids:
        child = await execution_of(unit, id)
        if child is not None and EXECUTION.allows(child.status, ParentEnded):
            ended = await stage(unit, advance(child, ParentEnded(), now), now)
            hints += (LogGrew(id), *ended.effects)
    return hints


async def _tell_parent(
    unit: Unit, parent_id: str, child: Execution, now: EpochMs
) -> Sequence[Effect]:
    """Report the end of a child, in the same unit, to the step that started it. FL-6."""
    parent = await execution_of(unit, parent_id)
    if parent is None or not waits_for(parent, child.id, child.parent_step):
        return ()
    told = await stage(unit, advance(parent, child_end(child), now), now)
    return (LogGrew(parent_id), *told.effects)


def notify(wakeup: Wakeup, execution_id: str, effects: Iterable[Effect]) -> tuple[StartStep, ...]:
    """Send the hints, after the commit. Returns the steps to start; the caller runs these steps."""
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
            case Reload(id):
                wakeup.reload(id)
            case LogGrew(id):
                wakeup.events(id)
            case DeadlineSet():
                wakeup.timer()
            case _:
                pass
    return tuple(begun)


P = ParamSpec("P")
R = TypeVar("R")
MOST_TRIES = 20


@define
class Collided(StoreUnavailable):
    """A unit of work that lost every race."""


def retried(unit_of_work: Callable[P, Awaitable[R]]) -> Callable[P, Awaitable[R]]:
    """
    Repeat a whole unit of work on `Stale`: the unit reads and decides again. On `NotRead` the unit
    also reads the missing values.

    Every race has a winner, so twenty lost races mean that the store is in trouble:
    `StoreUnavailable`.
    """

    @wraps(unit_of_work)
    async def again(*args: P.args, **kwargs: P.kwargs) -> R:
        wanted: Wanted = {}
        with remembered(wanted):
            tries = 0
            while tries < MOST_TRIES:
                try:
                    return await unit_of_work(*args, **kwargs)
                except Stale:
                    tries += 1
                except NotRead as missed:
                    tries += wanted.get(missed.execution_id, ()) is None
                    want(wanted, missed)
        raise Collided(f"{unit_of_work.__name__}: too many collisions")

    return again


@frozen
class DutyFailure:
    """
    A failed duty of a sweep, or one failed record of a duty. The other duties and records continue.
    """

    kind: str
    id: str
    error: Exception


Report = Callable[[DutyFailure], None]


def at_once(failed: DutyFailure) -> None:
    """A `Report` that raises every failure."""
    raise failed.error


@contextmanager
def apart(report: Report, kind: str, id: str) -> Iterator[None]:
    """
    Report a failure inside instead of raising the failure, so that the caller continues with other
    records. `StoreUnavailable` is raised.
    """
    try:
        yield
    except Collided as error:
        report(DutyFailure(kind, id, error))
    except StoreUnavailable:
        raise
    except Exception as error:
        report(DutyFailure(kind, id, error))


@contextmanager
def stale_if_illegal(kind: str, id: str) -> Iterator[None]:
    """
    For changes that depend on two records. The two records are read one after the other, so a
    change that the second record does not allow means that both records were changed in between:
    `Stale`, read again.
    """
    try:
        yield
    except IllegalMove as refusal:
        raise Stale(kind, id) from refusal
