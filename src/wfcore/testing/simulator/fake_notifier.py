"""
The fake notifier: takes the notices of every process, and checks the sent and the missing notices.

The notifier refuses some attempts, drawn from the world's seed. A notice that was taken counts as
sent, even if the process died before recording the attempt. NT-1, NT-4, NT-5.
"""

from collections.abc import Iterator, Mapping
from typing import Any
from zlib import crc32

from wfcore.memory.disk import Rows
from wfcore.memory.tables import ACCOUNTS, APPROVALS, EXECUTIONS, NOTICES
from wfcore.model.approval import Approval, ApprovalStatus
from wfcore.model.execution import ReasonCode, StepStatus
from wfcore.model.notice import Notice, NoticeKind, NoticeStatus
from wfcore.ports.notices import Message, NotDelivered, NoticeRefused
from wfcore.rules.auth.signed_links import keyring, read_personal_token
from wfcore.rules.execution.mail import mail_id
from wfcore.rules.execution.scope import name_of
from wfcore.rules.notices.delivery import DELAYS
from wfcore.rules.notices.facts import OPEN_QUESTIONS
from wfcore.testing.simulator.calls import SimSchedulingPoint
from wfcore.testing.simulator.generate_flows import MAIL
from wfcore.testing.simulator.identities import email_of, emails_of, require
from wfcore.testing.simulator.invariants import Tables
from wfcore.time import EpochMs
from wfcore.usecases.notices.sending import Sending

ASKS = frozenset({NoticeKind.APPROVAL_OPENED, NoticeKind.APPROVAL_VOIDED})
TOLD = frozenset({NoticeStatus.SENT, NoticeStatus.DIGESTED, NoticeStatus.FAILED})
MOST = len(DELAYS) + 1
STEP_FAILED = ReasonCode.STEP_FAILED


class FakeNotifier:
    """
    Receives all notices. `closed`: the scheduler's turn in which each approval was decided, and
    each execution ended.
    """

    def __init__(self, seed: int, key: bytes, closed: Mapping[str, int]) -> None:
        self.calm = False
        self._seed = seed
        self._key = key
        self._closed = closed
        self._taken: set[tuple[str, int]] = set()
        self._refused: set[str] = set()
        self._recorded: set[str] = set()
        self._messages: dict[object, str] = {}
        self._gate = SimSchedulingPoint(store=False)

    async def send(self, sending: Sending, begun: int) -> None:
        """
        Deliver a notice that was taken from the store after turn *begun*. Raises `NotDelivered`.
        """
        id = sending.notice.id
        await self._gate("post", id, lambda: self.take(sending, begun))

    def take(self, sending: Sending, begun: int) -> None:
        """
        Take a notice, or refuse it by lot. Raises `Violation` for an attempt that was taken before,
        for a question about an approval that was decided before turn *begun*, and for a mail that
        has another id, which is its `Message-ID`, than an earlier one of the same step's attempt.
        """
        notice, message = sending.notice, sending.message
        attempt = (notice.id, notice.attempts)
        require(attempt not in self._taken, "told twice", f"{notice.id}.{notice.attempts}")
        for id in self._asked(message):
            require(self._closed.get(id, begun) >= begun, "told in vain", f"{id} by {notice.id}")
        if notice.kind is NoticeKind.STEP_MAIL:
            ended = self._closed.get(notice.subject, begun)
            require(ended >= begun, "mailed in vain", f"{notice.subject} by {notice.id}")
            require(notice.id not in self._recorded, "mailed twice", notice.id)
            attempt_of = (notice.subject, notice.about["step"], notice.about["attempt"])
            first = self._messages.setdefault(attempt_of, notice.id)
            require(first == notice.id, "another message", f"{notice.id} after {first}")
        draw = crc32(f"{self._seed} {attempt}".encode())
        if not self.calm and draw % 16 == 0:
            self._refused.add(notice.id)
            raise NoticeRefused("there is nobody of that name")
        if not self.calm and draw % 4 == 0:
            raise NotDelivered("the post is closed")
        self._taken.add(attempt)

    def recorded(self, notice: Notice) -> None:
        """Note that the store knows the end of *notice*."""
        self._recorded.add(notice.id)

    def _asked(self, message: Message) -> Iterator[str]:
        """The ids of the open approvals in *message*."""
        for line in message.lines:
            if line.kind in OPEN_QUESTIONS:
                way, _, end = line.path.removeprefix("/").partition("/")
                yield self._by_link(end) if way == "a" else end

    def _by_link(self, token: str) -> str:
        ((key, made),) = keyring((self._key,), None).tried(token)
        return read_personal_token(key, made, EpochMs(0)).approval_id

    def wrong(self, tables: Tables, now: int) -> Iterator[str]:
        """
        The notices that should have been sent but were not, once all sending is over. *now*: the
        latest instant that a clock may have shown.
        """
        notices: Mapping[Any, Notice] = tables[NOTICES.name]
        sent = {id for id, _ in self._taken}
        for id, one in notices.items():
            gave_up = id in self._refused or one.attempts >= MOST
            if one.status is NoticeStatus.SENT and id not in sent:
                yield f"never told: {id} is SENT"
            if one.status is NoticeStatus.FAILED and not gave_up:
                yield f"never told: {id} after {one.attempts} attempts"
        yield from never_mailed(tables)
        asked = [one for one in notices.values() if one.kind in ASKS]
        written = {(one.subject, one.to) for one in asked}
        told = {(one.subject, one.to) for one in asked if one.status in TOLD}
        facts = {n.subject for n in notices.values() if n.kind not in OPEN_QUESTIONS}
        for approval in tables[APPROVALS.name].values():
            if not approval.notify:
                continue
            if approval.status is ApprovalStatus.PENDING:
                came = written if now >= approval.expires_at else told
                for email in sorted(awaited(approval, tables[ACCOUNTS.name])):
                    if (approval.id, email) not in came:
                        yield f"never told: {email} of {approval.id}"
            elif _by_others(approval, tables[ACCOUNTS.name]) and approval.id not in facts:
                yield f"never told: the decision of {approval.id}"


def never_mailed(tables: Tables) -> Iterator[str]:
    """The mail steps without a mail, and those that completed before their mail was taken. ML-1."""
    notices: Mapping[Any, Notice] = tables[NOTICES.name]
    for run in tables[EXECUTIONS.name].values():
        for key, result in run.step_results.items():
            kept = result.started_at < run.accepted_at
            if name_of(key) != MAIL or kept or not result.attempts:
                continue
            mail = notices.get(mail_id(run.id, key, result.attempts))
            refused = result.status is StepStatus.FAILED and result.reason is STEP_FAILED
            if mail is None and not refused:
                yield f"never mailed: {run.id}/{key}"
            done = result.status is StepStatus.COMPLETED
            if done and mail is not None and mail.status is not NoticeStatus.SENT:
                yield f"never mailed: {run.id}/{key} completed, its mail is {mail.status}"


def awaited(approval: Approval, accounts: Rows) -> set[str]:
    """The emails of the approvers (of the first incomplete stage, if any) who have not agreed."""
    agreed = {voice for one in approval.assents for voice in emails_of(one, accounts)}
    names = {email_of(name, accounts) for name in approval.approvers}
    if approval.stages:
        names = set()
        for at, stage in enumerate(approval.stages):
            if sum(one.stage == at for one in approval.assents) < stage.required_approvals:
                names = {email_of(name, accounts) for name in stage.approvers}
                break
    return names - agreed


def _by_others(approval: Approval, accounts: Rows) -> bool:
    """Whether the approval was decided by time, or by a person who did not start the execution."""
    if approval.status is ApprovalStatus.CANCELLED or approval.decision_source is None:
        return False
    if {one.is_rule for one in approval.assents} == {True}:
        return False  # as it opened
    return email_of(approval.decided_by or "", accounts) != email_of(approval.owner_id, accounts)
