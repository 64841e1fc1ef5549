"""The rows of an approval as a person reviews them."""

from wfcore.model.approval import Approval, Group
from wfcore.rules.approval.machine import Approve, Decider, decide
from wfcore.rules.approval.review import ReviewRow, review_rows
from wfcore.testing import builders as make
from wfcore.testing.builders import NOW

FIRST, SECOND, THIRD = ({"id": n, "amount": n * 10} for n in (1, 2, 3))


def _approval(key: str | None, allow_add: bool = False) -> Approval:
    group = Group("g", "G", (), (FIRST, SECOND, THIRD), key, allow_add)
    return make.approval(groups=(group,), required_approvals=3)


def _edited(approval: Approval, by: str, *rows: object) -> Approval:
    decider = Decider(by, None, account=by)
    return decide(approval, Approve({"g": list(rows)}), decider, NOW).record


def _review(approval: Approval) -> tuple[ReviewRow, ...]:
    return review_rows(approval, approval.groups[0])


def test_untouched_rows_stand_as_proposed() -> None:
    """Nobody made a difference."""
    assert _review(_approval("id")) == tuple(ReviewRow(row, row) for row in (FIRST, SECOND, THIRD))


def test_every_proposed_row_is_shown() -> None:
    """One that was left out stands nowhere, one that was changed stands differently. AP-28."""
    changed = {**SECOND, "amount": 21}
    after = _edited(_approval("id"), "ann", changed, THIRD)
    assert _review(after) == (
        ReviewRow(FIRST, None, "ann"),
        ReviewRow(SECOND, changed, "ann"),
        ReviewRow(THIRD, THIRD),
    )


def test_the_last_hand_counts() -> None:
    """Who took a row back to what was proposed leaves no difference; who changed it anew does."""
    once = _edited(_approval("id"), "ann", {**FIRST, "amount": 11}, {**SECOND, "amount": 22})
    twice = _edited(once, "bob", FIRST, {**SECOND, "amount": 23}, THIRD)
    assert [row.by for row in _review(twice)] == [None, "bob", None]


def test_added_rows_come_last() -> None:
    """They were proposed by nobody but the approver who added them."""
    added = {"id": 9, "amount": 90}
    after = _edited(_approval("id", allow_add=True), "ann", added, FIRST, SECOND, THIRD)
    assert _review(after)[3] == ReviewRow(None, added, "ann")


def test_without_a_key_a_row_is_its_place() -> None:
    """As many rows as before are told by their places; of fewer nobody knows which are gone."""
    changed = {**SECOND, "amount": 21}
    same_number = _edited(_approval(None), "ann", FIRST, changed, THIRD)
    assert _review(same_number) == (
        ReviewRow(FIRST, FIRST),
        ReviewRow(SECOND, changed, "ann"),
        ReviewRow(THIRD, THIRD),
    )
    fewer = _edited(_approval(None), "ann", FIRST, THIRD)
    assert _review(fewer) == (ReviewRow(FIRST, FIRST), ReviewRow(THIRD, THIRD))
