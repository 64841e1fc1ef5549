"""
Decisions on approvals. After a decision the execution continues, stops, or waits for further
approvers. AP-2.
"""

from contextlib import suppress
from functools import partial

from attrs import evolve, frozen

from wfcore.effects import Outcome
from wfcore.errors import (
    AlreadyDecided,
    Conflict,
    Forbidden,
    InvalidInput,
    NotConfirmed,
    NotFound,
    StoreUnavailable,
)
from wfcore.model.access import OPERATOR, Caller, Share, Unrestricted
from wfcore.model.approval import (
    Approval,
    ApprovalStatus,
    DecisionSource,
    Delegation,
    Purpose,
)
from wfcore.model.event import EventKind
from wfcore.model.execution import Execution
from wfcore.model.json import JsonObject
from wfcore.model.review import Assurance
from wfcore.ports.store import Unit, View
from wfcore.rules.approval.agreement import require_seen
from wfcore.rules.approval.machine import (
    Approve,
    Choice,
    Decider,
    decide,
    expired,
    step_output,
)
from wfcore.rules.approval.receipts import (
    receipt_of,
    require_confirmable,
    require_early,
    statement_of,
    with_receipt,
)
from wfcore.rules.auth.access import (
    is_approver,
    require_other_eyes,
    stands_for,
)
from wfcore.rules.auth.api_key import without_keys
from wfcore.rules.execution.fold import advance, announce
from wfcore.rules.execution.machine import Approved, BudgetExtended, Rejected, Revised
from wfcore.rules.execution.redrive import put_aside
from wfcore.rules.masking import NO_SECRETS, mask_text, secret_values
from wfcore.rules.receipt import statement_digest
from wfcore.time import EpochMs
from wfcore.usecases.accounts.passkeys import Confirmed
from wfcore.usecases.approvals.attaching import attach_receipts
from wfcore.usecases.approvals.expiry import expire
from wfcore.usecases.artifacts import created
from wfcore.usecases.audit.auditing import (
    UNKNOWN,
    DecisionAudit,
    Origin,
    audit_of,
    note_decision,
    note_refusal,
)
from wfcore.usecases.notices.telling import tell_decision
from wfcore.usecases.reading import execution_of
from wfcore.usecases.services import Services
from wfcore.usecases.unit_of_work import (
    approval_for,
    definition_of,
    notify,
    retried,
    stage,
    stale_if_illegal,
)


def require_may(
    approval: Approval, who: Caller, share: Share | None, decision: Choice, now: EpochMs
) -> Delegation | None:
    """
    Returns the delegation under which *who* decides, or None if *who* decides as an approver.
    Raises `Forbidden` for a decision that *who* may not make. AP-10, AP-18, AP-36.
    """
    given_for = None
    if not is_approver(approval, who, share):
        given_for = stands_for(approval, who, now)
        if given_for is None:
            raise Forbidden("You are not an approver of this approval, or not now")
    if isinstance(decision, Approve):
        require_other_eyes(approval, who, given_for)
        require_confirmable(approval, who, f"/approvals/{approval.id}")
    return given_for


@frozen
class Decide:
    """
    A decision from any channel. `items_hash`: the hash of the rows that the reviewer saw. `alone`:
    the operator's approval suffices, however many approvals are required. `confirmed`: the
    confirmation by a passkey, which a signed release needs. SR-1.
    """

    approval_id: str
    decision: Choice
    source: DecisionSource
    comment: str | None = None
    items_hash: str | None = None
    alone: bool = False
    confirmed: Confirmed | None = None

    @property
    def verb(self) -> str:
        """The last part of the audit event: `approve`, `reject`, …"""
        return type(self.decision).__name__.lower()


async def decide_approval(
    services: Services, who: Caller | Unrestricted, decision: Decide, origin: Origin = UNKNOWN
) -> Approval:
    """
    Record one decision. The execution continues or stops, or waits for further approvers. AP-2,
    AP-3, AP-6, AP-10, AP-15.

    Of any number of racing decisions and an expiry, exactly one wins.

    Raises `NotFound`, `Forbidden` (visible, but the caller is not an approver or started the
    execution), `AlreadyDecided`, `ItemsChanged` (not the rows that the reviewer saw),
    `InvalidInput` (edited rows; nothing is decided). The audit log records every refusal except
    `InvalidInput`. AP-27.
    """
    try:
        return await _decide(services, who, decision, origin)
    except (NotFound, Forbidden, Conflict) as refused:
        if isinstance(refused, AlreadyDecided):  # perhaps by its timeout, which is recorded now
            with suppress(StoreUnavailable):
                await expire(services, decision.approval_id)
        event = f"approval.{decision.verb}"
        await note_refusal(services, event, who, decision.approval_id, refused, origin)
        raise


@retried
async def _decide(
    services: Services, who: Caller | Unrestricted, decision: Decide, origin: Origin
) -> Approval:
    now = services.clock.deadline_now()
    async with services.store.unit() as unit:
        before, decider = await _admitted(services, unit, who, decision, now)
        weighing = partial(_weighed, before, decision, decider, now)
        many = _has_many(before, decision)
        approval, audit = await services.offload(weighing) if many else weighing()
        run = await execution_of(unit, approval.execution_id)
        if run is None:
            raise AlreadyDecided("The execution of this approval is gone", approval.id)
        work = services.store.now()
        files = await attach_receipts(services, unit, run, approval, work)
        told = announce(run, [created(approval.step_name, file) for file in files], work)
        with stale_if_illegal("execution", run.id):
            outcome = await _continued(unit, told.record, approval, work)
        outcome = evolve(outcome, events=(*told.events, *outcome.events))
        unit.put(approval)
        outcome = await stage(unit, outcome, work)
        written = await tell_decision(services, unit, before, approval)
        note_decision(services, unit, who, approval, audit, run, decision.comment, origin)
        await unit.commit()
    notify(services.wakeup, run.id, outcome.effects)
    if written:
        services.wakeup.timer()
    return approval


async def _admitted(
    services: Services, unit: View, who: Caller | Unrestricted, decision: Decide, now: EpochMs
) -> tuple[Approval, Decider]:
    """The approval before the decision, and the decider, who may make the decision."""
    before, share = await approval_for(unit, who, decision.approval_id)
    decider = _decider(who, decision)
    if isinstance(decision.decision, Approve):
        page = f"{services.policy.public_url or ''}/approvals/{before.id}"
        require_confirmable(before, who, page)
    if who is not OPERATOR:
        given_for = require_may(before, who, share, decision.decision, now)
        decider = evolve(decider, given_for=given_for)
    if before.assurance is Assurance.PASSKEY and decision.comment is not None:
        run = await execution_of(unit, before.execution_id)
        require_no_secret(decision.comment, run)
    return before, decider


def require_no_secret(comment: str, run: Execution | None) -> None:
    """
    Raises `InvalidInput` for a signed comment with a secret of the execution or an API key: what is
    signed cannot be masked later. SR-1, SC-1.
    """
    secrets = secret_values(run) if run is not None else NO_SECRETS
    if without_keys(mask_text(comment, secrets)) != comment:
        raise InvalidInput("comment", "must not hold a secret, because it is signed")


async def weigh(services: Services, who: Caller, decision: Decide) -> Approval:
    """
    The approval as *decision* would leave it; nothing is stored. Raises as `decide_approval` does.
    """
    now = services.clock.deadline_now()
    async with services.store.view() as view:
        before, decider = await _admitted(services, view, who, decision, now)
    return await services.offload(partial(_decided, before, decision, decider, now))


MANY_ROWS = 500
"""
The number of rows above which a decision runs outside the event loop: each row takes about 10 µs.
"""


def _has_many(approval: Approval, decision: Decide) -> bool:
    edited = decision.decision.edited if isinstance(decision.decision, Approve) else None
    submitted = (rows for rows in (edited or {}).values() if isinstance(rows, list))
    return has_many_rows(approval) or sum(map(len, submitted)) > MANY_ROWS


def has_many_rows(approval: Approval) -> bool:
    """Whether work on each row of *approval* takes noticeable time."""
    return sum(len(group.items) for group in approval.groups) > MANY_ROWS


def _weighed(
    approval: Approval, decision: Decide, decider: Decider, now: EpochMs
) -> tuple[Approval, DecisionAudit]:
    """The approval with its decision, and its part of the audit log. Raises as `decide` does."""
    after = _decided(approval, decision, decider, now)
    if approval.assurance is Assurance.PASSKEY and isinstance(decision.decision, Approve):
        after = _signed(after, decision)
    return after, audit_of(decision.verb, approval, after)


def _decided(approval: Approval, decision: Decide, decider: Decider, now: EpochMs) -> Approval:
    is_open = approval.status is ApprovalStatus.PENDING and not expired(approval, now)
    if is_open and isinstance(decision.decision, Approve):
        require_seen(approval, decision.items_hash)
    return decide(approval, decision.decision, decider, now).record


def _signed(after: Approval, decision: Decide) -> Approval:
    """
    The approval with the receipt of its last assent. Raises `NotConfirmed` if another statement was
    confirmed, or none. SR-3, SR-4.
    """
    given = decision.confirmed
    if given is None:
        raise NotConfirmed("it was approved without a passkey")
    require_early(after, given.passkey)
    nonce, account = given.nonce, given.account.id
    statement = statement_of(
        after, decision.comment, account, given.passkey, nonce.given_at, nonce.token
    )
    if statement_digest(statement) not in given.digests:
        raise NotConfirmed("what was signed is not what is decided; read the approval again")
    return with_receipt(after, receipt_of(statement, given.digests, given.passkey, given.answer))


def _decider(who: Caller | Unrestricted, decision: Decide) -> Decider:
    if who is OPERATOR:  # the histories of approvals name the operator so
        name = OPERATOR.value
        return Decider(name, decision.source, decision.comment, name, decision.alone)
    return Decider(who.email, decision.source, decision.comment, who.identity)


async def _continued(
    unit: Unit, run: Execution, approval: Approval, now: EpochMs
) -> Outcome[Execution]:
    """The execution after a decision. An assent that is not the last changes no step. AP-15."""
    if approval.status is not ApprovalStatus.PENDING:
        return advance(run, await _fact(unit, run, approval), now)
    about: JsonObject = {
        "step": approval.step_name,
        "approvalId": approval.id,
        "approvals": len(approval.assents),
        "requiredApprovals": approval.required_approvals,
    }
    return announce(run, [(EventKind.APPROVAL_ASSENTED, about)], now)


async def _fact(
    unit: Unit, run: Execution, approval: Approval
) -> Approved | BudgetExtended | Rejected | Revised:
    if approval.status is ApprovalStatus.REVISED:
        definition = await definition_of(unit, run.workflow_id, run.revision)
        again = put_aside(definition, run, approval.step_name, approval.revise_to or "")
        return Revised(approval.step_name, approval.id, step_output(approval), again)
    if approval.status is not ApprovalStatus.APPROVED:
        return Rejected(approval.step_name, approval.id)
    if approval.purpose is Purpose.BUDGET:
        return BudgetExtended(approval.step_name, approval.id)
    return Approved(approval.step_name, approval.id, step_output(approval))
