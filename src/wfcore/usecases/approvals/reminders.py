"""
Reminders of open approvals: due rows of the store, each told once. AP-20.

Told means: in the execution's event log, from which the stream and the history are fed. The
approval counts what it has told in the same unit, so that of any number of sweepers, and over
any restart, one tells it.
"""

from attrs import evolve

from wfcore.model.approval import Approval
from wfcore.model.event import EventKind
from wfcore.model.execution import Execution
from wfcore.model.json import JsonObject
from wfcore.rules.approval.quorum import due_reminders
from wfcore.rules.execution.fold import announce
from wfcore.time import EpochMs
from wfcore.usecases.retry import Report, apart, at_once, retried
from wfcore.usecases.services import Services
from wfcore.usecases.stage import stage

BATCH = 100


async def remind_due(services: Services, report: Report = at_once) -> int:
    """Tell every reminder whose time has come; how many were told."""
    count = 0
    while True:
        async with services.store.view() as view:
            due = await view.approvals.reminders_due(services.clock.deadline_now(), BATCH)
        before = count
        for approval in due:
            with apart(report, "approvals", approval.id):
                count += await _remind(services, approval.id)
        if len(due) < BATCH or count == before:
            return count


@retried
async def _remind(services: Services, approval_id: str) -> int:
    now = services.clock.deadline_now()
    async with services.store.unit() as unit:
        approval = await unit.get(Approval, approval_id)
        due = due_reminders(approval, now) if approval is not None else ()
        run = await unit.get(Execution, approval.execution_id) if approval is not None else None
        if approval is None or run is None or not due:
            return 0
        unit.put(evolve(approval, reminded=approval.reminded + len(due)))
        said = [(EventKind.APPROVAL_REMINDER, _about(approval, at)) for at in due]
        await stage(unit, announce(run, said, services.clock.service_now()), now)
        await unit.commit()
    services.wakeup.events(run.id)
    return len(due)


def _about(approval: Approval, at: EpochMs) -> JsonObject:
    return {
        "step": approval.step_name,
        "approvalId": approval.id,
        "expiresAt": approval.expires_at,
        "before": approval.expires_at - at,
    }
