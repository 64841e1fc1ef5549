"""Quorums: distinct approvers agree to the same rows, or nobody's yes counts."""

from contextlib import suppress
from hashlib import sha256

import pytest
from attrs import evolve
from hypothesis import assume, given
from hypothesis import strategies as st

from wfcore.errors import AlreadyDecided, Forbidden, InvalidInput, ItemsChanged
from wfcore.model.access import Guest, Principal
from wfcore.model.approval import ApprovalStatus, DecisionSource, Group
from wfcore.model.workflow import ApprovalStep, Column
from wfcore.rules.approval.agreement import items_hash, require_seen
from wfcore.rules.approval.machine import (
    Approve,
    Decider,
    Reject,
    decide,
    due_reminders,
    has_assented,
    next_reminder,
    step_output,
)
from wfcore.rules.approval.released_rows import standing_rows
from wfcore.rules.auth.access import require_other_eyes
from wfcore.rules.execution.open_approval import open_approval
from wfcore.testing import builders as make
from wfcore.testing.builders import NOW
from wfcore.testing.strategies.values import approvals, json_values
from wfcore.time import DurationMs, EpochMs

S = ApprovalStatus
PEOPLE = ("acc_1", "acc_2", "acc_3", "acc_4")
ROWS = ({"id": 1, "amount": 10}, {"id": 2, "amount": 20})
COLUMNS = (Column("id", "Order", editable=False), Column("amount", "Amount"))


def decider(account: str, **more: object) -> Decider:
    return Decider(f"{account}@example.org", DecisionSource.API, "c", account, **more)  # type: ignore[arg-type]


def asked(required: int, **fields: object):
    group = Group("rows", "Rows", (), ROWS, "id")
    return make.approval(groups=(group,), required_approvals=required, **fields)


@given(approvals(), st.integers(1, 4), st.permutations(PEOPLE))
def test_exactly_the_last_required_yes_approves(approval, required, people):
    """PENDING until as many distinct approvers as required said yes, then APPROVED. AP-15."""
    approval = evolve(approval, required_approvals=required)
    for count, who in enumerate(people[:required], 1):
        assert approval.status is S.PENDING
        assert approval.decided_at is approval.decided_by is None
        approval = decide(approval, Approve(), decider(who), NOW).record
        assert len(approval.assents) == count
    assert approval.status is S.APPROVED
    assert approval.decided_by == f"{people[required - 1]}@example.org"
    assert [entry.action for entry in approval.history[-required:]] == ["approved"] * required


@given(
    st.integers(1, 4),
    st.lists(
        st.tuples(
            st.sampled_from(PEOPLE),
            st.sampled_from((None, [ROWS[0]], [ROWS[1]], [*ROWS])),
        ),
        max_size=12,
    ),
)
def test_what_is_released_is_what_everybody_who_counts_agreed_to(required, deeds):
    """Whoever counts has said yes to exactly the rows that are released. AP-16, AP-17."""
    approval, agreed_to = asked(required), {}
    for who, edit in deeds:
        with suppress(AlreadyDecided):
            edited = None if edit is None else {"rows": edit}
            approval = decide(approval, Approve(edited), decider(who), NOW).record
            agreed_to[who] = standing_rows(approval)
    accounts = [one.account for one in approval.assents]
    assert len(set(accounts)) == len(accounts) <= required
    assert all(agreed_to[one] == standing_rows(approval) for one in accounts)
    assert (approval.status is S.APPROVED) is (len(accounts) == required)
    if approval.status is S.APPROVED:
        assert step_output(approval)["groups"] == {"rows": list(standing_rows(approval)["rows"])}


@given(st.integers(2, 4), st.sampled_from(PEOPLE))
def test_the_same_yes_twice_is_refused_and_changes_nothing(required, who):
    """A repeat, plain or with the rows as they stand, is no second approver. AP-16."""
    approval = decide(asked(required), Approve(), decider(who), NOW).record
    for again in (Approve(), Approve({"rows": [dict(row) for row in ROWS]})):
        with pytest.raises(AlreadyDecided, match="already"):
            decide(approval, again, decider(who), NOW)
    assert has_assented(approval, Principal(make.account(who)))


@given(st.integers(2, 4), st.integers(0, 3), st.sampled_from(PEOPLE))
def test_one_rejection_decides(required, before, who):
    """Whoever rejects, also after a yes of his own, ends it. AP-3, AP-15."""
    approval = asked(required)
    for one in PEOPLE[: min(before, required - 1)]:
        approval = decide(approval, Approve(), decider(one), NOW).record
    decided = decide(approval, Reject(), decider(who), NOW).record
    assert decided.status is S.REJECTED
    assert decided.assents == approval.assents


def test_a_changed_row_begins_the_count_anew():
    """The editor's yes is the only one left; the others may say yes to the new rows. AP-17."""
    approval = decide(asked(3), Approve(), decider("acc_1"), NOW).record
    approval = decide(approval, Approve({"rows": [ROWS[1]]}), decider("acc_2"), NOW).record
    assert [one.account for one in approval.assents] == ["acc_2"]
    assert standing_rows(approval) == {"rows": (ROWS[1],)}
    approval = decide(approval, Approve(), decider("acc_1"), NOW).record
    approval = decide(approval, Approve(), decider("acc_3"), NOW).record
    assert (approval.status, standing_rows(approval)) == (S.APPROVED, {"rows": (ROWS[1],)})


def test_an_editor_may_edit_again():
    """Who has said yes may change the rows after all: his yes moves to the new ones. AP-17."""
    approval = decide(asked(2), Approve({"rows": []}), decider("acc_1"), NOW).record
    approval = decide(approval, Approve({"rows": [ROWS[0]]}), decider("acc_1"), NOW).record
    assert (approval.status, len(approval.assents)) == (S.PENDING, 1)
    assert standing_rows(approval) == {"rows": (ROWS[0],)}


def test_a_row_left_out_can_be_taken_back():
    """Edits are checked against the rows that were asked about, not the last edit. AP-9, AP-17."""
    approval = decide(asked(2), Approve({"rows": [ROWS[0]]}), decider("acc_1"), NOW).record
    back = [dict(row) for row in ROWS]
    approval = decide(approval, Approve({"rows": back}), decider("acc_2"), NOW).record
    assert standing_rows(approval) == {"rows": tuple(back)}
    with pytest.raises(InvalidInput):
        decide(approval, Approve({"rows": [{"id": 3}]}), decider("acc_1"), NOW)


def test_a_read_only_column_stays_as_it_was_asked_about():
    """After an edit a read-only column is still compared with the original value. AP-9, AP-17."""
    group = Group("rows", "Rows", COLUMNS, ({"id": "a", "amount": "1"},), "amount")
    approval = make.approval(groups=(group,), required_approvals=3)
    with pytest.raises(InvalidInput, match="read-only"):
        decide(approval, Approve({"rows": [{"id": "b", "amount": "1"}]}), decider("acc_1"), NOW)
    approval = decide(approval, Approve({"rows": []}), decider("acc_1"), NOW).record
    with pytest.raises(InvalidInput, match="read-only"):
        decide(approval, Approve({"rows": [{"id": "b", "amount": "1"}]}), decider("acc_2"), NOW)


@given(st.sampled_from(("acc_1", "mailto:acc_1@example.org")), st.booleans(), st.booleans())
def test_an_account_and_its_email_are_one_voice(first, is_guest, edits):
    """A yes with the account and one by personal link count once, in either order. PL-3."""
    ann, bob = decider("acc_1"), decider("acc_2")
    by_link = evolve(ann, account="mailto:acc_1@example.org")
    one, other = (ann, by_link) if first == "acc_1" else (by_link, ann)
    edited = Approve({"rows": [ROWS[0]]}) if edits else Approve()
    approval = decide(asked(2), edited, one, NOW).record
    with pytest.raises(AlreadyDecided, match="already"):
        decide(approval, Approve(), other, NOW)
    account = make.account("acc_1")
    who = Guest(account.email.upper(), approval.id) if is_guest else Principal(account)
    assert has_assented(approval, who)
    assert not has_assented(approval, Guest("acc_2@example.org", approval.id))
    approval = decide(approval, Approve({"rows": [ROWS[1]]}), other, NOW).record
    assert (approval.status, len(approval.assents)) == (S.PENDING, 1)
    assert decide(approval, Approve(), bob, NOW).record.status is S.APPROVED


def test_alone_is_enough():
    """The operator's word alone approves, also where his yes counts already. AP-15."""
    approval = decide(asked(4), Approve(), decider("operator"), NOW).record
    decided = decide(approval, Approve(), decider("operator", alone=True), NOW).record
    assert decided.status is S.APPROVED
    assert [one.account for one in decided.assents] == ["operator"]


@given(approvals(), st.sampled_from(("acc_1", "acc_2")), st.booleans())
def test_who_started_it_may_not_approve_where_the_step_says_so(approval, owner, allowed):
    """Only the account that the execution belongs to is kept out, and only if asked for. AP-18."""
    approval = evolve(approval, owner_id=owner, allow_self_approval=allowed)
    for id in ("acc_1", "acc_2"):
        if id == owner and not allowed:
            with pytest.raises(Forbidden):
                require_other_eyes(approval, Principal(make.account(id)))
        else:
            require_other_eyes(approval, Principal(make.account(id)))


@given(json_values(), json_values())
def test_two_hashes_are_the_same_exactly_when_the_rows_are(one, other):
    """Any other value in any row gives another `itemsHash`, and an approve is refused. AP-19."""
    assume(type(one) is not float and type(other) is not float)
    first, second = (
        make.approval(groups=(Group("g", "G", (), ({"v": value},)),)) for value in (one, other)
    )
    equal = items_hash(first) == items_hash(second)
    assert equal is (repr(sorted_deep(one)) == repr(sorted_deep(other)))
    require_seen(first, items_hash(first))
    require_seen(first, None)
    if not equal:
        with pytest.raises(ItemsChanged):
            require_seen(first, items_hash(second))


def sorted_deep(value):
    if isinstance(value, dict):
        return {key: sorted_deep(value[key]) for key in sorted(value)}
    if isinstance(value, list | tuple):
        return [sorted_deep(one) for one in value]
    return value


def test_the_hash_knows_groups_and_order():
    """A row in another group or at another place is another question. AP-19."""
    rows = [(ROWS, ()), ((), ROWS), (ROWS[::-1], ()), ((), ())]
    hashes = {
        items_hash(make.approval(groups=(Group("a", "A", (), first), Group("b", "B", (), second))))
        for first, second in rows
    }
    assert len(hashes) == len(rows)


def test_reminders_are_in_their_order():
    """Each instant once, and none that is not after the beginning. AP-20."""
    before = tuple(map(DurationMs, (50, 1, 99, 50, 100, 101)))
    step = ApprovalStep("review", timeout_ms=DurationMs(100), reminders=before)
    approval = open_approval(make.execution(), step, "review", "appr_1", NOW, lambda value: value)
    assert approval.reminders == (NOW + 1, NOW + 50, NOW + 99)


@given(
    st.lists(st.integers(1, 99) | st.sampled_from((99, 100, 101)), max_size=5),
    st.lists(st.integers(0, 120) | st.sampled_from((0, 1)), max_size=6),
)
def test_each_reminder_is_due_once_from_its_instant_on(before, looks):
    """Looked at whenever, every reminder is found once, at its instant or later. AP-20."""
    step = ApprovalStep(
        "review", timeout_ms=DurationMs(100), reminders=tuple(map(DurationMs, before))
    )
    approval = open_approval(make.execution(), step, "review", "appr_1", NOW, lambda value: value)
    told: list[EpochMs] = []
    for after in sorted(looks):
        due = due_reminders(approval, EpochMs(NOW + after))
        assert all(at <= NOW + after for at in due)
        told += due
        approval = evolve(approval, reminded=approval.reminded + len(due))
        reminder = next_reminder(approval)
        assert reminder is None or reminder > NOW + after
    latest = max(looks, default=-1)
    assert told == sorted({NOW + 100 - one for one in before if 0 < 100 - one <= latest})


def test_the_hash_is_one_that_can_be_kept():
    """SHA-256 of the rows as JSON, keys in order and no blanks, in every version. AP-19."""
    rows = make.approval(groups=(Group("g", "G", (), ({"b": 1, "a": [None, "x"]},)),))
    text = b'{"g":[{"a":[null,"x"],"b":1}]}'
    assert items_hash(rows) == sha256(text).hexdigest()
    reordered = evolve(rows.groups[0], items=({"a": [None, "x"], "b": 1},))
    assert items_hash(evolve(rows, groups=(reordered,))) == items_hash(rows)


def test_what_is_decided_is_not_reminded_of():
    """A decided approval has no reminder left. AP-20."""
    approval = make.approval(reminders=(EpochMs(NOW + 1),))
    decided = decide(approval, Approve(), decider("acc_1"), NOW).record
    assert next_reminder(decided) is None
    assert due_reminders(decided, EpochMs(NOW + 9)) == ()
