"""
The approval machine, and decisions: one compare-and-set, whoever decides. Contract §3.

An approval past its `expires_at` counts as rejected whether or not a timer has run; use cases
expire such approvals before they read them.

Approvers agree to the rows as they stand. So whoever changes the rows begins the count anew, and
what is released in the end is what everybody who counts has agreed to. AP-15 to AP-19.
"""

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from attrs import evolve, frozen

from wfcore.effects import Outcome
from wfcore.errors import (
    AlreadyDecided,
    Forbidden,
    InvalidInput,
    ItemsChanged,
    NoMoreRevisions,
)
from wfcore.machine import Machine, Row
from wfcore.model.access import Caller, by_email
from wfcore.model.approval import (
    Approval,
    Assent,
    DecisionSource,
    Delegation,
    HistoryEntry,
    Rows,
    Verdict,
)
from wfcore.model.approval import ApprovalStatus as S
from wfcore.model.json import Json, JsonObject
from wfcore.rules.approval.answers import given_answers
from wfcore.rules.approval.edited_items import released_rows, same, standing_rows
from wfcore.rules.approval.voices import asked_so_far, escalated, present_stage, still_wanted
from wfcore.rules.audit.chain import canonical, digest
from wfcore.time import EpochMs


@frozen
class Approve:
    """
    The decider approves. `edited`: None releases the original rows, otherwise exactly the given
    ones. `answers`: to the approval's fields; those left out stay as they are.
    """

    edited: Mapping[str, Json] | None = None
    answers: Mapping[str, Json] | None = None


@frozen
class Assented:
    """One more approval; further ones are required."""


@frozen
class Reject:
    """The decider rejects."""


@frozen
class Revise:
    """The decider asks for changes: the work is done again from an earlier step on."""


@frozen
class Delegate:
    """The decider lets *to* decide in their place *until* then."""

    to: str
    until: EpochMs


@frozen
class Escalate:
    """Nobody decided for so long that others are asked, too."""


@frozen
class Expire:
    """Nobody decided in time."""


@frozen
class Withdraw:
    """The execution ended for another reason."""


Choice: TypeAlias = Approve | Reject | Revise
"""What a person may decide."""

Decision: TypeAlias = Choice | Delegate | Escalate | Expire | Withdraw

# fmt: off
APPROVAL = Machine(
    name="approval",
    initial=S.PENDING,
    final=frozenset({S.APPROVED, S.REJECTED, S.REVISED, S.CANCELLED}),
    rows=(
        Row(S.PENDING, Assented, S.PENDING,   "AP-15"),
        Row(S.PENDING, Delegate, S.PENDING,   "AP-36"),
        Row(S.PENDING, Escalate, S.PENDING,   "AP-37"),
        Row(S.PENDING, Approve,  S.APPROVED,  "AP-2"),
        Row(S.PENDING, Reject,   S.REJECTED,  "AP-3"),
        Row(S.PENDING, Revise,   S.REVISED,   "AP-31"),
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
    given_for: Delegation | None = None


BY_TIMEOUT = Decider(None, DecisionSource.TIMEOUT)
BY_END = Decider(None, None)
BY_RULE = Decider("rule", DecisionSource.RULE, account="rule")


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
    late = isinstance(decision, Choice | Delegate) and expired(approval, now)
    if late or not APPROVAL.allows(approval.status, type(decision)):
        raise AlreadyDecided("The approval has already been decided", approval.id)
    if isinstance(decision, Revise):
        _require_revisable(approval, decider)
    entry = HistoryEntry(now, _ACTION[type(decision)], decider.by, decider.source, decider.comment)
    if isinstance(decision, Escalate):
        return Outcome(evolve(escalated(approval), history=(*approval.history, entry)))
    if isinstance(decision, Delegate):
        return Outcome(_delegated(approval, decision, entry, decider.account or ""))
    if not isinstance(decision, Approve):
        return Outcome(_ended(approval, decision, decider, entry))
    if decision.edited is not None:
        after = released_rows(approval, decision.edited)
        entry = evolve(entry, rows_before=standing_rows(approval), rows_after=after)
    if decision.answers or approval.fields:
        entry = evolve(entry, answers=given_answers(approval, decision.answers))
    agreed = _agreed(approval, decider, entry)
    if decider.alone or not still_wanted(agreed):
        return Outcome(_ended(agreed, decision, decider, entry))
    status = APPROVAL.target(approval.status, Assented)
    return Outcome(evolve(agreed, status=status, history=(*approval.history, entry)))


def _require_revisable(approval: Approval, decider: Decider) -> None:
    """
    Raises `InvalidInput` if the step takes no revisions, or nobody says what to change;
    `NoMoreRevisions` after the last one. AP-31.
    """
    if approval.revise_to is None:
        raise InvalidInput("decision", "revise needs a step that says onRevise; approve or reject")
    if not (decider.comment or "").strip():
        raise InvalidInput("comment", "is required: say what is to be changed")
    if approval.revisions_left < 1:
        raise NoMoreRevisions(
            f"Changes were asked for {approval.round - 1} times; approve or reject", approval.id
        )


def _delegated(
    approval: Approval, decision: Delegate, entry: HistoryEntry, account: str
) -> Approval:
    """
    With the delegation, which takes the place of an earlier one of the same person. AP-36.

    Raises `Forbidden` where the step does not allow it, `InvalidInput` for a wrong person or time.
    """
    to, by = decision.to.strip(), entry.by or ""
    if not approval.delegable:
        raise Forbidden("Approvers of this may not let others decide for them")
    if not to or to.lower() in (by.lower(), account.lower()):
        raise InvalidInput("to", "must be the email or account id of somebody else")
    if not entry.at < decision.until <= approval.expires_at:
        raise InvalidInput("until", "must be in the future, and not after the approval expires")
    one = Delegation(by, account, to, decision.until)
    others = tuple(known for known in approval.delegations if known.account != account)
    named = {name.strip().lower() for name in approval.approvers}
    approvers = approval.approvers if to.lower() in named else (*approval.approvers, to)
    return evolve(
        approval,
        delegations=(*others, one),
        approvers=approvers,
        history=(*approval.history, evolve(entry, comment=f"to {to}")),
    )


def _agreed(approval: Approval, decider: Decider, entry: HistoryEntry) -> Approval:
    """The approval with one more approver, and the rows and answers that were approved."""
    by = decider.by or ""
    is_rule = decider.source is DecisionSource.RULE
    stage = present_stage(approval)
    at = max(len(approval.stages) - 1, 0) if stage is None else stage
    assent = Assent(by, decider.account or by, entry.at, at, is_rule, decider.given_for)
    before, after = entry.rows_before, entry.rows_after
    answers = approval.answers if entry.answers is None else entry.answers
    edited = after is not None and not same(before, after)
    changed = edited or not same(answers, approval.answers)
    assents = with_assent(approval, assent, changed=changed, alone=decider.alone)
    groups = approval.groups
    if after is not None:
        groups = tuple(evolve(group, items=after[group.name]) for group in groups)
    agreed = evolve(approval, groups=groups, assents=assents, answers=answers)
    return evolve(agreed, approvers=asked_so_far(agreed)) if approval.stages else agreed


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
    Delegate: "delegated",
    Escalate: "escalated",
    Approve: "approved",
    Reject: "rejected",
    Revise: "revised",
    Expire: "expired",
    Withdraw: "cancelled",
}


def command(
    verdict: Verdict,
    edited: Mapping[str, Json] | None = None,
    answers: Mapping[str, Json] | None = None,
) -> Choice:
    """The command that a decision on the wire stands for."""
    match verdict:
        case Verdict.APPROVE:
            return Approve(edited, answers)
        case Verdict.REJECT:
            return Reject()
        case Verdict.REVISE:
            return Revise()


def expired(approval: Approval, now: EpochMs) -> bool:
    """Whether it is open and past its time, counting from `expires_at` itself. AP-4."""
    return approval.status is S.PENDING and now >= approval.expires_at


def step_output(approval: Approval) -> JsonObject:
    """The step's output for later steps: the decision, released rows and answers. AP-7, AP-30."""
    rows: Rows = standing_rows(approval)
    revised = approval.status is S.REVISED
    return {
        "decision": (Verdict.REVISE if revised else Verdict.APPROVE).value,
        "comment": approval.comment,
        "decidedBy": approval.decided_by,
        "groups": {name: list(items) for name, items in rows.items()},
        "answers": approval.answers,
    }


# How many must approve, and what: approvals that need more than one approver.


def with_assent(
    approval: Approval, assent: Assent, *, changed: bool = False, alone: bool = False
) -> tuple[Assent, ...]:
    """
    The approvers who count after *assent*; only that one if it *changed* the rows. AP-15, AP-17.

    Raises `AlreadyDecided` if the same approver has approved these rows before, unless they now
    decide *alone*. AP-16.
    """
    if changed:
        return (assent,)
    if any(one_person(one, assent) for one in approval.assents) and not alone:
        left = still_wanted(approval)
        raise AlreadyDecided(f"You have approved this already; it needs {left} more", approval.id)
    others = (one for one in approval.assents if not one_person(one, assent))
    return (*others, assent)


def one_person(one: Assent, other: Assent) -> bool:
    """
    Whether both are the same voice: an account, and whoever came with its email, are one, and so
    are an approver and the person who decides in their place. PL-3, AP-36.
    """
    return not _identities(one).isdisjoint(_identities(other))


def _identities(one: Assent) -> set[str]:
    voices = [(one.account, one.by)]
    if one.given_for is not None:
        voices.append((one.given_for.account, one.given_for.by))
    return {name for account, by in voices for name in (account, by_email(by))}


def has_assented(approval: Approval, who: Caller) -> bool:
    """Whether that person already counts as an approver. AP-16, PL-3."""
    mine = Assent(who.email, who.identity, approval.created_at)
    return any(one_person(one, mine) for one in approval.assents)


def require_other_eyes(
    approval: Approval, who: Caller, given_for: Delegation | None = None
) -> None:
    """
    Raises `Forbidden` if *who*, or the approver in whose place they decide, started the execution
    and the step forbids self-approval. Rejecting is always allowed. AP-18, AP-36.
    """
    starters = {who.account_id, given_for.account if given_for else None}
    if not approval.allow_self_approval and approval.owner_id in starters:
        raise Forbidden("Who started the execution may not approve it; another approver must")


def items_hash(approval: Approval) -> str:
    """
    A digest of what an approver agrees to as it stands: equal exactly if the rows, the answers and
    the contents of the attachments are. AP-19, AP-29.
    """
    files = files_of(approval)
    return digest(canonical(agreed_to(rows_of(approval), files, approval.answers)))


def rows_of(approval: Approval) -> JsonObject:
    """The rows as they stand, by group name."""
    return {group.name: group.items for group in approval.groups}


def files_of(approval: Approval) -> Sequence[Json]:
    """The attachments as far as they are agreed to: step, name and content of each."""
    return [[one.step_name, one.name, one.sha256] for one in approval.attachments]


def agreed_to(rows: JsonObject, files: Sequence[Json], answers: JsonObject) -> JsonObject:
    """
    What `items_hash` is a digest of: the rows alone if there is nothing else. No rows look like
    the other form, because the rows of a group are a list.
    """
    if not files and not answers:
        return rows
    return {"groups": rows, "attachments": files, "answers": answers}


def require_seen(approval: Approval, expected: str | None) -> None:
    """Raises `ItemsChanged` if *expected* is given and the rows have changed. AP-19."""
    if expected is not None and expected != items_hash(approval):
        raise ItemsChanged(
            "expectedItemsHash: what you saw has changed; read the approval again",
            approval.id,
        )


def next_reminder(approval: Approval) -> EpochMs | None:
    """
    When the next reminder, or the escalation, is due; None if there is none or the approval is
    closed. AP-20, AP-37.
    """
    if approval.status is not S.PENDING:
        return None
    coming = (*approval.reminders[approval.reminded :][:1], approval.escalate_at)
    return min((at for at in coming if at is not None), default=None)


def due_reminders(approval: Approval, now: EpochMs) -> tuple[EpochMs, ...]:
    """The reminders that are due and were not sent yet. AP-20."""
    if approval.status is not S.PENDING:
        return ()
    return tuple(at for at in approval.reminders[approval.reminded :] if at <= now)
