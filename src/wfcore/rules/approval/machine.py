"""
The approval machine, and decisions: one compare-and-set, whoever decides. Contract §3.

An approval past its `expires_at` counts as rejected whether or not a timer has run; use cases
expire such approvals before they read them.
"""

from collections.abc import Mapping
from typing import TypeAlias

from attrs import evolve, frozen

from wfcore.effects import Outcome
from wfcore.errors import AlreadyDecided
from wfcore.machine import Machine, Row
from wfcore.model.approval import (
    Approval,
    Assent,
    DecisionSource,
    HistoryEntry,
    Rows,
    Verdict,
)
from wfcore.model.approval import ApprovalStatus as S
from wfcore.model.json import Json, JsonObject
from wfcore.rules.approval.edited_items import released_rows, same, standing_rows
from wfcore.rules.approval.quorum import with_assent
from wfcore.time import EpochMs


@frozen
class Approve:
    """
    The decider approves. `edited`: None releases the original rows, otherwise exactly the given
    ones.
    """

    edited: Mapping[str, Json] | None = None


@frozen
class Assented:
    """One more approval; further ones are required."""


@frozen
class Reject:
    """The decider rejects."""


@frozen
class Expire:
    """Nobody decided in time."""


@frozen
class Withdraw:
    """The execution ended for another reason."""


Decision: TypeAlias = Approve | Reject | Expire | Withdraw

# fmt: off
APPROVAL = Machine(
    name="approval",
    initial=S.PENDING,
    final=frozenset({S.APPROVED, S.REJECTED, S.CANCELLED}),
    rows=(
        Row(S.PENDING, Assented, S.PENDING,   "AP-15"),
        Row(S.PENDING, Approve,  S.APPROVED,  "AP-2"),
        Row(S.PENDING, Reject,   S.REJECTED,  "AP-3"),
        Row(S.PENDING, Expire,   S.REJECTED,  "AP-4"),
        Row(S.PENDING, Withdraw, S.CANCELLED, "AP-5"),
    ),
)
# fmt: on


@frozen
class Decider:
    """
    Who decides, through which channel, with which comment. `account` identifies the person.
    `alone`: this approval is enough, however many are required.
    """

    by: str | None
    source: DecisionSource | None
    comment: str | None = None
    account: str | None = None
    alone: bool = False


BY_TIMEOUT = Decider(None, DecisionSource.TIMEOUT)
BY_END = Decider(None, None)


def decide(
    approval: Approval, decision: Decision, decider: Decider, now: EpochMs
) -> Outcome[Approval]:
    """
    The approval with this decision added to its history; still PENDING if further approvals are
    required. AP-2 to AP-5, AP-12, AP-15.

    Raises `AlreadyDecided` if it has been decided, is past its expiry (AP-4, AP-6), or already
    counts this approver (AP-16); `InvalidInput` if edited rows violate a rule (AP-9). Nothing is
    decided then.
    """
    late = isinstance(decision, Approve | Reject) and expired(approval, now)
    if late or not APPROVAL.allows(approval.status, type(decision)):
        raise AlreadyDecided("The approval has already been decided", approval.id)
    entry = HistoryEntry(now, _ACTION[type(decision)], decider.by, decider.source, decider.comment)
    if not isinstance(decision, Approve):
        return Outcome(_ended(approval, decision, decider, entry))
    if decision.edited is not None:
        after = released_rows(approval, decision.edited)
        entry = evolve(entry, rows_before=standing_rows(approval), rows_after=after)
    agreed = _agreed(approval, decider, entry)
    if decider.alone or len(agreed.assents) >= approval.required_approvals:
        return Outcome(_ended(agreed, decision, decider, entry))
    status = APPROVAL.target(approval.status, Assented)
    return Outcome(evolve(agreed, status=status, history=(*approval.history, entry)))


def _agreed(approval: Approval, decider: Decider, entry: HistoryEntry) -> Approval:
    """The approval with one more approver, and with the rows that were approved."""
    by = decider.by or ""
    assent = Assent(by, decider.account or by, entry.at)
    before, after = entry.rows_before, entry.rows_after
    changed = after is not None and not same(before, after)
    assents = with_assent(approval, assent, changed=changed, alone=decider.alone)
    groups = approval.groups
    if after is not None:
        groups = tuple(evolve(group, items=after[group.name]) for group in groups)
    return evolve(approval, groups=groups, assents=assents)


def _ended(
    approval: Approval, decision: Decision, decider: Decider, entry: HistoryEntry
) -> Approval:
    return evolve(
        approval,
        status=APPROVAL.target(approval.status, type(decision)),
        decided_at=entry.at,
        decided_by=decider.by,
        decision_source=decider.source,
        comment=decider.comment,
        history=(*approval.history, entry),
    )


_ACTION: Mapping[type, str] = {
    Approve: "approved",
    Reject: "rejected",
    Expire: "expired",
    Withdraw: "cancelled",
}


def command(verdict: Verdict, edited: Mapping[str, Json] | None = None) -> Approve | Reject:
    """The command that a decision on the wire stands for."""
    return Approve(edited) if verdict is Verdict.APPROVE else Reject()


def expired(approval: Approval, now: EpochMs) -> bool:
    """Whether it is open and past its time, counting from `expires_at` itself. AP-4."""
    return approval.status is S.PENDING and now >= approval.expires_at


def step_output(approval: Approval) -> JsonObject:
    """The step's output for later steps: the decision and the released rows. AP-7."""
    rows: Rows = standing_rows(approval)
    return {
        "decision": Verdict.APPROVE.value,
        "comment": approval.comment,
        "decidedBy": approval.decided_by,
        "groups": {name: list(items) for name, items in rows.items()},
    }
