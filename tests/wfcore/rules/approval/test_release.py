"""`editedItems`: what is released, and every mistake that decides nothing. AP-7 to AP-9."""

from copy import deepcopy

import pytest
from attrs import evolve
from hypothesis import assume, given
from hypothesis import strategies as st

from wfcore.errors import InvalidInput
from wfcore.model.approval import Approval, Group, HistoryEntry
from wfcore.model.workflow import Column, ColumnType
from wfcore.rules.approval.released_rows import key_text, original_rows, released_rows, same
from wfcore.rules.limits import MAX_APPROVAL_ROWS
from wfcore.testing import builders
from wfcore.testing.builders import NOW
from wfcore.testing.strategies.values import approvals, column_values, groups, json_values, scalars

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


@pytest.mark.parametrize("editable", [True, False])
def test_a_value_of_another_type_than_its_column_passes_unchanged(editable):
    """AP-9: what the workflow proposed is its own affair; what the reviewer writes is checked."""
    columns = (Column("id", "Id", editable=editable), Column("amount", "Amount", ColumnType.NUMBER))
    approval = of(Group("refunds", "Refunds", columns, ({"id": 1, "amount": 2},), "id"))
    row = {"id": 1, "amount": 3}
    assert released_rows(approval, {"refunds": [row]}) == {"refunds": (row,)}
    assert "id" in str(refused(approval, {"refunds": [{"id": "1", "amount": 3}]}))
    assert "amount" in str(refused(approval, {"refunds": [{"id": 1, "amount": "3"}]}))


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
    group = Group("rows", "Rows", (Column("c", "C", type, options=("a", 1)),), ({},))
    mistake = refused(of(group), {"rows": [{"c": value}]})
    assert mistake.field == "editedItems.rows[0].c"


@given(st.data(), st.sampled_from(ColumnType))
def test_a_value_of_the_right_type_is_released(data, type):
    """AP-8: and stays as it was submitted; null stands for no value."""
    column = Column("c", "C", type, options=("a", 1))
    rows = [{"c": data.draw(column_values(column))}, {"c": None}, {}]
    assert released_rows(of(Group("rows", "Rows", (column,), ({},) * 3)), {"rows": rows}) == {
        "rows": tuple(rows)
    }


@given(st.sampled_from(ColumnType), st.sampled_from([{}, {"c": None}]))
def test_a_required_value_may_not_be_missing(type, row):
    """AP-9: absent and null are both missing."""
    group = Group("rows", "Rows", (Column("c", "C", type, required=True),), ({"c": 1},))
    assert refused(of(group), {"rows": [row]}).field == "editedItems.rows[0].c"


BLANKS = ["", " \t\n", "\u00a0", "\u3000\u2003", "\u200b", "\ufeff", "\u200d\u200c", "\u2060 \xad"]


@pytest.mark.parametrize("key", [None, "id"])
@pytest.mark.parametrize("blank", BLANKS)
def test_what_cannot_be_seen_is_missing(blank, key):
    """A required cell that is blank is refused by name, with a row key and without. AP-40."""
    columns = (Column("id", "Id"), Column("c", "C", required=True))
    group = Group("rows", "Rows", columns, ({"id": "a", "c": "x"},), key)
    said = refused(of(group), {"rows": [{"id": "a", "c": blank}]})
    assert (said.field, said.fix) == ("editedItems.rows[0].c", "is required")
    assert released_rows(of(group), {"rows": [{"id": "a", "c": f"{blank}0"}]})


@pytest.mark.parametrize("value", [False, 0, [], {}])
def test_what_is_empty_and_no_text_is_a_value(value):
    """false, 0, an empty list and an empty object fill a required cell. AP-40."""
    group = Group("rows", "Rows", (Column("c", "C", ColumnType.JSON, required=True),), ({"c": 1},))
    assert released_rows(of(group), {"rows": [{"c": value}]}) == {"rows": ({"c": value},)}


@pytest.mark.parametrize("key", [None, "id"])
def test_a_row_that_nobody_edited_is_not_judged(key):
    """It passes as it was proposed, whatever is missing or of another type; a copy is a new row."""
    columns = (
        Column("id", "Id"),
        Column("sum", "Sum", ColumnType.NUMBER, required=True),
        Column("note", "Note", required=True),
    )
    proposed = ({"id": "a", "sum": "120.00", "note": " "}, {"id": "b", "sum": 1})
    group = Group("rows", "Rows", columns, proposed, key, allow_add=True)
    assert released_rows(of(group), {"rows": proposed}) == {"rows": proposed}
    edited = ({**proposed[0], "sum": 120, "note": "x"}, {"id": "b", "sum": 2})
    assert refused(of(group), {"rows": edited}).field == "editedItems.rows[1].note"
    assert "rows[2]" in refused(of(group), {"rows": [*proposed, proposed[1]]}).field


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
    group = Group("rows", "Rows", (), (), allow_add=True)
    most = ({},) * MAX_APPROVAL_ROWS
    assert released_rows(of(group), {"rows": most})["rows"] == most
    refused(of(group), {"rows": [{}] * (MAX_APPROVAL_ROWS + 1)})


# What reviewers may write: columns, and rows where the group lets them


HIDING = (
    {"id": "a", "amount": 10, "account": "DE1", "pay": True},
    {"id": "b", "amount": 20, "account": "DE2", "pay": True},
    {"id": "c", "amount": 30, "account": "DE3", "pay": True},
)
SHOWN = (Column("amount", "Amount", ColumnType.NUMBER, required=True), Column("note", "Note"))
KEYED = Group("rows", "Rows", (Column("id", "Id", editable=False), *SHOWN), HIDING, "id")
UNKEYED = Group("rows", "Rows", (Column("id", "Id"), *SHOWN), HIDING)


def let_go(group: Group, *rows) -> tuple:
    return released_rows(of(group), {"rows": list(rows)})["rows"]


def test_with_a_row_key_an_omitted_field_keeps_its_proposed_value():
    """AP-22: a column and a hidden field that the client left out are as they were proposed."""
    changed, dropped_but_one = {"id": "b", "amount": 5}, {"id": "a", "note": "x", "account": "DE1"}
    assert let_go(KEYED, changed, dropped_but_one) == (
        {"id": "b", "amount": 5, "account": "DE2", "pay": True},
        {"id": "a", "amount": 10, "account": "DE1", "pay": True, "note": "x"},
    )


def test_null_is_no_omission():
    """AP-22: a column that is sent as null is emptied, and null is no hidden value."""
    row = {"id": "a", "note": None, "amount": 1}
    assert let_go(KEYED, row)[0]["note"] is None
    refused(of(KEYED), {"rows": [{"id": "a", "amount": None}]})
    refused(of(KEYED), {"rows": [{"id": "a", "account": None}]})


@pytest.mark.parametrize("group", [KEYED, UNKEYED], ids=["keyed", "unkeyed"])
@given(data=st.data())
def test_what_no_column_names_is_neither_changed_nor_invented(group, data):
    """AP-22, AP-23: a field that is neither is refused by its name; a hidden one never changes."""
    row = data.draw(st.sampled_from(HIDING))
    name = data.draw(st.sampled_from(["account", "pay", "amuont", ""]))
    value = data.draw(json_values())
    assume(name not in row or not same(row[name], value))
    mistake = refused(of(group), {"rows": [{**row, name: value}]})
    assert mistake.field == f"editedItems.rows[0].{name}"


@given(st.permutations(HIDING), st.integers(0, 3), st.integers(0, 99))
def test_without_a_row_key_hidden_fields_name_their_row(rows, kept, amount):
    """AP-23: in any order, and with rows left out, each row keeps the hidden fields it had."""
    edited = [{**row, "amount": amount, "id": "z"} for row in rows[:kept]]
    assert let_go(UNKEYED, *edited) == tuple(edited)


def test_without_a_row_key_hidden_fields_are_kept_in_order():
    """AP-23: a client that leaves them out sends all rows, in their order."""
    rows = [{"id": row["id"], "amount": 1} for row in HIDING]
    assert let_go(UNKEYED, *rows) == tuple(
        {"id": row["id"], "amount": 1, "account": row["account"], "pay": True} for row in HIDING
    )
    refused(of(UNKEYED), {"rows": rows[:2]})
    refused(of(UNKEYED), {"rows": [{**HIDING[1]}, *rows[1:]]})


def test_a_browser_may_write_a_hidden_number_its_own_way():
    """AP-23: 7.0 comes back as 7, at any depth, and is still the hidden field of its row."""
    group = Group("rows", "Rows", SHOWN, ({"amount": 1, "h": {"n": [7.0]}}, {"amount": 2}))
    assert len(let_go(group, {"amount": 5, "h": {"n": [7]}})) == 1


def test_rows_with_the_same_hidden_fields_are_each_released():
    """AP-23: two payments to one account are two rows, and a third one was not proposed."""
    twins = tuple({**HIDING[0], "amount": amount} for amount in (1, 2))
    assert let_go(evolve(UNKEYED, items=twins), *twins) == twins
    refused(of(evolve(UNKEYED, items=(*twins, HIDING[1]))), {"rows": [*twins, twins[0]]})


def test_without_columns_a_keyed_row_is_as_it_was_sent():
    """AP-9: nothing is put back that a reviewer took out, where nothing is hidden."""
    bare = evolve(KEYED, columns=())
    assert let_go(bare, {"id": "a"}) == ({"id": "a"},)


@given(st.sampled_from([1, 1.0, 1.5, True, "1", None, [1], [1.0], [2], {"a": 1}, {"a": 1.0}, {}]))
def test_keys_are_one_text_if_they_are_the_same(key):
    """AP-9: what JSON calls equal is one row, and nothing else is."""
    for other in (1, 1.5, 2, True, "1", "null", None, [1], [2], {"a": 1}, {"b": 1}, {}):
        assert (key_text(key) == key_text(other)) == same(key, other)


def test_rows_are_added_only_where_the_group_says_so():
    """AP-24: with a key a new one, without a key one row more; both hold columns only."""
    added = {"id": "new", "amount": 7}
    for group in (KEYED, UNKEYED):
        refused(of(group), {"rows": [*HIDING, added]})
        open = evolve(group, allow_add=True)
        if group is KEYED:
            assert let_go(open, *HIDING, added) == (*HIDING, added)
        mistake = refused(of(open), {"rows": [*HIDING, {**added, "account": "DE9"}]})
        assert mistake.field == "editedItems.rows[3].account"
    bare = Group("rows", "Rows", UNKEYED.columns, (), allow_add=True)
    assert let_go(bare, added) == (added,)


def test_an_added_row_has_a_key_of_its_own_and_what_is_required():
    """AP-24: no key, a key twice, and a missing required value are refused; 1 is not "1"."""
    open = of(evolve(KEYED, allow_add=True))
    for rows in ([{"amount": 1}], [{"id": None, "amount": 1}], [{"id": "n", "amount": 1}] * 2):
        refused(open, {"rows": rows})
    refused(open, {"rows": [{"id": "n"}]})


def test_adding_to_rows_with_hidden_fields_needs_a_row_key():
    """AP-23: without one, a row without them may be a new one or one that lost them."""
    refused(of(evolve(UNKEYED, allow_add=True)), {"rows": [*HIDING, {"id": "new", "amount": 7}]})


def test_who_comes_second_leaves_out_what_the_first_has_written():
    """AP-22: an omitted column is as the reviewer saw it, not as it was before the first edit."""
    first = tuple({**row, "amount": 1} for row in HIDING[:2])
    entry = HistoryEntry(NOW, "approved", rows_before={"rows": HIDING}, rows_after={"rows": first})
    approval = evolve(of(evolve(KEYED, items=first)), history=(entry,))
    released = released_rows(approval, {"rows": [{"id": "a", "note": "x"}, {"id": "c"}]})
    assert [row["amount"] for row in released["rows"]] == [1, 30]
    assert released["rows"][1] == HIDING[2]


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
