"""Delegation: an approver lets another person decide in the approver's place, for a time. AP-36."""

from wfcore.errors import AlreadyDecided, Forbidden, InvalidInput
from wfcore.model.access import Caller
from wfcore.model.approval import Approval, DecisionSource
from wfcore.model.event import EventKind
from wfcore.model.json import JsonObject
from wfcore.ports.store import Unit
from wfcore.rules.approval.machine import Decider, Delegate, decide
from wfcore.rules.approval.people import People
from wfcore.rules.auth.access import is_approver
from wfcore.rules.execution.fold import announce
from wfcore.rules.mailbox import same_name
from wfcore.time import EpochMs
from wfcore.usecases.audit.auditing import UNKNOWN, Origin, act_record, note
from wfcore.usecases.notices.telling import tell_asked
from wfcore.usecases.people import met
from wfcore.usecases.reading import execution_of
from wfcore.usecases.services import Services
from wfcore.usecases.unit_of_work import approval_for, retried, stage


@retried
async def delegate_approval(
    services: Services,
    who: Caller,
    approval_id: str,
    to: str,
    until: EpochMs | None,
    source: DecisionSource,
    origin: Origin = UNKNOWN,
) -> Approval:
    """
    The approval with the delegation. The history, the event log and the audit log record the
    delegation. *until* None: until the approval expires.

    Raises `NotFound`, `Forbidden` (*who* is not an approver in their own right, or the step allows
    no delegation), `AlreadyDecided`, `InvalidInput`.
    """
    now = services.clock.deadline_now()
    async with services.store.unit() as unit:
        approval, share = await approval_for(unit, who, approval_id)
        if not is_approver(approval, who, share):
            raise Forbidden("Only an approver may let somebody else decide")
        decision = Delegate(to, approval.expires_at if until is None else until)
        decider = Decider(who.email, source, account=who.account_id or who.identity)
        before, approval = approval, decide(approval, decision, decider, now).record
        await _require_somebody_else(unit, who, to)
        run = await execution_of(unit, approval.execution_id)
        if run is None:
            raise AlreadyDecided("The execution of this approval is gone", approval.id)
        unit.put(approval)
        about: JsonObject = {
            "step": approval.step_name,
            "approvalId": approval.id,
            "by": who.email,
            "to": to,
        }
        work = services.store.now()
        said = announce(run, [(EventKind.APPROVAL_DELEGATED, about)], work)
        await stage(unit, said, work)
        written = await tell_asked(services, unit, approval, before)
        comment = approval.history[-1].comment
        details: JsonObject = {**about, "until": decision.until, "comment": comment}
        told = "approval.delegate", who, approval.id, origin, details
        note(services, unit, *told, execution_id=run.id, record=act_record(approval))
        await unit.commit()
    services.wakeup.events(run.id)
    if written:
        services.wakeup.timer()
    return approval


async def _require_somebody_else(unit: Unit, who: Caller, to: str) -> None:
    """Raises `InvalidInput` for the id of no account, and for another name of *who*. AP-36."""
    name = same_name(to)
    account = (await met(unit, People(), {name})).accounts[name]
    if "@" not in name and account is None:
        raise InvalidInput("to", f"there is no account {to!r}")
    if account is not None and account.id == who.account_id:
        raise InvalidInput("to", "must be the email or account id of somebody else")
