"""Stages, delegates, escalation and rounds of changes, move by move; what is refused, and how."""

from collections.abc import Callable

import pytest
from attrs import astuple, evolve

from wfcore.errors import AlreadyDecided, Forbidden, InvalidInput, NoMoreRevisions, WfError
from wfcore.model.access import Guest, Principal
from wfcore.model.approval import (
    Approval,
    ApprovalStatus,
    Assent,
    DecisionSource,
    Delegation,
    Group,
    HistoryEntry,
)
from wfcore.model.review import Stage
from wfcore.rules.approval.machine import (
    BY_RULE,
    Approve,
    Decider,
    Delegate,
    Escalate,
    Expire,
    Revise,
    approvers_now,
    decide,
    has_assented,
    next_reminder,
    present_stage,
    step_output,
    still_wanted,
)
from wfcore.rules.auth.access import (
    delegations_now,
    idle,
    is_approver,
    named,
    require_other_eyes,
    sees_approval,
    stands_for,
)
from wfcore.rules.limits import MAX_HISTORY, MAX_HISTORY_ROWS
from wfcore.rules.notices.facts import approver_ids
from wfcore.testing import builders as make
from wfcore.testing.builders import NOW
from wfcore.time import HOUR, EpochMs, later

ANN, BOB, CYD, DAN, EVE = (f"{name}@example.org" for name in ("ann", "bob", "cyd", "dan", "eve"))
SOON, LATER = later(NOW, 1), later(NOW, HOUR)
S = ApprovalStatus


def person(email: str) -> Principal:
    return Principal(make.account(f"acc_{email[:3]}", email=email))


def decider(email: str, comment: str | None = None) -> Decider:
    return Decider(email, DecisionSource.API, comment, f"acc_{email[:3]}")


def yes(approval: Approval, email: str) -> Approval:
    """Approved by them, in whose place they may, as a use case does it."""
    who = person(email)
    given_for = None if is_approver(approval, who, None) else stands_for(approval, who, NOW)
    assert is_approver(approval, who, None) or given_for
    by = evolve(decider(email), given_for=given_for)
    return decide(approval, Approve(), by, NOW).record


def let(approval: Approval, by: str, to: str, until: EpochMs = LATER) -> Approval:
    return decide(approval, Delegate(to, until), decider(by), NOW).record


STAGES = (Stage((ANN,)), Stage((BOB, CYD, DAN), 2), Stage((EVE,)))
STAGED = make.approval(stages=STAGES, approvers=(ANN,), humans=1)


def test_stages_are_asked_one_after_another() -> None:
    """Each approval counts in the stage that is asked, and every stage was asked once. AP-33."""
    shown = []
    approval = STAGED
    for email in (ANN, CYD, BOB, EVE):
        shown.append((present_stage(approval), approvers_now(approval), still_wanted(approval)))
        approval = yes(approval, email)
    middle = (BOB, CYD, DAN)
    assert shown == [(0, (ANN,), 4), (1, middle, 3), (1, middle, 2), (2, (EVE,), 1)]
    assert [one.stage for one in approval.assents] == [0, 1, 1, 2]
    assert approval.approvers == (ANN, *middle, EVE)
    assert (approval.status, still_wanted(approval)) == (S.APPROVED, 0)


def test_who_comes_later_is_not_asked_before() -> None:
    """After the first stage the second has been asked, and the third has not. AP-33."""
    assert yes(STAGED, ANN).approvers == (ANN, BOB, CYD, DAN)


def test_when_only_people_are_lacking_anybody_of_the_stages_may() -> None:
    """It counts in the last stage. AP-33, AP-35."""
    approval = evolve(STAGED, stages=(Stage((ANN,)), Stage((BOB, CYD))), humans=3)
    approval = yes(yes(approval, ANN), BOB)
    assert (present_stage(approval), still_wanted(approval)) == (None, 1)
    assert approvers_now(approval) == approval.approvers == (ANN, BOB, CYD)
    approval = yes(approval, CYD)
    assert (approval.status, approval.assents[-1].stage) == (S.APPROVED, 1)


def test_a_rule_counts_in_the_stage_that_is_asked() -> None:
    """It is nobody where people are counted. AP-35."""
    approval = decide(evolve(STAGED, humans=4), Approve(), BY_RULE, NOW).record
    assert (approval.assents[0].is_rule, approval.assents[0].stage) == (True, 0)
    assert (present_stage(approval), still_wanted(approval)) == (1, 4)


def test_an_escalation_asks_more_people_in_the_present_stage() -> None:
    """Each once, and it is not due again; other stages stay as they are. AP-37."""
    approval = evolve(yes(STAGED, ANN), escalate_to=(EVE, BOB), escalate_at=SOON)
    assert next_reminder(approval) == SOON
    after = decide(approval, Escalate(), Decider(None, None), SOON).record
    assert after.stages == (STAGES[0], Stage((BOB, CYD, DAN, EVE), 2), STAGES[2])
    assert after.approvers == (ANN, BOB, CYD, DAN, EVE)
    assert (after.escalate_at, next_reminder(after)) == (None, None)


def test_without_stages_an_escalation_adds_approvers() -> None:
    """The next reminder comes at its time, before or after the escalation. AP-20, AP-37."""
    approval = make.approval(
        approvers=(ANN,), escalate_to=(BOB,), escalate_at=LATER, reminders=(SOON, later(NOW, 2))
    )
    assert next_reminder(approval) == SOON
    assert next_reminder(evolve(approval, escalate_at=NOW)) == NOW
    assert next_reminder(evolve(approval, reminded=2)) == LATER
    after = decide(approval, Escalate(), Decider(None, None), LATER).record
    assert (after.approvers, after.stages) == ((ANN, BOB), ())


# Delegates. AP-36.

DELEGABLE = make.approval(approvers=(BOB, CYD), required_approvals=2, delegable=True)


def test_a_delegation_is_on_record() -> None:
    """Who lets whom until when, in the approval and in its history."""
    approval = let(DELEGABLE, BOB, f" {DAN} ")
    assert approval.delegations == (Delegation(BOB, "acc_bob", DAN, LATER),)
    assert approval.approvers == approvers_now(approval) == (BOB, CYD)
    assert named(approval) == {BOB, CYD, DAN}
    said = approval.history[-1]
    assert (said.action, said.by, said.comment) == ("delegated", BOB, f"to {DAN}")
    assert approval.status is S.PENDING


def test_approver_and_delegate_are_one_voice() -> None:
    """Whoever came first; a delegate of two people is one voice, too. PL-3, AP-36."""
    approval = let(DELEGABLE, BOB, DAN)
    first = yes(approval, DAN)
    assert first.assents[0].given_for == approval.delegations[0]
    for second in (BOB, DAN):
        with pytest.raises(AlreadyDecided):
            yes(first, second)
    with pytest.raises(AlreadyDecided):
        yes(yes(approval, BOB), DAN)
    with pytest.raises(AlreadyDecided):
        yes(let(first, CYD, DAN), DAN)
    assert yes(first, CYD).status is S.APPROVED


def test_a_delegation_holds_until_its_end() -> None:
    """From that instant on it grants nothing, whatever the delegate is called."""
    approval = let(DELEGABLE, BOB, "ACC_dan")
    assert stands_for(approval, person(DAN), EpochMs(LATER - 1)) == approval.delegations[0]
    assert stands_for(approval, person(DAN), LATER) is None
    assert stands_for(approval, person(EVE), NOW) is None


def test_only_who_is_asked_now_can_be_stood_in_for() -> None:
    """The delegate of a later stage waits with it; by account id or email. AP-33, AP-36."""
    approval = evolve(STAGED, delegable=True)
    for by in (Delegation(BOB.upper(), "", DAN, LATER), Delegation("", BOB.upper(), DAN, LATER)):
        held = evolve(approval, delegations=(Delegation(EVE, EVE, DAN, LATER), by))
        assert delegations_now(held, NOW) == ()
        assert delegations_now(yes(held, ANN), NOW) == (by,)
        assert stands_for(yes(held, ANN), person(DAN), NOW) == by


def test_a_guest_stands_in_for_somebody_in_the_approval_of_the_link() -> None:
    """PL-2, AP-36: and in no other one; the same holds for what owners-to-be see."""
    approval = let(DELEGABLE, BOB, DAN)
    guest, other = Guest(DAN, approval.id), Guest(DAN, "appr_2")
    assert stands_for(approval, guest, NOW) == approval.delegations[0]
    assert stands_for(approval, other, NOW) is None
    assert sees_approval(approval, guest, None)
    assert not sees_approval(approval, other, None)
    assert not sees_approval(approval, person(EVE), None)


def test_who_was_asked_sees_the_approval_still() -> None:
    """Approvers of an earlier stage, but guests by the link of that approval alone. AC-5, PL-2."""
    approval = yes(STAGED, ANN)
    assert not is_approver(approval, person(ANN), None)
    assert sees_approval(approval, person(ANN), None)
    assert sees_approval(approval, Guest(ANN, approval.id), None)
    assert not sees_approval(approval, Guest(ANN, "appr_2"), None)


def test_whom_somebody_let_before_is_no_approver() -> None:
    """A new delegation of the same person takes the place of the earlier one. AP-36."""
    approval = let(let(DELEGABLE, BOB, DAN), BOB, EVE)
    assert stands_for(approval, person(EVE), NOW)
    assert stands_for(approval, person(DAN), NOW) is None
    assert not is_approver(approval, person(DAN), None)
    assert [one.to for one in approval.delegations] == [EVE]


def test_two_approvers_may_let_the_same_person() -> None:
    """Each delegation stands by itself."""
    approval = let(let(DELEGABLE, BOB, DAN), CYD, DAN)
    assert [one.by for one in approval.delegations] == [BOB, CYD]


def test_who_has_a_voice_keeps_it() -> None:
    """An approver, or whom an escalation asks, who also stands in for another one. AP-36, AP-37."""
    fellow = let(DELEGABLE, BOB, CYD)
    assert yes(yes(fellow, CYD), BOB).status is S.APPROVED
    approval = evolve(let(DELEGABLE, BOB, DAN), escalate_to=(DAN.upper(),))
    assert not is_approver(approval, person(DAN), None)
    after = decide(approval, Escalate(), Decider(None, None), NOW).record
    assert is_approver(after, person(DAN), None)


OWNED = make.approval(owner_id="acc_bob", allow_self_approval=False)


def test_who_is_known_by_an_account_alone_may_be_stood_in_for() -> None:
    """A delegation names no email that there is not. AP-36."""
    by = Decider(None, DecisionSource.API, account="acc_bob")
    approval = decide(DELEGABLE, Delegate(DAN, LATER), by, NOW).record
    assert approval.delegations == (Delegation("", "acc_bob", DAN, LATER),)
    by = Decider(BOB, DecisionSource.API)
    approval = decide(DELEGABLE, Delegate(DAN, LATER), by, NOW).record
    assert approval.delegations == (Delegation(BOB, "", DAN, LATER),)


def test_who_has_approved_is_known_by_account_as_well() -> None:
    """An email may change in between. AP-16, PL-3."""
    given = Assent("old@example.org", "acc_ann", NOW)
    assert has_assented(make.approval(assents=(given,)), person(ANN))
    assert not has_assented(make.approval(assents=(given,)), person(BOB))


def test_the_same_rows_again_are_no_change() -> None:
    """They begin no new count; other rows do. AP-15, AP-17."""
    rows = ({"id": 1}, {"id": 2})
    group = Group("rows", "Rows", (), rows, "id")
    approval = make.approval(groups=(group,), required_approvals=4)
    for email, edited in ((ANN, None), (BOB, {"rows": [*rows]}), (CYD, None)):
        approval = decide(approval, Approve(edited), decider(email), NOW).record
    assert len(approval.assents) == 3
    approval = decide(approval, Approve({"rows": [rows[0]]}), decider(DAN), NOW).record
    assert [one.by for one in approval.assents] == [DAN]


def test_who_may_not_approve_cannot_be_stood_in_for() -> None:
    """The starter's delegate is the starter; anybody else's is not. AP-18, AP-36."""
    require_other_eyes(OWNED, person(DAN))
    require_other_eyes(OWNED, person(DAN), Delegation(CYD, "acc_cyd", DAN, LATER))
    for who, given_for in (
        (person(BOB), None),
        (person(DAN), Delegation(BOB, "acc_bob", DAN, LATER)),
    ):
        with pytest.raises(Forbidden):
            require_other_eyes(OWNED, who, given_for)


def test_of_whom_nothing_is_awaited() -> None:
    """Who has decided, and who stands only for them; however names are written. AP-38."""
    for by in (Delegation(BOB.upper(), "", DAN, LATER), Delegation("", "ACC_BOB", DAN, LATER)):
        approval = evolve(DELEGABLE, approvers=(by.by or " acc_Bob ", CYD), delegations=(by,))
        assert idle(approval) == frozenset()
        said = evolve(approval, assents=(Assent(BOB, "acc_bob", NOW),))
        assert DAN in idle(said)
        assert CYD not in idle(said)
        assert approver_ids(said, (), LATER) == (CYD,)


def test_a_delegate_may_have_a_long_name() -> None:
    """An address of 198 characters; the history may be almost full."""
    history = (HistoryEntry(NOW, "changed"),) * (MAX_HISTORY - 1)
    approval = evolve(DELEGABLE, history=history)
    assert let(approval, BOB, f"{'x' * 64}@{'y' * 60}.{'z' * 60}.example.org").delegations


def test_until_the_approval_expires_is_not_too_long() -> None:
    """A delegation ends with the approval at the latest."""
    assert let(DELEGABLE, BOB, DAN, DELEGABLE.expires_at).delegations


# Rounds of changes. AP-31.

REVISABLE = make.approval(revise_to="work", revisions_left=1, round=3)


def test_changes_are_asked_for_with_a_reason() -> None:
    """The approval is over, and the step's output says so. AP-31."""
    after = decide(REVISABLE, Revise(), decider(ANN, " more rows "), NOW).record
    assert (after.status, after.comment) == (S.REVISED, " more rows ")
    assert step_output(after)["decision"] == "revise"


Refused = tuple[Callable[[], object], WfError]


def revise(comment: str | None, **fields: object) -> Callable[[], object]:
    approval = evolve(REVISABLE, **fields)
    return lambda: decide(approval, Revise(), decider(ANN, comment), NOW)


def delegate(to: str = DAN, until: EpochMs = LATER, *, account: str | None = "acc_bob", **fields):  # type: ignore[no-untyped-def]
    by = evolve(decider(BOB), account=account)
    approval = evolve(DELEGABLE, **fields)
    return lambda: decide(approval, Delegate(to, until), by, NOW)


NOT_YOU = InvalidInput("to", "must be the email or account id of somebody else")
NOT_THEN = InvalidInput("until", "must be in the future, and not after the approval expires")
MANY = {"rows": ({"id": 1},) * (MAX_HISTORY_ROWS // 20)}
TOO_OFTEN = Forbidden("This was changed too often: approve it as it stands, or reject it")
WHY = InvalidInput("comment", "is required: say what is to be changed")
OVER = AlreadyDecided("The approval has already been decided", "appr_1")
REFUSED: list[Refused] = [
    (
        revise("why", revise_to=None),
        InvalidInput("decision", "revise needs a step that says onRevise; approve or reject"),
    ),
    (revise(None), WHY),
    (revise(" "), WHY),
    (
        revise("why", revisions_left=0),
        NoMoreRevisions("Changes were asked for 2 times; approve or reject", "appr_1"),
    ),
    (
        delegate(delegable=False),
        Forbidden("Approvers of this may not let others decide for them"),
    ),
    (delegate(" "), NOT_YOU),
    (delegate(BOB.upper()), NOT_YOU),
    (delegate("acc_BOB"), NOT_YOU),
    (delegate("", account=None), NOT_YOU),
    (delegate("x" * 201), NOT_YOU),
    (delegate("a b@example.org"), NOT_YOU),
    (delegate(history=(HistoryEntry(NOW, "changed"),) * MAX_HISTORY), TOO_OFTEN),
    (delegate(history=(HistoryEntry(NOW, "changed", rows_after=MANY),) * 20), TOO_OFTEN),
    (delegate(until=NOW), NOT_THEN),
    (delegate(until=later(DELEGABLE.expires_at, 1)), NOT_THEN),
    (delegate(status=S.APPROVED), OVER),
    (delegate(expires_at=NOW), OVER),
    (revise("why", expires_at=NOW), OVER),
    (lambda: decide(evolve(STAGED, status=S.REVISED), Expire(), BY_RULE, NOW), OVER),
]


@pytest.mark.parametrize(("deed", "wanted"), REFUSED)
def test_what_is_refused_is_refused_in_these_words(
    deed: Callable[[], object], wanted: WfError
) -> None:
    """AP-31, AP-36: they name the field and what would do."""
    with pytest.raises(type(wanted)) as caught:
        deed()
    assert astuple(caught.value) == astuple(wanted)  # type: ignore[arg-type]
