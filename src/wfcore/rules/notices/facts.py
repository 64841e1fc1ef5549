"""
Facts and whom they are told to: for each fact the notices that belong to its unit of work. NT-1.

The id of a notice is made of the fact, the channel and the address. So whoever writes the notices
of a fact again writes the same ones, and the store has each once.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from hashlib import blake2b

from wfcore.model.access import Account, AccountStatus, Permission, Share
from wfcore.model.approval import Approval, ApprovalStatus
from wfcore.model.json import JsonObject
from wfcore.model.notice import Notice, NoticeKind
from wfcore.rules.approval.machine import expired
from wfcore.rules.approval.voices import approvers_now
from wfcore.time import EpochMs

MAIL = "mail"
"""The channel that has an address for each person; every other channel is a room."""
NOTHING: JsonObject = {}

OPEN_QUESTIONS = frozenset(
    {NoticeKind.APPROVAL_OPENED, NoticeKind.APPROVAL_REMINDER, NoticeKind.APPROVAL_VOIDED}
)
"""What asks somebody to decide: of no interest once that is done."""


def notice_id(kind: NoticeKind, channel: str, to: str, *occasion: str | int) -> str:
    """The id of the notice of that fact at that address. NT-1."""
    parts = "\0".join((kind.value, channel, to, *map(str, occasion)))
    return f"ntc_{blake2b(parts.encode(), digest_size=16).hexdigest()}"


def channels_of(named: Sequence[str] | None, offered: Collection[str]) -> tuple[str, ...]:
    """
    The channels that a definition names, each once; if it says nothing, mail where it is
    offered. NT-2.

    A channel that nobody set up is kept: its notices are given up, and operators see them.
    """
    if named is None:
        return (MAIL,) if MAIL in offered else ()
    return tuple(dict.fromkeys(named))


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
    mails = [person.strip().lower() for person in people]
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


def asked_ids(approval: Approval, shares: Iterable[Share]) -> tuple[str, ...]:
    """
    Who is asked, as ids of accounts and emails: the approvers that the step, or its present
    stage, names; if it names none, both owners and everybody with EDIT. Nobody who may not
    approve. AP-10, AP-18, AP-33.
    """
    named = tuple(name.strip() for name in approvers_now(approval) if name.strip())
    if named:
        return named
    editors = (one.account_id for one in shares if one.permission is Permission.EDIT)
    everybody = dict.fromkeys((approval.workflow_owner_id, approval.owner_id, *editors))
    starter = None if approval.allow_self_approval else approval.owner_id
    return tuple(id for id in everybody if id != starter)


def emails(names: Iterable[str], accounts: Mapping[str, Account]) -> tuple[str, ...]:
    """The address of each of *names*, once; accounts that are not active have none. NT-3."""
    found: dict[str, None] = {}
    for name in names:
        account = accounts.get(name)
        if account is not None and account.status is AccountStatus.ACTIVE:
            found[account.email.lower()] = None
        elif account is None and "@" in name:
            found[name.lower()] = None
    return tuple(found)


def undecided(approval: Approval, people: Iterable[str]) -> tuple[str, ...]:
    """Those of *people* whose yes does not count yet. AP-16."""
    agreed = {one.by.lower() for one in approval.assents}
    return tuple(person for person in people if person.lower() not in agreed)


def voided(before: Approval, after: Approval) -> tuple[str, ...]:
    """Who agreed to rows that somebody has changed since. AP-17."""
    counts = {one.account for one in after.assents}
    return tuple(one.by for one in before.assents if one.account not in counts and "@" in one.by)


def is_wanted(notice: Notice, approval: Approval | None, now: EpochMs) -> bool:
    """Whether it is still to be told: nobody is asked what is decided or over. NT-5."""
    if notice.kind not in OPEN_QUESTIONS:
        return True
    if approval is None or approval.status is not ApprovalStatus.PENDING or expired(approval, now):
        return False
    return notice.to == "" or bool(undecided(approval, (notice.to,)))
