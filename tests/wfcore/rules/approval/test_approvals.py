"""Approvals: one decision wins, the expiry is exact, and who decided what stays on record."""

from contextlib import suppress

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from wfcore.effects import Outcome
from wfcore.errors import AlreadyDecided
from wfcore.model.approval import ApprovalStatus, Assent, DecisionSource, HistoryEntry, Verdict
from wfcore.rules.approval.machine import (
    BY_END,
    BY_TIMEOUT,
    Approve,
    Decider,
    Expire,
    Reject,
    Withdraw,
    decide,
    expired,
    step_output,
)
from wfcore.rules.approval.released_rows import original_rows
from wfcore.testing.strategies.values import approvals, texts
from wfcore.time import EpochMs
from wfcore.wire.decisions import command

BECOMES = {
    Approve: ApprovalStatus.APPROVED,
    Reject: ApprovalStatus.REJECTED,
    Expire: ApprovalStatus.REJECTED,
    Withdraw: ApprovalStatus.CANCELLED,
}
TOLD = {Approve: "approved", Reject: "rejected", Expire: "expired", Withdraw: "cancelled"}
decisions = st.sampled_from([Approve(), Reject(), Expire(), Withdraw()])
voices = st.builds(
    Decider, st.sampled_from(("acc_1", "acc_2")), st.sampled_from(DecisionSource), texts()
)


@given(approvals(), st.lists(st.tuples(decisions, voices), min_size=1, max_size=6))
def test_of_any_decisions_exactly_one_wins(approval, asked):
    """AP-6: the first decision stands for good, every further one is refused."""
    won = []
    for decision, decider in asked:
        with suppress(AlreadyDecided):
            approval = decide(approval, decision, decider, approval.created_at).record
            won.append((decision, decider))
    (decision, decider) = won[0]
    assert won == asked[:1]
    assert approval.status is BECOMES[type(decision)]
    assert (approval.decided_by, approval.decision_source) == (decider.by, decider.source)
    assert (approval.comment, approval.decided_at) == (decider.comment, approval.created_at)


@given(approvals(), st.integers(-5, 5), st.sampled_from([Approve(), Reject()]), voices)
def test_from_expires_at_on_nobody_decides(approval, by, decision, decider):
    """AP-4: one millisecond before it is open, at `expires_at` and after it counts as rejected."""
    now = EpochMs(approval.expires_at + by)
    assert expired(approval, now) is (by >= 0)
    if by < 0:
        assert decide(approval, decision, decider, now).record.status is BECOMES[type(decision)]
    else:
        with pytest.raises(AlreadyDecided):
            decide(approval, decision, decider, now)


@given(approvals(), st.integers(0, 10**9))
def test_expiry_is_a_rejection_by_nobody(approval, late):
    """AP-4: the source is `timeout`, nobody's name is on it."""
    now = EpochMs(approval.expires_at + late)
    decided = decide(approval, Expire(), BY_TIMEOUT, now).record
    assert decided.status is ApprovalStatus.REJECTED
    assert (decided.decided_by, decided.decision_source) == (None, DecisionSource.TIMEOUT)


@given(approvals(), decisions)
def test_a_decided_approval_is_not_expired(approval, decision):
    """AP-4: only what is still open can run out of time."""
    decided = decide(approval, decision, BY_END, approval.created_at).record
    assert not expired(decided, EpochMs(approval.expires_at + 1))


@given(approvals(), decisions, voices)
def test_every_decision_is_in_the_history(approval, decision, decider):
    """AP-12: the history grows by one entry that says who, when, through which door and why."""
    decided = decide(approval, decision, decider, approval.created_at).record
    *earlier, entry = decided.history
    assert tuple(earlier) == approval.history
    assert (entry.by, entry.source, entry.comment) == (decider.by, decider.source, decider.comment)
    assert entry.at == approval.created_at


@given(approvals(), voices)
def test_a_plain_approval_releases_the_original_rows(approval, decider):
    """AP-7: without `editedItems` the rows go on unchanged, as the step's output."""
    decided = decide(approval, Approve(), decider, approval.created_at).record
    assert decided.groups == approval.groups
    assert step_output(decided) == {
        "decision": "approve",
        "comment": decider.comment,
        "decidedBy": decider.by,
        "groups": {name: list(rows) for name, rows in original_rows(approval).items()},
        "answers": {},
        "receipts": [],
    }


@given(approvals(), st.data())
def test_an_edited_approval_releases_exactly_the_rows_given(approval, data):
    """AP-8: the rows submitted are the step's output; before and after are in the history."""
    edited = {
        group.name: data.draw(st.lists(st.sampled_from(group.items), unique_by=id))
        for group in approval.groups
        if group.items and data.draw(st.booleans())
    }
    decided = decide(approval, Approve(edited), BY_END, approval.created_at)
    output = step_output(decided.record)
    wanted = {group.name: list(edited.get(group.name, [])) for group in approval.groups}
    assert output["groups"] == wanted
    entry = decided.record.history[-1]
    assert entry.rows_before == original_rows(approval)
    assert entry.rows_after == {name: tuple(rows) for name, rows in wanted.items()}


@given(approvals(), decisions, voices | st.just(BY_END), st.none() | st.just("acc_3"))
def test_a_decision_changes_nothing_but_what_it_decides(approval, decision, decider, account):
    """AP-1, AP-12: no word, row, deadline or approver of what was asked; a yes is counted."""
    now, decider = approval.created_at, evolve(decider, account=account)
    decided = decide(approval, decision, decider, now)
    entry = HistoryEntry(now, TOLD[type(decision)], decider.by, decider.source, decider.comment)
    by_rule = decider.source is DecisionSource.RULE
    yes = Assent(decider.by or "", account or decider.by or "", now, is_rule=by_rule)
    wanted = evolve(
        approval,
        status=BECOMES[type(decision)],
        decided_at=now,
        decided_by=decider.by,
        decision_source=decider.source,
        comment=decider.comment,
        history=(*approval.history, entry),
        assents=(yes,) if isinstance(decision, Approve) else (),
    )
    assert decided == Outcome(wanted)


@given(approvals(), voices)
def test_a_yes_that_is_not_the_last_leaves_the_question_open(approval, decider):
    """AP-15: the record has one assent and one line of history more, and nothing else."""
    approval, now = evolve(approval, required_approvals=2), approval.created_at
    entry = HistoryEntry(now, "approved", decider.by, decider.source, decider.comment)
    yes = Assent(decider.by, decider.by, now, is_rule=decider.source is DecisionSource.RULE)
    wanted = evolve(approval, history=(*approval.history, entry), assents=(yes,))
    assert decide(approval, Approve(), decider, now) == Outcome(wanted)


def test_the_two_verdicts():
    """AP-2, AP-3: approve is yes, with the rows given; reject is no."""
    assert command(Verdict.APPROVE, {"rows": []}) == Approve({"rows": []})
    assert command(Verdict.APPROVE) == Approve(None)
    assert command(Verdict.REJECT) == Reject()


@given(approvals())
def test_an_ended_execution_withdraws_its_question(approval):
    """AP-5: the approval is CANCELLED, nobody decided it."""
    decided = decide(approval, Withdraw(), BY_END, approval.created_at).record
    assert decided.status is ApprovalStatus.CANCELLED
    assert (decided.decided_by, decided.decision_source) == (None, None)
