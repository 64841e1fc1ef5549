"""`editedItems`: what is released, and every mistake that decides nothing. AP-7 to AP-9."""

from copy import deepcopy

import pytest
from attrs import evolve
from hypothesis import assume, given
from hypothesis import strategies as st

from wfcore.errors import InvalidInput, TemplateFailed
from wfcore.instants import DAY, DurationMs, later
from wfcore.model.approval import Approval, ApprovalStatus, Group, HistoryEntry, Purpose
from wfcore.model.workflow import ApprovalStep, Column, ColumnType, GroupSpec
from wfcore.rules.limits import MAX_APPROVAL_ROWS
from wfcore.rules.opening import as_text, ask_for_budget, open_approval
from wfcore.rules.release import original_rows, released_rows, same
from wfcore.testing import builders
from wfcore.testing.builders import NOW
from wfcore.testing.strategies import approvals, column_values, groups, json_values, scalars

WRONG = {
    ColumnType.STRING: [1, True, ["a"], {"a": 1}],
    ColumnType.NUMBER: ["1", True, False, [1]],
    ColumnType.BOOLEAN: [0, 1, "true", [True]],
    ColumnType.DATE: ["tomorrow", "2026-02-30", "20260101", "2026-W01-1", "2026-1-01", 20260101],
    ColumnType.ENUM: ["b", 1.5, False, "1", ["a"]],
}


def of(*given_groups: Group) -> Approval:
    return builders.approval(groups=given_groups)


def with_row_key(group: Group) -> Group:
    return Group(group.name, group.title, group.columns, group.items, "id")


def refused(approval: Approval, edited) -> InvalidInput:
    with pytest.raises(InvalidInput) as mistake:
        released_rows(approval, edited)
    assert str(mistake.value).startswith("editedItems.")
    return mistake.value


@given(approvals())
def test_the_original_rows_may_be_released_by_name(approval):
    """AP-8: what the reviewer was shown passes every check of its own, in any order."""
    edited = {group.name: list(reversed(group.items)) for group in approval.groups}
    released = released_rows(approval, edited)
    assert released == {name: tuple(rows) for name, rows in edited.items()}
    assert original_rows(approval) == {group.name: group.items for group in approval.groups}


@given(approvals())
def test_groups_left_out_release_nothing(approval):
    """AP-8: with `editedItems`, only the rows submitted go on."""
    assert released_rows(approval, {}) == {group.name: () for group in approval.groups}


@given(approvals(), st.text(), json_values())
def test_an_unknown_group_is_refused(approval, name, rows):
    """AP-9: the field is named, and so are the groups there are."""
    assume(name not in original_rows(approval))
    mistake = refused(approval, {name: rows})
    assert mistake.field == f"editedItems.{name}"


@given(groups(), json_values().filter(lambda rows: not isinstance(rows, list)))
def test_rows_that_are_no_array_are_refused(group, rows):
    """AP-9: a group's rows are an array, nothing else."""
    refused(of(group), {group.name: rows})


@given(groups(), json_values().filter(lambda row: not isinstance(row, dict)))
def test_a_row_that_is_no_object_is_refused(group, row):
    """AP-9: so is each row an object, at any place."""
    mistake = refused(of(group), {group.name: [*group.items, row]})
    assert mistake.field == f"editedItems.{group.name}[{len(group.items)}]"


@given(st.sampled_from([(type, value) for type, values in WRONG.items() for value in values]))
def test_a_value_of_the_wrong_type_is_refused(case):
    """AP-9: true is no number, 1 is no boolean, and a date is a calendar's day."""
    type, value = case
    group = Group("rows", "Rows", (Column("c", "C", type, options=("a", 1)),), ())
    mistake = refused(of(group), {"rows": [{"c": value}]})
    assert mistake.field == "editedItems.rows[0].c"


@given(st.data(), st.sampled_from(ColumnType))
def test_a_value_of_the_right_type_is_released(data, type):
    """AP-8: and stays as it was submitted; null stands for no value."""
    column = Column("c", "C", type, options=("a", 1))
    rows = [{"c": data.draw(column_values(column))}, {"c": None}, {}]
    assert released_rows(of(Group("rows", "Rows", (column,), ())), {"rows": rows}) == {
        "rows": tuple(rows)
    }


@given(st.sampled_from(ColumnType), st.sampled_from([{}, {"c": None}]))
def test_a_required_value_may_not_be_missing(type, row):
    """AP-9: absent and null are both missing."""
    group = Group("rows", "Rows", (Column("c", "C", type, required=True),), ())
    assert refused(of(group), {"rows": [row]}).field == "editedItems.rows[0].c"


@given(groups().filter(lambda group: group.items), st.data())
def test_a_row_may_be_released_once(group, data):
    """AP-9: with a row key, a repeated row is refused."""
    row = data.draw(st.sampled_from(group.items))
    refused(of(with_row_key(group)), {group.name: [row, row]})


@given(groups(), st.data())
def test_a_row_of_another_key_is_refused(group, data):
    """AP-9: a key that no original row has, or none at all; 1 is not "1" and not true."""
    known = [row["id"] for row in group.items]
    key = data.draw(scalars() | st.sampled_from([str(k) for k in known] or ["x"]) | st.just(True))
    assume(not any(same(key, k) for k in known))
    row = {**(group.items[0] if group.items else {}), "id": key}
    row |= {c.key: data.draw(column_values(c)) for c in group.columns}
    refused(of(with_row_key(group)), {group.name: [row]})


def test_a_key_that_went_through_javascript_is_the_same_key():
    """AP-8: 1.0 comes back from a browser as 1, and still names its row."""
    group = Group("rows", "Rows", (), ({"id": 1.0}, {"id": 2}), "id")
    assert released_rows(of(group), {"rows": [{"id": 1}, {"id": 2.0}]})["rows"][0] == {"id": 1}


@given(groups().filter(lambda group: group.items and group.columns), st.data())
def test_a_read_only_column_may_not_change(group, data):
    """AP-9: with a row key, an edited value in a read-only column is refused, others are free."""
    group = with_row_key(group)
    row = data.draw(st.sampled_from(group.items))
    column = data.draw(st.sampled_from(group.columns))
    after = data.draw(column_values(column))
    changed = {**row, column.key: after}
    if column.editable or same(row[column.key], after):
        assert released_rows(of(group), {group.name: [changed]})[group.name] == (changed,)
    else:
        mistake = refused(of(group), {group.name: [changed]})
        assert mistake.field == f"editedItems.{group.name}[0].{column.key}"


def test_more_rows_than_a_reviewer_could_have_seen_are_refused():
    """LM-7: at most ten thousand rows."""
    group = Group("rows", "Rows", (), ())
    most = ({},) * MAX_APPROVAL_ROWS
    assert released_rows(of(group), {"rows": most})["rows"] == most
    refused(of(group), {"rows": [{}] * (MAX_APPROVAL_ROWS + 1)})


@given(json_values())
def test_json_equality_is_reflexive(value):
    """Every value is the same as its copy."""
    assert same(value, deepcopy(value))


@given(json_values(), st.sampled_from([(True, 1), (False, 0), (1, "1"), (None, False), ([], {})]))
def test_json_equality_tells_types_apart(value, pair):
    """true is not 1, at any depth; 1 and 1.0 are one number."""
    one, other = pair
    assert not same(one, other)
    assert not same([value, {"k": one}], [value, {"k": other}])
    assert same({"k": 1}, {"k": 1.0})


@pytest.mark.parametrize(
    "pair", [([1], 1), ([], ""), (["a"], "a"), ([1], [1, 1]), ({"a": 1}, ["a"]), ({"a": 1}, {})]
)
def test_json_equality_tells_shapes_apart(pair):
    """A list is no text, an object no list, and neither is a part of another."""
    one, other = pair
    assert not same(one, other)
    assert not same(other, one)


# Opening


def opened(rows, row_key="id", message="Please") -> Approval:
    spec = GroupSpec("rows", "Rows", rows, row_key=row_key)
    step = ApprovalStep("review", message, groups=(spec,))
    return open_approval(builders.execution(), step, "review", "appr_1", NOW, lambda value: value)


@given(approvals(), st.integers(2, 10**10), st.booleans(), st.integers(1, 3))
def test_an_approval_opens_pending_until_its_timeout(asked, timeout_ms, self_approval, required):
    """AP-1: PENDING, `expiresAt` = `createdAt` + `timeout`, everything as its step says."""
    run = builders.execution("exec_9", workflow_id="wf_7", workflow_owner_id="o1", owner_id="o2")
    groups = tuple(evolve(group, row_key=None) for group in asked.groups)
    step = ApprovalStep(
        "review",
        "Please",
        DurationMs(timeout_ms),
        asked.approvers,
        tuple(GroupSpec(one.name, one.title, [*one.items], one.columns) for one in groups),
        required_approvals=required,
        allow_self_approval=self_approval,
        reminders=(DurationMs(timeout_ms), DurationMs(1)),
    )
    assert open_approval(run, step, "rounds.1.review", "appr_9", NOW, lambda value: value) == (
        Approval(
            "appr_9",
            "exec_9",
            "wf_7",
            "o1",
            "o2",
            "rounds.1.review",
            ApprovalStatus.PENDING,
            "Please",
            DurationMs(timeout_ms),
            NOW,
            later(NOW, timeout_ms),
            asked.approvers,
            groups,
            history=(HistoryEntry(NOW, "created"),),
            required_approvals=required,
            allow_self_approval=self_approval,
            reminders=(later(NOW, timeout_ms - 1),),
        )
    )


def test_a_group_holds_ten_thousand_rows():
    """LM-7: one more would be refused."""
    most = ({},) * MAX_APPROVAL_ROWS
    assert opened(most, row_key=None).groups[0].items == most


def test_a_row_key_is_kept():
    """AP-1: the rows can be pointed at after a restart as well."""
    assert opened([{"id": 1}]).groups == (Group("rows", "Rows", (), ({"id": 1},), "id"),)


def test_a_question_for_more_budget():
    """BU-2: open for a day, to the default approvers, about the budget and nothing else."""
    run = builders.execution("exec_9", workflow_id="wf_7", workflow_owner_id="o1", owner_id="o2")
    assert ask_for_budget(run, "think", "it is spent", "appr_9", NOW) == Approval(
        "appr_9",
        "exec_9",
        "wf_7",
        "o1",
        "o2",
        "think",
        ApprovalStatus.PENDING,
        "think: it is spent. Approving allows as much again; rejecting cancels.",
        DAY,
        NOW,
        later(NOW, DAY),
        history=(HistoryEntry(NOW, "created"),),
        purpose=Purpose.BUDGET,
    )


@given(st.text("abcxyz", min_size=4), st.text("0123"))
def test_an_approval_shows_no_secret(secret, other):
    """SC-1: its message and rows are masked, and go on as the reviewer saw them."""
    run = builders.execution(variables={"token": secret}, secrets=("token",))
    rows = [{"id": other, "seen": f"with {secret}", "nested": {"list": [secret]}}]
    step = ApprovalStep("review", f"Use {secret}?", groups=(GroupSpec("rows", "Rows", rows),))
    new = open_approval(run, step, "review", "appr_1", NOW, lambda value: value)
    assert new.message == "Use ***?"
    assert new.groups[0].items == ({"id": other, "seen": "with ***", "nested": {"list": ["***"]}},)


@given(json_values().filter(lambda rows: not isinstance(rows, list)))
def test_rows_must_render_to_a_list(rows):
    """AP-1: anything else fails the step."""
    with pytest.raises(TemplateFailed):
        opened(rows)


@given(groups(), st.sampled_from([None, "text", 7, [], {"name": "no key"}, {"id": None}]))
def test_a_row_that_nobody_could_point_at_fails_the_step(group, row):
    """AP-1: no object, or without its row key."""
    with pytest.raises(TemplateFailed):
        opened([*group.items, row])


@pytest.mark.parametrize(
    "twin", [(1, 1), (1, 1.0), ("a", "a"), ({"a": 1, "b": 2}, {"b": 2, "a": 1})]
)
def test_two_rows_of_one_key_fail_the_step(twin):
    """AP-1: equal keys cannot be told apart, however they are written."""
    with pytest.raises(TemplateFailed):
        opened([{"id": key} for key in twin])


def test_keys_of_different_types_are_different_keys():
    """AP-1: 1, "1" and true name three rows, and each can be released."""
    rows = [{"id": 1}, {"id": "1"}, {"id": True}]
    approval = opened(rows)
    assert released_rows(approval, {"rows": rows})["rows"] == tuple(rows)


@pytest.mark.parametrize(
    ("value", "text"),
    [("a", "a"), (7, "7"), (True, "true"), (None, "null"), ({"a": "b"}, '{"a":"b"}')],
)
def test_a_message_that_rendered_to_no_text_is_json(value, text):
    """AP-1: a reviewer never sees how Python writes a value."""
    assert as_text(value) == text
    assert opened([], message=value).message == text
