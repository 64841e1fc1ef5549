"""
The times of approvals: reminders before the expiry, and rejection at the expiry. AP-4, AP-20.

From `expires_at` on an approval counts as rejected, whether or not a timer has run. So every reader
settles an expired approval before showing it; the sweep settles approvals without a reader.

A reminder is an event in the execution's log, which feeds the stream and the history. The approval
counts its reminders in the same unit of work. So exactly one sweeper sends each reminder, whatever
the number of sweepers and restarts.
"""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress

from attrs import evolve

from wfcore.errors import StoreUnavailable
from wfcore.model.approval import Approval, ApprovalStatus
from wfcore.model.event import EventKind
from wfcore.model.execution import Execution
from wfcore.model.json import JsonObject
from wfcore.ports.store import View
from wfcore.rules.approval.machine import (
    BY_TIMEOUT,
    Escalate,
    Expire,
    decide,
    due_reminders,
    expired,
)
from wfcore.rules.execution.fold import advance, announce
from wfcore.rules.execution.machine import Rejected
from wfcore.time import EpochMs
from wfcore.usecases.audit.auditing import Origin, act_record, audit_of, note, note_decision
from wfcore.usecases.notices.telling import tell_asked, tell_decision, tell_reminders
from wfcore.usecases.reading import execution_of
from wfcore.usecases.services import Services
from wfcore.usecases.unit_of_work import (
    Report,
    apart,
    at_once,
    notify,
    retried,
    stage,
    stale_if_illegal,
)

BATCH = 100
BY_ITSELF = Origin(path="timeout")
"""The origin of an expiry in the audit log."""


async def expire_all_due(services: Services) -> int:
    """
    Expire every due approval before a reader lists approvals; returns the number of expired
    approvals.

    Readers can still read if the store cannot write now or if an approval cannot be settled; the
    sweep reports such an approval.
    """
    with suppress(StoreUnavailable):
        return await expire_due(services, lambda failed: None)
    return 0


async def expire_due(services: Services, report: Report = at_once) -> int:
    """Reject every approval whose time is over; returns the number of rejected approvals."""
    return await _each(services, lambda view, now: view.approvals.due(now, BATCH), expire, report)


async def remind_due(services: Services, report: Report = at_once) -> int:
    """Send every reminder whose time has come; returns the number of events."""
    find = lambda view, now: view.approvals.reminders_due(now, BATCH)  # noqa: E731
    return await _each(services, find, _remind, report)


async def _each(
    services: Services,
    find: Callable[[View, EpochMs], Awaitable[Sequence[Approval]]],
    settle: Callable[[Services, str], Awaitable[int]],
    report: Report,
) -> int:
    """
    Settle due approvals in batches, until no approval is due or no approval of a batch can be
    settled. Returns the number of settled approvals.
    """
    count = 0
    while True:
        async with services.store.view() as view:
            due = await find(view, services.clock.deadline_now())
        before = count
        for approval in due:
            with apart(report, "approvals", approval.id):
                count += await settle(services, approval.id)
        if len(due) < BATCH or count == before:
            return count


async def expire_due_of(services: Services, run: Execution) -> bool:
    """Expire the due approvals of one execution; returns whether any approval expired."""
    async with services.store.view() as view:
        approvals = await view.approvals.of_execution(run.id)
    return any([await expire_if_due(services, approval) for approval in approvals])


async def expire_if_due(services: Services, approval: Approval) -> bool:
    """Expire this approval if it is due; returns whether the approval expired."""
    if not expired(approval, services.clock.deadline_now()):
        return False
    with suppress(StoreUnavailable):
        return await expire(services, approval.id)
    return False


@retried
async def expire(services: Services, approval_id: str) -> bool:
    """Reject one approval because its time is over. Returns False if somebody decided in time."""
    now = services.clock.deadline_now()
    async with services.store.unit() as unit:
        approval = await unit.get(Approval, approval_id)
        if approval is None or not expired(approval, now):
            return False
        run = await execution_of(unit, approval.execution_id)
        if run is None:
            return False
        over = decide(approval, Expire(), BY_TIMEOUT, now).record
        unit.put(over)
        rejected = Rejected(approval.step_name, approval.id, timed_out=True)
        work = services.store.now()
        with stale_if_illegal("execution", run.id):
            outcome = advance(run, rejected, work)
        outcome = await stage(unit, outcome, work)
        written = await tell_decision(services, unit, approval, over)
        audit = audit_of("expire", approval, over)
        note_decision(services, unit, None, over, audit, run, None, BY_ITSELF)
        await unit.commit()
    notify(services.wakeup, run.id, outcome.effects)
    if written:
        services.wakeup.timer()
    return True


@retried
async def _remind(services: Services, approval_id: str) -> int:
    now = services.clock.deadline_now()
    async with services.store.unit() as unit:
        approval = await unit.get(Approval, approval_id)
        due = due_reminders(approval, now) if approval is not None else ()
        run = await execution_of(unit, approval.execution_id) if approval is not None else None
        if approval is None or run is None:
            return 0
        events = [(EventKind.APPROVAL_REMINDER, _about(approval, at)) for at in due]
        reminded = evolve(approval, reminded=approval.reminded + len(due))
        if _is_late(approval, now):
            reminded = decide(reminded, Escalate(), BY_TIMEOUT, now).record
            about = _asked_too(approval)
            events.append((EventKind.APPROVAL_ESCALATED, about))
            told = "approval.escalate", None, approval.id, BY_ITSELF, {**about, "comment": None}
            note(services, unit, *told, execution_id=run.id, record=act_record(reminded))
        if not events:
            return 0
        unit.put(reminded)
        work = services.store.now()
        await stage(unit, announce(run, events, work), work)
        written = await tell_asked(services, unit, reminded, approval)
        if due:
            written |= await tell_reminders(services, unit, reminded, due)
        await unit.commit()
    services.wakeup.events(run.id)
    if written:
        services.wakeup.timer()
    return len(events)


def _is_late(approval: Approval, now: EpochMs) -> bool:
    """Whether the approval is due for escalation. AP-37."""
    is_open = approval.status is ApprovalStatus.PENDING and not expired(approval, now)
    return is_open and approval.escalate_at is not None and approval.escalate_at <= now


def _asked_too(approval: Approval) -> JsonObject:
    to = list(approval.escalate_to)
    return {"step": approval.step_name, "approvalId": approval.id, "to": to}


def _about(approval: Approval, at: EpochMs) -> JsonObject:
    return {
        "step": approval.step_name,
        "approvalId": approval.id,
        "expiresAt": approval.expires_at,
        "before": approval.expires_at - at,
    }
