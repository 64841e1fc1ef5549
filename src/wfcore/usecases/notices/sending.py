"""Sending due notices. Each attempt is recorded before it is made. NT-4 to NT-6."""

from collections.abc import Sequence

from attrs import field, frozen

from wfcore.effects import Effect
from wfcore.errors import Stale
from wfcore.model.access import AccountStatus
from wfcore.model.approval import Approval
from wfcore.model.event import EventKind
from wfcore.model.execution import Artifact, Execution
from wfcore.model.json import JsonObject
from wfcore.model.notice import Notice, NoticeKind, NoticeStatus
from wfcore.ports.notices import (
    Message,
    NotDelivered,
    NoticeDelayed,
    NoticeLine,
    NoticeRefused,
    Receipt,
)
from wfcore.ports.store import Unit, View
from wfcore.rules.approval.agreement import items_hash
from wfcore.rules.approval.question import question, title
from wfcore.rules.execution.fold import announce
from wfcore.rules.execution.machine import EXECUTION
from wfcore.rules.execution.mail import is_awaited
from wfcore.rules.explain.queue import waits_for_a_node, working
from wfcore.rules.notices import delivery
from wfcore.rules.notices.delivery import MOST_IN_DIGEST, QUIET, attempted, digested, dropped
from wfcore.rules.notices.facts import MAIL, OPEN_QUESTIONS, is_wanted
from wfcore.time import EpochMs, later
from wfcore.usecases.notices.mails import end_step, letter_of
from wfcore.usecases.notices.telling import people_asked
from wfcore.usecases.reading import execution_of
from wfcore.usecases.services import Services
from wfcore.usecases.signing import personal_path
from wfcore.usecases.unit_of_work import Report, apart, at_once, notify, retried, stage

OVER = "it was decided or over before it was sent"
NOBODY = "the account is not active"


@frozen
class Sending:
    """One attempt of a notice, ready to be sent. `files`: the files that a step's mail carries."""

    notice: Notice
    message: Message = field(repr=False)
    files: tuple[Artifact, ...] = ()


async def next_notice(services: Services) -> EpochMs | None:
    """The due time of the next attempt."""
    async with services.store.view() as view:
        return await view.notices.next_due()


async def take_notices(
    services: Services, limit: int, report: Report = at_once
) -> Sequence[Sending]:
    """
    Up to *limit* attempts that are due now, each recorded; of racing processes one gets each
    attempt.
    """
    async with services.store.view() as view:
        due = await view.notices.due(limit)
    taken: list[Sending] = []
    for notice in due:
        with apart(report, "notices", notice.id):
            sending = await take_notice(services, notice.id)
            taken += [sending] if sending is not None else []
    return taken


async def take_notice(services: Services, id: str) -> Sending | None:
    """
    One attempt of the notice, recorded; None if there is nothing to send now, or another process
    was faster.
    """
    now = services.store.now()
    async with services.store.unit() as unit:
        notice = await unit.get(Notice, id)
        if notice is None or notice.due_at is None or notice.due_at > now:
            return None  # another one tells it
        around = await unit.notices.at_address(*notice.address, later(now, -QUIET), MOST_IN_DIGEST)
        plan = delivery.due_now(notice, around, now)
        sending: Sending | None = None
        if plan.at is not None:
            unit.put(delivery.put_off(notice, plan.at))
        else:
            sending = await _begun(services, unit, notice, plan.others, now)
        try:
            await unit.commit()
        except Stale:
            return None
    return sending


async def _begun(
    services: Services, unit: Unit, notice: Notice, others: Sequence[Notice], now: EpochMs
) -> Sending | None:
    """The attempt with every line that is still wanted; None if no line is wanted."""
    gathered = [id for one in (notice, *others) for id in one.gathered]
    told_before = await unit.some(Notice, gathered) if gathered else ()
    lines: list[NoticeLine] = []
    wanted: list[Notice] = []
    account = await unit.accounts.by_email(notice.to) if notice.to else None
    gone = account is not None and account.status is not AccountStatus.ACTIVE
    for one in (notice, *told_before, *others):
        line = None if gone else await _line(services, unit, one, now)
        if line is not None:
            lines.append(line)
            wanted.append(one)
        elif one.due_at is not None and one.id != notice.id:
            unit.put(dropped(one, NOBODY if gone else OVER))
    if not lines:
        unit.put(dropped(notice, NOBODY if gone else OVER))
        return None
    begun = attempted(notice, [one for one in others if one in wanted], now)
    unit.put(begun)
    for one in others:
        if one in wanted:
            unit.put(digested(one, begun))
    language = (account.language if account else None) or services.policy.language
    letter, files = await letter_of(unit, notice)
    zone = account.zone if account else None
    message = Message(notice.id, notice.channel, notice.to, language, tuple(lines), letter, zone)
    return Sending(begun, message, files)


_PATHS = {
    "approval": "/approvals/{}",
    "execution": "/executions/{}",
    "trigger": "/workflows/{}",
    "webhook": "/operate/webhooks/{}",
    "quota": "/operate/usage",
    "step": "/executions/{}",
    "account": "/account",
}


def _path(notice: Notice) -> str:
    """The page of the notice on this server."""
    subject = str(notice.about.get("workflowId", notice.subject))
    path = _PATHS.get(notice.kind.partition(".")[0], "/")
    return path.format(subject)


async def _line(services: Services, view: View, notice: Notice, now: EpochMs) -> NoticeLine | None:
    """The line of a notice; None if the notice is no longer needed. NT-5."""
    about, path = dict(notice.about), _path(notice)
    if notice.kind.startswith("approval."):
        approval = await view.get(Approval, notice.subject)
        wall = services.clock.deadline_now()
        asked = await people_asked(services, view, approval) if approval and notice.to else ()
        if approval is None or not is_wanted(notice, approval, asked, wall):
            return None
        by_mail = notice.channel == MAIL
        if by_mail and notice.kind in OPEN_QUESTIONS:
            path = await personal_path(services, view, approval, notice.to)
        about |= _of_approval(approval, services.policy.notice_rows if by_mail else 0)
    if notice.execution_id is not None:
        run = await execution_of(view, notice.execution_id)
        if notice.kind is NoticeKind.EXECUTION_WAITING and not await _waits(services, view, run):
            return None
        if notice.kind is NoticeKind.STEP_MAIL and not is_awaited(run, notice):
            return None
        about |= {"workflow": run.workflow_name, "reference": run.reference} if run else {}
        if notice.kind is NoticeKind.EXECUTION_FAILED and run is not None:
            about |= {"error": run.error and _short(run.error), "executionId": run.id}
    return NoticeLine(notice.kind, path, about)


async def _waits(services: Services, view: View, run: Execution | None) -> bool:
    """Whether there is still no node that can run the execution. NT-9."""
    if run is None:
        return False
    now = services.store.now()
    nodes = working(await view.nodes.list(), now)
    return waits_for_a_node(run, nodes, now)


def _of_approval(approval: Approval, most_rows: int) -> JsonObject:
    return {
        "approvalId": approval.id,
        "executionId": approval.execution_id,
        "workflowId": approval.workflow_id,
        "round": approval.round,
        "itemsHash": items_hash(approval),
        "step": approval.step_name,
        "message": _short(approval.message),
        "question": _short(question(approval)),
        "title": title(approval),
        "rows": sum(len(group.items) for group in approval.groups),
        "sample": [_sample(group.items[:most_rows]) for group in approval.groups][: most_rows or 0],
        "approvedBy": [one.by for one in approval.assents],
        "requiredApprovals": approval.required_approvals,
        "expiresAt": approval.expires_at,
        "status": approval.status.value,
        "decidedBy": approval.decided_by,
        "comment": approval.comment,
    }


LONGEST = 4_000
"""
The most characters of a text: a digest reports up to 200 approvals, each with a message of up to 1
MiB.
"""


def _short(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"


def _sample(rows: Sequence[JsonObject]) -> list[JsonObject]:
    return [dict(row) for row in rows]


@retried
async def settle_notice(
    services: Services, sending: Sending, outcome: Receipt | NotDelivered
) -> Notice | None:
    """
    Record the outcome of an attempt; a mail that is over ends its step in the same unit. Does
    nothing if a later attempt has begun. NT-4, ML-1.
    """
    async with services.store.unit() as unit:
        notice = await unit.get(Notice, sending.notice.id)
        if notice is None or _beginning(notice) != _beginning(sending.notice):
            return None
        now, effects = services.store.now(), tuple[Effect, ...]()
        settled = _settled(notice, outcome, now)
        unit.put(settled)
        if settled.kind is NoticeKind.STEP_MAIL:
            effects = await end_step(unit, settled, outcome, now)
        elif settled.status is NoticeStatus.FAILED:
            await _note_failure(unit, settled, now)
        await unit.commit()
    if settled.execution_id and settled.due_at is None:
        notify(services.wakeup, settled.execution_id, effects)
    return settled


def _settled(notice: Notice, outcome: Receipt | NotDelivered, now: EpochMs) -> Notice:
    if not isinstance(outcome, NotDelivered):
        return delivery.sent(notice)
    if isinstance(outcome, NoticeDelayed) and outcome.after_ms is not None:
        return delivery.postponed(notice, str(outcome), later(now, outcome.after_ms))
    return delivery.failed(notice, str(outcome), for_good=isinstance(outcome, NoticeRefused))


async def _note_failure(unit: Unit, notice: Notice, now: EpochMs) -> None:
    """
    Add the undelivered notice to the event log of its execution, unless the execution has ended.
    """
    told = (notice, *(await unit.some(Notice, notice.gathered) if notice.gathered else ()))
    for one in told:
        run = await execution_of(unit, one.execution_id) if one.execution_id else None
        if run is not None and run.status not in EXECUTION.final:
            about: JsonObject = {
                "notice": one.kind.value,
                "noticeId": notice.id,
                "channel": one.channel,
                "to": one.to,
                "error": notice.last_error,
            }
            await stage(unit, announce(run, [(EventKind.NOTICE_FAILED, about)], now), now)


def _beginning(notice: Notice) -> tuple[int, EpochMs | None, bool]:
    """The values that distinguish attempts."""
    return notice.attempts, notice.attempted_at, notice.sending
