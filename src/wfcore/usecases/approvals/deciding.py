"""Deciding an approval: its execution continues, stops, or waits for further approvers. AP-2."""

from contextlib import suppress
from functools import partial

from attrs import evolve, frozen

from wfcore.effects import Outcome
from wfcore.errors import AlreadyDecided, Conflict, Forbidden, NotFound, StoreUnavailable
from wfcore.model.access import Caller, Share
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
from wfcore.ports.store import Unit
from wfcore.rules.approval.agreement import require_seen
from wfcore.rules.approval.machine import (
    Approve,
    Choice,
    Decider,
    decide,
    expired,
    step_output,
)
from wfcore.rules.auth.access import (
    is_approver,
    require_other_eyes,
    stands_for,
)
from wfcore.rules.execution.fold import advance, announce
from wfcore.rules.execution.machine import Approved, BudgetExtended, Rejected, Revised
from wfcore.rules.execution.redrive import put_aside
from wfcore.time import EpochMs
from wfcore.usecases.approvals.expiry import expire
from wfcore.usecases.audit.auditing import (
    UNKNOWN,
    Decided,
    Origin,
    decided,
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

OPERATOR = "operator"
"""Who decided, where it was done at the command line."""


def require_may(
    approval: Approval, who: Caller, share: Share | None, decision: Choice, now: EpochMs
) -> Delegation | None:
    """
    In whose place *who* decides so; None: their own. Raises `Forbidden` where they may not. AP-10,
    AP-18, AP-36.
    """
    given_for = None
    if not is_approver(approval, who, share):
        given_for = stands_for(approval, who, now)
        if given_for is None:
            raise Forbidden("You are not an approver of this approval, or not now")
    if isinstance(decision, Approve):
        require_other_eyes(approval, who, given_for)
    return given_for


@frozen
class Decide:
    """
    A decision, whatever the channel. `items_hash`: of the rows that the reviewer saw. `alone`: the
    operator's approval is enough, however many are required.
    """

    approval_id: str
    decision: Choice
    source: DecisionSource
    comment: str | None = None
    items_hash: str | None = None
    alone: bool = False

    @property
    def verb(self) -> str:
        return type(self.decision).__name__.lower()


async def decide_approval(
    services: Services, who: Caller | None, asked: Decide, origin: Origin = UNKNOWN
) -> Approval:
    """
    Record one decision: its execution continues or stops, or waits for further approvers. AP-2,
    AP-3, AP-6, AP-10, AP-15.

    Of any number of racing decisions and an expiry, exactly one wins.

    Raises `NotFound`, `Forbidden` (visible, but not an approver, or started by the caller),
    `AlreadyDecided`, `ItemsChanged` (not the rows that the reviewer saw), `InvalidInput` (edited
    rows; nothing is decided). All but the last are in the audit log. AP-27.
    """
    try:
        return await _decide(services, who, asked, origin)
    except (NotFound, Forbidden, Conflict) as refused:
        if isinstance(refused, AlreadyDecided):  # perhaps by its timeout, which is recorded now
            with suppress(StoreUnavailable):
                await expire(services, asked.approval_id)
        await note_refusal(
            services, f"approval.{asked.verb}", who, asked.approval_id, refused, origin
        )
        raise


@retried
async def _decide(
    services: Services, who: Caller | None, asked: Decide, origin: Origin
) -> Approval:
    now = services.clock.deadline_now()
    async with services.store.unit() as unit:
        before, share = approval, _ = await approval_for(unit, who, asked.approval_id)
        decider = _decider(who, asked)
        if who is not None:
            given_for = require_may(approval, who, share, asked.decision, now)
            decider = evolve(decider, given_for=given_for)
        weigh = partial(_weighed, approval, asked, decider, now)
        made = await services.offload(weigh) if _has_many(approval, asked) else weigh()
        approval = made.approval
        run = await execution_of(unit, approval.execution_id)
        if run is None:
            raise AlreadyDecided("The execution of this approval is gone", approval.id)
        work = services.store.now()
        with stale_if_illegal("execution", run.id):
            outcome = await _told(unit, run, approval, work)
        unit.put(approval)
        outcome = await stage(unit, outcome, work)
        written = await tell_decision(services, unit, before, approval)
        note_decision(services, unit, who, made, run, asked.comment, origin)
        await unit.commit()
    notify(services.wakeup, run.id, outcome.effects)
    if written:
        services.wakeup.timer()
    return approval


MANY_ROWS = 500
"""From so many rows on a decision is made aside of the event loop: each takes about 10 µs."""


def _has_many(approval: Approval, asked: Decide) -> bool:
    edited = asked.decision.edited if isinstance(asked.decision, Approve) else None
    submitted = (rows for rows in (edited or {}).values() if isinstance(rows, list))
    return has_many_rows(approval) or sum(map(len, submitted)) > MANY_ROWS


def has_many_rows(approval: Approval) -> bool:
    """Whether work on each of its rows takes noticeable time."""
    return sum(len(group.items) for group in approval.groups) > MANY_ROWS


def _weighed(approval: Approval, asked: Decide, decider: Decider, now: EpochMs) -> Decided:
    """The approval with its decision, and its audit record. Raises what `decide` raises."""
    is_open = approval.status is ApprovalStatus.PENDING and not expired(approval, now)
    if is_open and isinstance(asked.decision, Approve):
        require_seen(approval, asked.items_hash)
    return decided(asked.verb, approval, decide(approval, asked.decision, decider, now).record)


def _decider(who: Caller | None, asked: Decide) -> Decider:
    by, account = (who.email, who.identity) if who else (OPERATOR, OPERATOR)
    return Decider(by, asked.source, asked.comment, account, asked.alone and who is None)


async def _told(unit: Unit, run: Execution, decided: Approval, now: EpochMs) -> Outcome[Execution]:
    """The execution with the decision; a yes that others must follow moves nothing. AP-15."""
    if decided.status is not ApprovalStatus.PENDING:
        return advance(run, await _fact(unit, run, decided), now)
    about: JsonObject = {
        "step": decided.step_name,
        "approvalId": decided.id,
        "approvals": len(decided.assents),
        "requiredApprovals": decided.required_approvals,
    }
    return announce(run, [(EventKind.APPROVAL_ASSENTED, about)], now)


async def _fact(
    unit: Unit, run: Execution, decided: Approval
) -> Approved | BudgetExtended | Rejected | Revised:
    if decided.status is ApprovalStatus.REVISED:
        definition = await definition_of(unit, run.workflow_id, run.revision)
        again = put_aside(definition, run, decided.step_name, decided.revise_to or "")
        return Revised(decided.step_name, decided.id, step_output(decided), again)
    if decided.status is not ApprovalStatus.APPROVED:
        return Rejected(decided.step_name, decided.id)
    if decided.purpose is Purpose.BUDGET:
        return BudgetExtended(decided.step_name, decided.id)
    return Approved(decided.step_name, decided.id, step_output(decided))
