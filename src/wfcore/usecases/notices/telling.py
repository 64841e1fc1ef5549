"""
Writing notices: in the unit of the fact that they tell, so that neither is stored alone. NT-1.

What a notice says is read when it is sent; here is only who is told, and on which channels.
"""

from collections.abc import Iterable, Mapping, Sequence

from attrs import evolve

from wfcore.effects import DeadlineSet, OpenApproval, Outcome
from wfcore.model.access import Account, Window
from wfcore.model.approval import Approval, ApprovalStatus, DecisionSource
from wfcore.model.event import EventKind
from wfcore.model.execution import Execution
from wfcore.model.json import JsonObject
from wfcore.model.notice import Notice, NoticeKind
from wfcore.model.trigger import Refusal, Trigger
from wfcore.model.webhook import Webhook
from wfcore.model.workflow import Workflow
from wfcore.ports.store import Unit, View
from wfcore.rules.notices import facts
from wfcore.rules.notices.facts import asked_ids, channels_of, emails, undecided, voided
from wfcore.time import EpochMs
from wfcore.usecases.services import Services
from wfcore.usecases.unit_of_work import definition_of


async def tell(unit: Unit, found: Iterable[Notice]) -> bool:
    """Put those of *found* that are not there yet into the unit; whether there are any."""
    new = {one.id: one for one in found}
    if not new:
        return False
    known = {one.id for one in await unit.some(Notice, new.keys())}
    for one in new.values():
        if one.id not in known:
            unit.put(one)
    return new.keys() != known


async def tell_outcome(
    services: Services, unit: Unit, outcome: Outcome[Execution]
) -> Outcome[Execution]:
    """
    The notices of what an execution came to: approvals that it opens, and its failure. The outcome
    with the hint that follows. NT-3.
    """
    now, written = services.store.now(), False
    for effect in outcome.effects:
        if isinstance(effect, OpenApproval) and _is_open(effect.approval):
            asked = await _asked(services, unit, effect.approval)
            written |= await tell(unit, _about(NoticeKind.APPROVAL_OPENED, *asked, now))
    if any(event.kind is EventKind.EXECUTION_FAILED for event in outcome.events):
        written |= await _tell_failure(unit, outcome.record, now)
    if not written:
        return outcome
    return evolve(outcome, effects=(*outcome.effects, DeadlineSet()))


async def tell_reminders(
    services: Services, unit: Unit, approval: Approval, due: Sequence[EpochMs]
) -> bool:
    """Those who have not agreed are reminded, once, however many reminders are due."""
    approval, channels, people = await _asked(services, unit, approval)
    left, now = undecided(approval, people), services.store.now()
    kind = NoticeKind.APPROVAL_REMINDER
    return await tell(unit, facts.of_approval(kind, approval, channels, left, now, due[-1]))


async def tell_decision(services: Services, unit: Unit, before: Approval, after: Approval) -> bool:
    """
    Who agreed to rows that were changed is asked again; who started the execution learns of a
    decision that somebody else made. NT-3.
    """
    channels, now = _channels(services, after), services.store.now()
    if not channels:
        return False
    if after.status is ApprovalStatus.PENDING:
        kind, times = NoticeKind.APPROVAL_VOIDED, len(after.history)
        again = voided(before, after)
        found = facts.of_approval(kind, after, channels, again, now, times, rooms=False)
        if after.stages:  # those of the next one are asked; the others have been, under the same id
            opened = _about(NoticeKind.APPROVAL_OPENED, *await _asked(services, unit, after), now)
            found = (*opened, *found)
        return await tell(unit, found)
    timed_out = after.decision_source is DecisionSource.TIMEOUT
    kind = NoticeKind.APPROVAL_EXPIRED if timed_out else NoticeKind.APPROVAL_DECIDED
    people = await _emails(unit, (after.owner_id,))
    people = tuple(one for one in people if one != (after.decided_by or "").lower())
    found = facts.of_approval(kind, after, channels, people, now, rooms=timed_out)
    return await tell(unit, found)


async def tell_owner(
    services: Services,
    unit: Unit,
    kind: NoticeKind,
    subject: str,
    owner_id: str,
    about: JsonObject,
    *occasion: str | int,
) -> bool:
    """The owner of a webhook, trigger or key is told by mail what became of it. NT-3."""
    channels = channels_of(None, services.policy.channels)
    if not channels:
        return False
    people, now = await _emails(unit, (owner_id,)), services.store.now()
    found = facts.notices(kind, subject, channels, people, now, occasion=occasion, about=about)
    return await tell(unit, found)


async def tell_disabled(services: Services, unit: Unit, before: Webhook, after: Webhook) -> bool:
    """The owner of a webhook learns that somebody, or a plan, disabled it. NT-3, WH-5, WH-10."""
    if before.status is after.status or after.disabled_reason is None:
        return False
    about = {"name": after.name, "reason": after.disabled_reason.value}
    kind = NoticeKind.WEBHOOK_DISABLED
    return await tell_owner(
        services, unit, kind, after.id, after.owner_id, about, after.updated_at, after.version
    )


async def tell_refused(services: Services, unit: Unit, trigger: Trigger, why: Refusal) -> bool:
    """The owner of a trigger learns that it starts nothing any more, and why. NT-3, SH-4."""
    name = await workflow_named(unit, trigger.workflow_id)
    about = {"workflow": name, "workflowId": trigger.workflow_id, "reason": why.value}
    kind, times = NoticeKind.TRIGGER_REFUSED, trigger.version
    return await tell_owner(services, unit, kind, trigger.id, trigger.owner_id, about, times)


async def tell_quota(services: Services, subject: str, account: Account, window: Window) -> None:
    """Little is left of a window of the quota: told once for each window. NT-3."""
    about: JsonObject = {"limit": window.limit, "resetsAt": window.end}
    async with services.store.unit() as unit:
        kind, times = NoticeKind.QUOTA_NEAR, window.end
        if not await tell_owner(services, unit, kind, subject, account.id, about, times):
            return
        await unit.commit()
    services.wakeup.timer()


async def _tell_failure(unit: Unit, run: Execution, now: EpochMs) -> bool:
    definition = await definition_of(unit, run.workflow_id, run.revision)
    if not definition.notify_on_failure:
        return False
    kind, channels = NoticeKind.EXECUTION_FAILED, channels_of(definition.notify_on_failure, ())
    people = await _emails(unit, (run.workflow_owner_id,))
    found = facts.notices(kind, run.id, channels, people, now, execution_id=run.id)
    return await tell(unit, found)


def _about(
    kind: NoticeKind,
    approval: Approval,
    channels: tuple[str, ...],
    people: tuple[str, ...],
    now: EpochMs,
) -> tuple[Notice, ...]:
    return facts.of_approval(kind, approval, channels, people, now)


def _is_open(approval: Approval) -> bool:
    """Nobody is asked what a rule has decided."""
    return approval.status is ApprovalStatus.PENDING


def _channels(services: Services, approval: Approval) -> tuple[str, ...]:
    return channels_of(approval.notify, services.policy.channels)


async def _asked(
    services: Services, view: View, approval: Approval
) -> tuple[Approval, tuple[str, ...], tuple[str, ...]]:
    """The approval, the channels that tell of it, and the emails of those who are asked."""
    channels = _channels(services, approval)
    if facts.MAIL not in channels:
        return approval, channels, ()
    shares = () if approval.approvers else await view.shares.of_workflow(approval.workflow_id)
    return approval, channels, await _emails(view, asked_ids(approval, shares))


async def _emails(view: View, names: Sequence[str]) -> tuple[str, ...]:
    ids = [name for name in names if "@" not in name]
    accounts: Mapping[str, Account] = {one.id: one for one in await view.some(Account, ids)}
    return emails(names, accounts)


async def workflow_named(view: View, workflow_id: str) -> str:
    """What people call the workflow; nothing if it is gone."""
    workflow = await view.get(Workflow, workflow_id)
    return workflow.name if workflow is not None else ""
