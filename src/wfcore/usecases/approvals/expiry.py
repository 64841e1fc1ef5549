"""
Expired approvals are settled before anybody looks at them: from `expires_at` on an approval
counts as rejected, whether or not a timer has run. AP-4.
"""

from contextlib import suppress

from wfcore.errors import StoreUnavailable
from wfcore.model.approval import Approval
from wfcore.model.execution import Execution
from wfcore.rules.approval.machine import BY_TIMEOUT, Expire, decide, expired
from wfcore.rules.execution.fold import advance
from wfcore.rules.execution.machine import Rejected
from wfcore.usecases.audit.auditing import Origin, decided, note_decision
from wfcore.usecases.retry import Report, apart, at_once, retried, stale_if_illegal
from wfcore.usecases.services import Services
from wfcore.usecases.stage import notify, stage

BATCH = 100
BY_ITSELF = Origin(path="timeout")
"""The origin in the audit log."""


async def expire_all_due(services: Services) -> int:
    """
    Settle every approval that is due; how many were. For readers: neither a store that cannot
    write now nor an approval that cannot be settled, which the sweep tells, keeps them from
    reading.
    """
    with suppress(StoreUnavailable):
        return await expire_due(services, lambda failed: None)
    return 0


async def expire_due(services: Services, report: Report = at_once) -> int:
    """Reject every approval whose time is over; how many were."""
    count = 0
    while True:
        async with services.store.view() as view:
            due = await view.approvals.due(services.clock.deadline_now(), BATCH)
        before = count
        for approval in due:
            with apart(report, "approvals", approval.id):
                count += await expire(services, approval.id)
        if len(due) < BATCH or count == before:
            return count


async def expire_due_of(services: Services, run: Execution) -> bool:
    """Settle the approvals of one execution; whether any was due."""
    async with services.store.view() as view:
        approvals = await view.approvals.of_execution(run.id)
    return any([await expire_if_due(services, approval) for approval in approvals])


async def expire_if_due(services: Services, approval: Approval) -> bool:
    """Settle this approval if it is due; whether it was."""
    if not expired(approval, services.clock.deadline_now()):
        return False
    with suppress(StoreUnavailable):
        return await expire(services, approval.id)
    return False


@retried
async def expire(services: Services, approval_id: str) -> bool:
    """Reject one approval because nobody decided in time. False: somebody did after all."""
    now = services.clock.deadline_now()
    async with services.store.unit() as unit:
        approval = await unit.get(Approval, approval_id)
        if approval is None or not expired(approval, now):
            return False
        run = await unit.get(Execution, approval.execution_id)
        if run is None:
            return False
        over = decide(approval, Expire(), BY_TIMEOUT, now).record
        unit.put(over)
        rejected = Rejected(approval.step_name, approval.id, timed_out=True)
        with stale_if_illegal("execution", run.id):
            outcome = advance(run, rejected, services.clock.service_now())
        outcome = await stage(unit, outcome, now)
        made = decided("expire", approval, over)
        note_decision(services, unit, None, made, run, None, BY_ITSELF)
        await unit.commit()
    notify(services.wakeup, run.id, outcome.effects)
    return True
