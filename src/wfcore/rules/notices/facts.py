"""
The notices of each fact, with their recipients; they belong to the fact's unit of work. NT-1.

The id of a notice is made of the fact, the channel and the address. So a process that writes the
notices of a fact again writes the same notices, and the store has each notice once.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from hashlib import blake2b

from wfcore.model.access import Account, AccountStatus, Permission, Share
from wfcore.model.approval import Approval, ApprovalStatus
from wfcore.model.json import JsonObject
from wfcore.model.notice import Notice, NoticeKind
from wfcore.rules.approval.machine import approvers_now, expired, spoken
from wfcore.rules.auth.access import delegations_now, idle
from wfcore.rules.ids import caused_id
from wfcore.rules.mailbox import same_name
from wfcore.time import EpochMs

MAIL = "mail"
"""The channel that has an address for each person; every other channel is a room."""
NOTHING: JsonObject = {}

OPEN_QUESTIONS = frozenset(
    {NoticeKind.APPROVAL_OPENED, NoticeKind.APPROVAL_REMINDER, NoticeKind.APPROVAL_VOIDED}
)
"""The notices that ask for a decision. They are of no interest once the decision is made."""


def notice_id(kind: NoticeKind, channel: str, to: str, *occasion: str | int) -> str:
    """The id of the notice of a fact at an address. NT-1."""
    parts = "\0".join((kind.value, channel, to, *map(str, occasion)))
    return caused_id("ntc", blake2b(parts.encode(), digest_size=16).hexdigest(), parts)


def notices(
    kind: NoticeKind,
    subject: str,
    channels: Iterable[str],
    people: Iterable[str],
    now: EpochMs,
    *,
    occasion: Sequence[str | int] = (),
    execution_id: str | None = None,
    about: JsonObject = NOTHING,
    rooms: bool = True,
) -> tuple[Notice, ...]:
    """
    The notices of one fact: a mail to each of *people*, and one message for each room, unless
    the fact is for people alone. NT-1.
    """
    mails = [same_name(person) for person in people]
    addresses = [
        (channel, to)
        for channel in channels
        for to in (mails if channel == MAIL else [""] if rooms else [])
    ]
    return tuple(
        Notice(
            id=notice_id(kind, channel, to, subject, *occasion),
            kind=kind,
            channel=channel,
            to=to,
            subject=subject,
            created_at=now,
            due_at=now,
            execution_id=execution_id,
            about=about,
        )
        for channel, to in dict.fromkeys(addresses)
    )


def of_approval(
    kind: NoticeKind,
    approval: Approval,
    channels: Iterable[str],
    people: Iterable[str],
    now: EpochMs,
    *occasion: int,
    rooms: bool = True,
) -> tuple[Notice, ...]:
    """The notices of a fact about an approval. NT-3."""
    return notices(
        kind,
        approval.id,
        channels,
        people,
        now,
        occasion=occasion,
        execution_id=approval.execution_id,
        rooms=rooms,
    )


def approver_ids(approval: Approval, shares: Iterable[Share], now: EpochMs) -> tuple[str, ...]:
    """
    The people who may decide now, as ids of accounts and emails: the approvers of the step, or of
    its present stage, and their delegates; if the step names none, both owners and everybody with
    EDIT. Without the people who may not approve, or need not decide. AP-10, AP-18, AP-33, AP-36,
    AP-38.
    """
    delegates = (one.to for one in delegations_now(approval, now))
    named = (*approvers_now(approval), *delegates)
    if names := dict.fromkeys(name.strip() for name in named if name.strip()):
        return tuple(name for name in names if same_name(name) not in idle(approval))
    editors = (one.account_id for one in shares if one.permission is Permission.EDIT)
    everybody = dict.fromkeys((approval.workflow_owner_id, approval.owner_id, *editors))
    starter = None if approval.allow_self_approval else approval.owner_id
    return tuple(id for id in everybody if id != starter)


def emails(names: Iterable[str], accounts: Mapping[str, Account]) -> tuple[str, ...]:
    """The address of each of *names*, once; accounts that are not active have no address. NT-3."""
    found: dict[str, None] = {}
    for name in names:
        account = accounts.get(name)
        if account is not None and account.status is AccountStatus.ACTIVE:
            found[same_name(account.email)] = None
        elif account is None and "@" in name:
            found[same_name(name)] = None
    return tuple(found)


def without_assent(approval: Approval, people: Iterable[str]) -> tuple[str, ...]:
    """
    Those *people* for whom no approval counts yet, neither their own nor an approval given in their
    place. AP-16, AP-36.
    """
    agreed = spoken(approval)
    return tuple(person for person in people if same_name(person) not in agreed)


def voided(before: Approval, after: Approval) -> tuple[str, ...]:
    """The people who agreed to rows that somebody has changed since. AP-17."""
    counts = {one.account for one in after.assents}
    lost = (same_name(one.by) for one in before.assents if one.account not in counts)
    return tuple(one for one in lost if "@" in one)


def is_wanted(
    notice: Notice, approval: Approval | None, asked: Collection[str], now: EpochMs
) -> bool:
    """
    Whether the notice is still needed. A question is no longer needed once it is decided or over,
    or if other people decide by now. *asked*: the addresses of the people who decide. NT-5.
    """
    if notice.kind not in OPEN_QUESTIONS:
        return True
    if approval is None or approval.status is not ApprovalStatus.PENDING or expired(approval, now):
        return False
    return notice.to == "" or notice.to in without_assent(approval, asked)
