"""
Writing notices in the unit of their fact: notice and fact are stored together or not at all. NT-1.

The content of a notice is read when the notice is sent; here only the recipients and channels are
decided.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence

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
from wfcore.rules.approval.machine import present_stage
from wfcore.rules.explain.queue import words_of
from wfcore.rules.mailbox import same_name
from wfcore.rules.notices import facts
from wfcore.rules.notices.facts import MAIL, approver_ids, emails, voided, without_assent
from wfcore.rules.triggers.trigger import paused_by_failures, why_paused, why_refused
from wfcore.time import EpochMs
from wfcore.usecases.audit.auditing import note_skipped
from wfcore.usecases.services import Services
from wfcore.usecases.unit_of_work import definition_of, retried


async def tell(unit: Unit, found: Iterable[Notice]) -> bool:
    """
    Put the notices of *found* that do not exist yet into the unit; returns whether there are such
    notices.
    """
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
    Write the notices about *outcome*: for each approval that is opened, and for a failure. Returns
    *outcome*, with a `DeadlineSet` if a notice is due or an approval was opened. NT-3.
    """
    is_due = False
    for effect in outcome.effects:
        if not isinstance(effect, OpenApproval):
            continue
        if effect.approval.status is ApprovalStatus.PENDING:  # else a rule has decided it already
            await tell_asked(services, unit, effect.approval)
            is_due = True
    if any(event.kind is EventKind.EXECUTION_FAILED for event in outcome.events):
        now = services.store.now()
        is_due |= await _tell_failure(services, unit, outcome.record, now)
        is_due |= await _pause_after(services, unit, outcome.record)
    if not is_due:
        return outcome
    return evolve(outcome, effects=(*outcome.effects, DeadlineSet()))


async def tell_asked(
    services: Services, unit: Unit, approval: Approval, before: Approval | None = None
) -> bool:
    """
    Write a notice to each present approver who was not an approver in *before*; also to the rooms
    when an approval opens or a stage begins. People whose assent was voided get a notice about that
    instead. Returns whether notices were written. NT-3.
    """
    channels, now = _channels(services, approval), services.store.now()
    people = await people_asked(services, unit, approval) if MAIL in channels else ()
    if before is None:
        return await tell(unit, facts.of_approval(_OPENED, approval, channels, people, now))
    begins, times = present_stage(before) != present_stage(approval), len(approval.history)
    known = voided(before, approval) if begins else await people_asked(services, unit, before)
    new = [one for one in people if one not in known]
    found = facts.of_approval(_OPENED, approval, channels, new, now, times, rooms=begins)
    return await tell(unit, found)


_OPENED = NoticeKind.APPROVAL_OPENED


async def tell_reminders(
    services: Services, unit: Unit, approval: Approval, due: Sequence[EpochMs]
) -> bool:
    """Remind each approver who has not approved once, however many reminders are due."""
    channels, people = _channels(services, approval), await people_asked(services, unit, approval)
    left, now = without_assent(approval, people), services.store.now()
    kind = NoticeKind.APPROVAL_REMINDER
    return await tell(unit, facts.of_approval(kind, approval, channels, left, now, due[-1]))


async def tell_decision(services: Services, unit: Unit, before: Approval, after: Approval) -> bool:
    """
    Write notices about a decision: to approvers whose rows were changed after their assent, and to
    the starter of the execution about another person's decision. Returns whether notices were
    written. NT-3.
    """
    channels, now = _channels(services, after), services.store.now()
    if not channels:
        return False
    if after.status is ApprovalStatus.PENDING:
        kind, times = NoticeKind.APPROVAL_VOIDED, len(after.history)
        asked = without_assent(after, await people_asked(services, unit, after))
        lost = {*voided(before, after)}
        again = [one for one in asked if one in lost]  # those of later stages when they are asked
        found = facts.of_approval(kind, after, channels, again, now, times, rooms=False)
        if present_stage(before) != present_stage(after):
            return await tell_asked(services, unit, after, before) | await tell(unit, found)
        return await tell(unit, found)
    timed_out = after.decision_source is DecisionSource.TIMEOUT
    kind = NoticeKind.APPROVAL_EXPIRED if timed_out else NoticeKind.APPROVAL_DECIDED
    people = await _emails(unit, (after.owner_id,))
    people = tuple(one for one in people if one != same_name(after.decided_by or ""))
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
    """
    Mail the owner of a webhook, trigger or key about an event; returns whether notices were
    written. NT-3.
    """
    channels = _channels_of(None, services.policy.channels)
    if not channels:
        return False
    people, now = await _emails(unit, (owner_id,)), services.store.now()
    found = facts.notices(kind, subject, channels, people, now, occasion=occasion, about=about)
    return await tell(unit, found)


async def tell_disabled(services: Services, unit: Unit, before: Webhook, after: Webhook) -> bool:
    """
    Mail the owner of a webhook that a person or a plan disabled the webhook; returns whether
    notices were written. NT-3, WH-5, WH-10.
    """
    if before.status is after.status or after.disabled_reason is None:
        return False
    about = {"name": after.name, "reason": after.disabled_reason.value}
    kind = NoticeKind.WEBHOOK_DISABLED
    return await tell_owner(
        services, unit, kind, after.id, after.owner_id, about, after.updated_at, after.version
    )


async def tell_passkeys(
    services: Services, unit: Unit, account: Account, verb: str, name: str
) -> bool:
    """
    Mail a person that a passkey of their account was registered or removed. Returns whether a
    notice was written. SR-5.
    """
    about: JsonObject = {"change": verb, "name": name}
    kind, times = NoticeKind.PASSKEY_CHANGED, account.version
    return await tell_owner(services, unit, kind, account.id, account.id, about, times)


async def tell_refused(
    services: Services, unit: Unit, trigger: Trigger, why: Refusal, detail: str | None = None
) -> bool:
    """
    Mail the owner of a trigger that the trigger started nothing, and why. *detail*: the mistake in
    the inputs. Returns whether notices were written. NT-3, SH-4.
    """
    name = await workflow_named(unit, trigger.workflow_id)
    about: JsonObject = {"workflow": name, "workflowId": trigger.workflow_id, "reason": why.value}
    about = {**about, "why": why_refused(why, detail), "detail": detail}
    kind, times = NoticeKind.TRIGGER_REFUSED, trigger.version
    return await tell_owner(services, unit, kind, trigger.id, trigger.owner_id, about, times)


@retried
async def tell_quota(services: Services, subject: str, account: Account, window: Window) -> None:
    """Write a notice that little is left of a window of the quota, once for each window. NT-3."""
    about: JsonObject = {"limit": window.limit, "resetsAt": window.end}
    async with services.store.unit() as unit:
        kind, times = NoticeKind.QUOTA_NEAR, window.end
        if not await tell_owner(services, unit, kind, subject, account.id, about, times):
            return
        await unit.commit()
    services.wakeup.timer()


async def _tell_failure(services: Services, unit: Unit, run: Execution, now: EpochMs) -> bool:
    """
    Write notices of a failure to the channels of the definition, of the account that owns the
    workflow, and of the server, each channel once. A mail goes to the owner; the server's mail to
    its operators. NT-3, NT-8.
    """
    definition = await definition_of(unit, run.workflow_id, run.revision)
    owner, policy = await unit.get(Account, run.workflow_owner_id), services.policy
    own = (*definition.notify_on_failure, *(owner.failure_channels if owner else ()))
    people = await _emails(unit, (run.workflow_owner_id,)) if facts.MAIL in own else ()
    if facts.MAIL in policy.failure_channels:
        people = tuple(dict.fromkeys((*people, *sorted(policy.operators))))
    channels = _channels_of((*own, *policy.failure_channels), ())
    kind = NoticeKind.EXECUTION_FAILED
    found = facts.notices(kind, run.id, channels, people, now, execution_id=run.id)
    return await tell(unit, found)


@retried
async def tell_waiting(services: Services, run: Execution) -> bool:
    """
    Mail the owner of the workflow, and the server's channels for failures, that for a while no
    living node has been able to run the execution. Returns whether notices were written. NT-9.
    """
    policy = services.policy
    channels = _channels_of((*_channels_of(None, policy.channels), *policy.failure_channels), ())
    async with services.store.unit() as unit:
        people = await _emails(unit, (run.workflow_owner_id,))
        if MAIL in policy.failure_channels:
            people = tuple(dict.fromkeys((*people, *sorted(policy.operators))))
        about: JsonObject = {"needs": words_of(run.capabilities), "executionId": run.id}
        kind, now = NoticeKind.EXECUTION_WAITING, services.store.now()
        found = facts.notices(kind, run.id, channels, people, now, execution_id=run.id, about=about)
        if not await tell(unit, found):
            return False
        await unit.commit()
    return True


async def _pause_after(services: Services, unit: Unit, run: Execution) -> bool:
    trigger = await unit.get(Trigger, run.trigger_id) if run.trigger_id else None
    return trigger is not None and await pause_if_failing(services, unit, trigger)


async def pause_if_failing(services: Services, unit: Unit, trigger: Trigger) -> bool:
    """
    Pause a schedule that failed as often in a row as its limit allows, in the unit of the last
    failure, and mail the schedule's owner. Returns whether notices were written. SH-10.
    """
    trigger = await unit.get(Trigger, trigger.id) or trigger  # at the version that the unit has put
    paused = paused_by_failures(trigger, services.clock.now())
    if paused is None or paused.pause is None:
        return False
    unit.put(paused)
    note_skipped(services, unit, "trigger.pause", "FAILURES", paused.owner_id, paused.id)
    about: JsonObject = {
        "workflow": await workflow_named(unit, paused.workflow_id),
        "workflowId": paused.workflow_id,
        "reason": why_paused(paused.pause),
        "failures": paused.failures,
    }
    kind, times = NoticeKind.TRIGGER_PAUSED, paused.version
    return await tell_owner(services, unit, kind, paused.id, paused.owner_id, about, times)


def _channels_of(named: Sequence[str] | None, offered: Collection[str]) -> tuple[str, ...]:
    """
    The channels of a definition, each once; by default mail, if mail is offered. NT-2.

    A channel that is not set up stays in the list: notices for this channel are given up, and
    operators see these notices.
    """
    if named is None:
        return (MAIL,) if MAIL in offered else ()
    return tuple(dict.fromkeys(named))


def _channels(services: Services, approval: Approval) -> tuple[str, ...]:
    return _channels_of(approval.notify, services.policy.channels)


async def people_asked(services: Services, view: View, approval: Approval) -> tuple[str, ...]:
    """The emails of the present approvers."""
    shares = () if approval.approvers else await view.shares.of_workflow(approval.workflow_id)
    now = services.clock.deadline_now()
    return await _emails(view, approver_ids(approval, shares, now))


async def _emails(view: View, names: Sequence[str]) -> tuple[str, ...]:
    ids = [name for name in names if "@" not in name]
    accounts: Mapping[str, Account] = {one.id: one for one in await view.some(Account, ids)}
    return emails(names, accounts)


async def workflow_named(view: View, workflow_id: str) -> str:
    """The name of the workflow; empty if the workflow is gone."""
    workflow = await view.get(Workflow, workflow_id)
    return workflow.name if workflow is not None else ""
