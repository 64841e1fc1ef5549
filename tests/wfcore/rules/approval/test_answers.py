"""Answers to an approval's fields: what is taken, who agrees to it, what a hash is of. AP-30."""

import hashlib
import json

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from wfcore.errors import AlreadyDecided, InvalidInput, ItemsChanged
from wfcore.model.approval import Approval, ApprovalStatus, Attachment, DecisionSource
from wfcore.model.workflow import Column, ColumnType
from wfcore.rules.approval.agreement import items_hash, require_seen
from wfcore.rules.approval.machine import (
    BY_TIMEOUT,
    Approve,
    Decider,
    Expire,
    Reject,
    decide,
    step_output,
)
from wfcore.testing import builders as make
from wfcore.testing.builders import NOW
from wfcore.time import EpochMs

FIELDS = (
    Column("amount", "Amount", ColumnType.NUMBER, required=True),
    Column("note", "Note"),
    Column("way", "Way", ColumnType.ENUM, options=("post", "mail")),
)
FILE = Attachment("art_1", "exec_1", "make", "list.csv", 3, "text/csv", "ab" * 32)
AMOUNTS = st.none() | st.integers(0, 3)


def asked(**fields: object) -> Approval:
    return make.approval(fields=FIELDS, **fields)  # type: ignore[arg-type]


def by(name: str) -> Decider:
    return Decider(f"{name}@example.org", DecisionSource.API, None, name)


def approved(approval: Approval, name: str = "ann", **answers: object) -> Approval:
    return decide(approval, Approve(answers=answers or None), by(name), NOW).record  # type: ignore[arg-type]


def refusal(approval: Approval, **answers: object) -> tuple[str, str]:
    with pytest.raises(InvalidInput) as refused:
        approved(approval, **answers)
    return refused.value.field, refused.value.fix


def test_answers_are_on_record_and_in_the_output() -> None:
    """They stand in the order of the fields, with the decision and for the steps that follow."""
    approval = approved(asked(), way="mail", amount=3)
    assert list(approval.answers.items()) == [("amount", 3), ("way", "mail")]
    assert approval.history[-1].answers == approval.answers
    assert step_output(approval)["answers"] == {"amount": 3, "way": "mail"}


def test_an_answer_that_is_none_decides_nothing() -> None:
    """An unknown field, a wrong type, and a required one without answer are named with the fix."""
    assert refusal(asked(), amount="3") == ("answers.amount", "must be a number")
    way = ("answers.way", "must be one of the options: post, mail")
    assert refusal(asked(), amount=3, way="fax") == way
    known = "unknown field; the fields are: amount, note, way"
    assert refusal(asked(), amount=3, sum=4) == ("answers.sum", known)
    assert refusal(make.approval(), sum=4) == ("answers.sum", "unknown field; the fields are: none")
    for wanting in ({}, {"amount": None}, {"note": "x"}):
        assert refusal(asked(), **wanting) == ("answers.amount", "is required: Amount")
    needed = make.approval(fields=(Column("why", "Why", required=True),))
    for blank in ("", " ", "\u00a0", "\u200b\u200d"):
        assert refusal(needed, why=blank) == ("answers.why", "is required: Why")


def test_who_rejects_answers_nothing() -> None:
    """A required field is required of those who approve."""
    rejected = decide(asked(), Reject(), by("ann"), NOW).record
    assert (rejected.status, rejected.answers) == (ApprovalStatus.REJECTED, {})
    assert rejected.history[-1].answers is None


def test_without_fields_nothing_is_asked() -> None:
    """The history of such an approval has no answers, and its output an empty object."""
    approval = approved(make.approval())
    assert approval.history[-1].answers is None
    assert step_output(approval)["answers"] == {}


@given(AMOUNTS, st.none() | st.just("x"), AMOUNTS, st.none() | st.just("x") | st.just("y"))
def test_who_comes_second_agrees_to_the_answers_or_begins_the_count_anew(
    amount: int | None, note: str | None, second: int | None, other: str | None
) -> None:
    """What is left out stays as it is; other answers make the second the first of the count."""
    first = approved(asked(required_approvals=3), "ann", amount=amount or 7, note=note)
    given_now = {"amount": second, "note": other}
    left = {key: value for key, value in given_now.items() if value is not None}
    again = approved(first, "bob", **left)
    assert again.answers == {**first.answers, **left}
    same = again.answers == first.answers
    assert [one.account for one in again.assents] == (["ann", "bob"] if same else ["bob"])
    assert again.status is ApprovalStatus.PENDING


def test_null_takes_an_answer_back() -> None:
    """The one who takes it back is the first of the count again; without a change nobody is."""
    first = approved(asked(required_approvals=3), "ann", amount=1, note="x")
    taken = approved(first, "bob", note=None)
    assert taken.answers == {"amount": 1}
    assert [one.account for one in taken.assents] == ["bob"]
    with pytest.raises(AlreadyDecided):
        approved(taken, "bob", amount=1)


@pytest.mark.parametrize("attachments", [(), (FILE,)])
@pytest.mark.parametrize("answers", [{}, {"amount": 1}])
def test_a_hash_can_be_worked_out_by_anybody(attachments: tuple, answers: dict) -> None:
    """AP-29: of the rows alone, or of rows, attachments and answers if there are any."""
    approval = evolve(asked(), attachments=attachments, answers=answers)
    rows = {group.name: list(group.items) for group in approval.groups}
    files = [["make", "list.csv", "ab" * 32] for _ in attachments]
    whole = {"groups": rows, "attachments": files, "answers": answers}
    agreed = whole if attachments or answers else rows
    text = json.dumps(agreed, sort_keys=True, separators=(",", ":"))
    assert items_hash(approval) == hashlib.sha256(text.encode()).hexdigest()


@pytest.mark.parametrize("decision", [Approve(), Reject()])
def test_nobody_decides_after_the_time(decision: Approve | Reject) -> None:
    """AP-4, AP-6: from the instant of the expiry on; the millisecond before it is in time."""
    approval = make.approval(expires_at=NOW)
    assert decide(approval, decision, by("ann"), EpochMs(NOW - 1)).record.decided_at == NOW - 1
    with pytest.raises(AlreadyDecided) as refused:
        decide(approval, decision, by("ann"), NOW)
    assert (str(refused.value), refused.value.approval_id) == (
        "The approval has already been decided",
        approval.id,
    )
    assert decide(approval, Expire(), BY_TIMEOUT, NOW).record.status is ApprovalStatus.REJECTED


def test_who_saw_other_answers_is_told() -> None:
    """AP-19: an approver who read it before the answers changed agrees to nothing."""
    before = asked(required_approvals=2)
    after = approved(before, "ann", amount=1)
    require_seen(after, items_hash(after))
    with pytest.raises(ItemsChanged) as refused:
        require_seen(after, items_hash(before))
    why = "expectedItemsHash: what you saw has changed; read the approval again"
    assert (str(refused.value), refused.value.approval_id) == (why, after.id)
