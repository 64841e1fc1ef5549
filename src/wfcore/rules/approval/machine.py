"""
The approval machine, and decisions: one compare-and-set for all channels.

An approval past its `expires_at` counts as rejected whether or not a timer has run; use cases
expire such approvals before they read them.

Approvers agree to the rows as they stand. So an approver who changes the rows begins the count
anew, and the released rows are those to which every counted approver has agreed. Stages follow one
another; one person counts once over all of them. AP-15 to AP-19, AP-33, PL-3; decision 151.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

from attrs import evolve, frozen

from wfcore.effects import Outcome
from wfcore.errors import AlreadyDecided, Forbidden, InvalidInput, NoMoreRevisions
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
from wfcore.model.json import JsonObject, as_json
from wfcore.model.passkey import SignedReceipt
from wfcore.model.review import Stage
from wfcore.rules.approval.agreement import given_answers
from wfcore.rules.approval.released_rows import released_rows, same, standing_rows
from wfcore.rules.limits import MAX_HISTORY, MAX_HISTORY_ROWS
from wfcore.rules.mailbox import is_name, same_name
from wfcore.rules.receipt import receipt_document
from wfcore.time import EpochMs


@frozen
class Approve:
    """
    The decider approves. `edited`: None releases the original rows, otherwise exactly the given
    ones. `answers`: to the approval's fields; those left out stay as they are.
    """

    edited: Mapping[str, object] | None = None
    answers: Mapping[str, object] | None = None


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
"""The decisions that a person can make on an approval."""

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
    The person or cause of a decision, the channel, and the comment. `account` identifies the
    person. `alone`: this approval is enough, however many are required.
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

    Raises `AlreadyDecided` if the approval was decided before, is past its expiry (AP-4, AP-6), or
    already counts this approver (AP-16); `InvalidInput` if edited rows violate a rule (AP-9). An
    error leaves the approval undecided.
    """
    late = isinstance(decision, Choice | Delegate) and expired(approval, now)
    if late or not APPROVAL.allows(approval.status, type(decision)):
        raise AlreadyDecided("The approval has already been decided", approval.id)
    if isinstance(decision, Revise):
        _require_revisable(approval, decider.comment)
    entry = HistoryEntry(now, _ACTION[type(decision)], decider.by, decider.source, decider.comment)
    if isinstance(decision, Escalate):
        return Outcome(evolve(escalated(approval), history=(*approval.history, entry)))
    if isinstance(decision, Delegate):
        _require_room(approval)
        return Outcome(
            _delegated(approval, decision.to, decision.until, entry, decider.account or "")
        )
    if not isinstance(decision, Approve):
        return Outcome(_ended(approval, decision, decider, entry))
    if decision.edited is not None:
        after = released_rows(approval, as_json(decision.edited))
        entry = evolve(entry, rows_before=standing_rows(approval), rows_after=after)
    if decision.answers or approval.fields:
        given = as_json(decision.answers or {})
        entry = evolve(entry, answers=given_answers(approval, given))
    agreed = _agreed(approval, decider, entry)
    if decider.alone or not still_wanted(agreed):
        return Outcome(_ended(agreed, decision, decider, entry))
    if len(agreed.assents) <= len(approval.assents):  # the count begins anew
        _require_room(approval)
    status = APPROVAL.target(approval.status, Assented)
    return Outcome(evolve(agreed, status=status, history=(*approval.history, entry)))


def _require_revisable(approval: Approval, comment: str | None) -> None:
    """
    Raises `InvalidInput` if the step takes no revisions, or the comment is empty; `NoMoreRevisions`
    after the last allowed revision. AP-31.
    """
    if approval.revise_to is None:
        raise InvalidInput("decision", "revise needs a step that says onRevise; approve or reject")
    if not (comment or "").strip():
        raise InvalidInput("comment", "is required: say what is to be changed")
    if approval.revisions_left < 1:
        raise NoMoreRevisions(
            f"Changes were asked for {approval.round - 1} times; approve or reject", approval.id
        )


def _require_room(approval: Approval) -> None:
    """
    Raises `Forbidden` if the history is full. Called for acts that could otherwise be repeated for
    ever. AP-12.
    """
    sides = (side for one in approval.history for side in (one.rows_before, one.rows_after))
    rows = sum(len(group) for side in sides if side for group in side.values())
    if len(approval.history) >= MAX_HISTORY or rows >= MAX_HISTORY_ROWS:
        raise Forbidden("This was changed too often: approve it as it stands, or reject it")


def _delegated(
    approval: Approval, to: str, until: EpochMs, entry: HistoryEntry, account: str
) -> Approval:
    """
    The approval with a delegation, which replaces an earlier one of the same person. AP-36.

    Raises `Forbidden` if the step does not allow delegation, `InvalidInput` for a wrong person or
    time.
    """
    to, by = to.strip(), entry.by or ""
    if not approval.delegable:
        raise Forbidden("Approvers of this may not let others decide for them")
    if not is_name(to) or same_name(to) in (same_name(by), same_name(account)):
        raise InvalidInput("to", "must be the email or account id of somebody else")
    if not entry.at < until <= approval.expires_at:
        raise InvalidInput("until", "must be in the future, and not after the approval expires")
    one = Delegation(by, account, to, until)
    others = tuple(known for known in approval.delegations if known.account != account)
    return evolve(
        approval,
        delegations=(*others, one),
        history=(*approval.history, evolve(entry, comment=f"to {to}")),
    )


def _agreed(approval: Approval, decider: Decider, entry: HistoryEntry) -> Approval:
    """The approval with one more approver, and the rows and answers that were approved."""
    by = decider.by or ""
    is_rule = decider.source is DecisionSource.RULE
    assent = Assent(by, decider.account or by, entry.at, 0, is_rule, decider.given_for)
    assent = evolve(assent, stage=_stage_of(approval, assent))
    before, after = entry.rows_before, entry.rows_after
    answers = approval.answers if entry.answers is None else entry.answers
    edited = after is not None and not same(before, after)
    changed = edited or not same(answers, approval.answers)
    assents = with_assent(approval, assent, changed=changed, alone=decider.alone)
    groups = approval.groups
    if after is not None:
        groups = tuple(evolve(group, items=after[group.name]) for group in groups)
    agreed = evolve(approval, groups=groups, assents=assents, answers=answers)
    return evolve(agreed, approvers=approvers_so_far(agreed)) if approval.stages else agreed


def _stage_of(approval: Approval, assent: Assent) -> int:
    """
    The stage in which the assent counts: the present stage or, if every stage is complete, the
    approver's own stage.
    """
    if (present := present_stage(approval)) is not None:
        return present
    people = [{same_name(name) for name in stage.approvers} for stage in approval.stages]
    return max((at for at, named in enumerate(people) if named & _names(assent)), default=0)


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


def expired(approval: Approval, now: EpochMs) -> bool:
    """Whether the approval is open and past its time; `expires_at` itself is past. AP-4."""
    return approval.status is S.PENDING and now >= approval.expires_at


def step_output(approval: Approval) -> JsonObject:
    """
    The step's output for later steps: the decision, released rows, answers, and the receipts of a
    signed release. AP-7, AP-30, SR-2.
    """
    rows: Rows = standing_rows(approval)
    revised = approval.status is S.REVISED
    return {
        "decision": (Verdict.REVISE if revised else Verdict.APPROVE).value,
        "comment": approval.comment,
        "decidedBy": approval.decided_by,
        "groups": {name: list(items) for name, items in rows.items()},
        "answers": approval.answers,
        "receipts": [receipt_document(one) for one in receipts_of(approval)],
    }


def receipts_of(approval: Approval) -> Sequence[SignedReceipt]:
    """The receipts of the approvals that count: one for each person. SR-2."""
    return [one.receipt for one in approval.assents if one.receipt is not None]


def present_stage(approval: Approval) -> int | None:
    """
    The index of the first stage that lacks approvals; None if there are no stages or every stage is
    complete.
    """
    given = Counter(one.stage for one in approval.assents)
    for at, stage in enumerate(approval.stages):
        if given[at] < stage.required_approvals:
            return at
    return None


def approvers_now(approval: Approval) -> tuple[str, ...]:
    """
    The approvers who may decide now: the approvers of the present stage, or of all stages if every
    stage is complete; without stages, all approvers. If there are none, the default rule applies.
    """
    if not approval.stages:
        return approval.approvers
    at = present_stage(approval)
    return names_of(approval.stages if at is None else (approval.stages[at],))


def names_of(stages: Iterable[Stage]) -> tuple[str, ...]:
    """The approvers of the stages, each once."""
    return tuple(dict.fromkeys(name for stage in stages for name in stage.approvers))


def approvers_so_far(approval: Approval) -> tuple[str, ...]:
    """The approvers of the earlier stages and of the present stage."""
    at = present_stage(approval)
    upto = approval.stages if at is None else approval.stages[: at + 1]
    return tuple(dict.fromkeys((*approval.approvers, *names_of(upto))))


def accounts_of(assent: Assent) -> tuple[str, ...]:
    """
    The accounts that an assent counts for: the account of its giver, and of the approver in whose
    place the assent was given. AP-36.
    """
    return (assent.account, *([assent.given_for.account] if assent.given_for else []))


def spoken(approval: Approval) -> frozenset[str]:
    """The people whose approval counts already, by account and email in lower case. AP-36."""
    return frozenset().union(*map(_names, approval.assents))


def _names(assent: Assent) -> frozenset[str]:
    """The names of the people for whom the assent counts, in lower case."""
    speakers = (who for who in (assent, assent.given_for) if who is not None)
    return frozenset(same_name(name) for who in speakers for name in (who.account, who.by))


def still_wanted(approval: Approval) -> int:
    """The number of approvals that are lacking. AP-15, AP-33, AP-35."""
    people = sum(not one.is_rule for one in approval.assents)
    lacking = max(approval.humans - people, 0)
    if not approval.stages:
        return max(approval.required_approvals - len(approval.assents), lacking)
    given = Counter(one.stage for one in approval.assents)
    of_stages = (
        max(stage.required_approvals - given[at], 0) for at, stage in enumerate(approval.stages)
    )
    return max(sum(of_stages), lacking)


def escalated(approval: Approval) -> Approval:
    """The approval with the escalation's approvers added to the present stage. AP-37."""
    at, to = present_stage(approval), approval.escalate_to
    stages = tuple(
        evolve(one, approvers=tuple(dict.fromkeys((*one.approvers, *to)))) if number == at else one
        for number, one in enumerate(approval.stages)
    )
    approvers = tuple(dict.fromkeys((*approval.approvers, *to)))
    return evolve(approval, approvers=approvers, stages=stages, escalate_at=None)


def with_assent(
    approval: Approval, assent: Assent, *, changed: bool = False, alone: bool = False
) -> tuple[Assent, ...]:
    """
    The assents after *assent*; only *assent* if it *changed* the rows. AP-15, AP-17.

    Raises `AlreadyDecided` if the same approver has approved these rows before, unless the approver
    now decides *alone*. AP-16.
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
    Whether both assents belong to one person. An account and a person with the account's email
    count as one person, and so do an approver and the person who decides in the approver's place.
    PL-3, AP-36.
    """
    return not _identities(one).isdisjoint(_identities(other))


def _identities(one: Assent) -> set[str]:
    voices = [(one.account, one.by)]
    if one.given_for is not None:
        voices.append((one.given_for.account, one.given_for.by))
    return {name for account, by in voices for name in (account, by_email(same_name(by)))}


def has_assented(approval: Approval, who: Caller) -> bool:
    """Whether *who* already counts as an approver. AP-16, PL-3."""
    mine = Assent(who.email, who.identity, approval.created_at)
    return any(one_person(one, mine) for one in approval.assents)


def voided_by(approval: Approval, who: Caller) -> str | None:
    """
    The approver who changed the rows or answers that *who* had approved, so that this approval no
    longer counts; None if there is no such approver. The present count began with that approver.
    AP-17.
    """
    if approval.status is not S.PENDING or not approval.assents or has_assented(approval, who):
        return None
    mine = (one for one in approval.history if one.by == who.email)
    said_yes = any(one.action == _ACTION[Approve] for one in mine)
    return approval.assents[0].by if said_yes else None


def next_reminder(approval: Approval) -> EpochMs | None:
    """
    The instant of the next reminder, or of the escalation; None if nothing is left to send or the
    approval is closed. AP-20, AP-37.
    """
    if approval.status is not S.PENDING:
        return None
    coming = (*approval.reminders[approval.reminded :][:1], approval.escalate_at)
    return min((at for at in coming if at is not None), default=None)


def due_reminders(approval: Approval, now: EpochMs) -> tuple[EpochMs, ...]:
    """The reminders that are due and not yet sent. AP-20."""
    if approval.status is not S.PENDING:
        return ()
    return tuple(at for at in approval.reminders[approval.reminded :] if at <= now)
