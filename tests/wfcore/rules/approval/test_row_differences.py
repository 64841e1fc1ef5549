"""What a decision changed, and what columns add up to: exactly, row by row. AP-28."""

from decimal import Decimal

from attrs import evolve

from wfcore.model.approval import Approval, Group, HistoryEntry
from wfcore.model.review import Column, ColumnType
from wfcore.rules.approval.machine import Approve, Decider, decide
from wfcore.rules.approval.review import CellChange, Total, changes_of, totals
from wfcore.testing import builders as make
from wfcore.testing.builders import NOW

NAME = Column("name", "Name")
AMOUNT = Column("amount", "Amount", ColumnType.NUMBER)


def approval(*rows: object, key: str | None = None, columns: tuple[Column, ...] = (NAME, AMOUNT)):
    group = Group("g", "G", columns, rows, key, allow_add=True)  # type: ignore[arg-type]
    return make.approval(groups=(group,), required_approvals=3)


def told(asked: Approval, *rows: object) -> list[CellChange]:
    by = Decider("ann", None, account="ann")
    after = decide(asked, Approve({"g": [*rows]}), by, NOW).record
    return [*changes_of(after, after.history[-1])]


def test_a_cell_that_changed_is_told_by_its_column() -> None:
    """Rows with a key are told by it; what is left out or added is told as a whole row."""
    rows = [{"id": n, "name": f"n{n}", "amount": n} for n in (1, 2, 3)]
    asked = approval(*rows, key="id", columns=(Column("id", "Id", ColumnType.NUMBER), NAME, AMOUNT))
    added = {"id": 9, "name": "new"}
    found = told(asked, {**rows[1], "amount": 7, "name": None}, rows[0], added)
    assert found == [
        CellChange("2", "Name", "n2", None),
        CellChange("2", "Amount", 2, 7),
        CellChange("3", None, rows[2], None),
        CellChange("9", None, None, added),
    ]


def test_without_a_key_as_many_rows_are_told_by_their_places() -> None:
    """And by what stands in the first column; of columns without a title by the field."""
    rows = [{"name": "a", "amount": 1}, {"name": "b", "amount": 2}]
    assert told(approval(*rows), rows[0], {"name": "b", "amount": 5}) == [
        CellChange("b", "Amount", 2, 5)
    ]
    entry = HistoryEntry(NOW, "approved", rows_before={"g": [{"x": 1}]}, rows_after={"g": [{}]})
    assert [*changes_of(approval(columns=()), entry)] == [CellChange("", "x", 1, None)]
    nameless = HistoryEntry(
        NOW, "approved", rows_before={"g": [{"": "x", "b": 1}]}, rows_after={"g": [{"": "x"}]}
    )
    assert [*changes_of(approval(columns=()), nameless)] == [CellChange("x", "b", 1, None)]
    assert [*changes_of(approval(), HistoryEntry(NOW, "approved"))] == []
    assert [*changes_of(approval(), evolve(entry, rows_before=None, rows_after={}))] == []


def test_without_a_key_of_another_number_whole_rows_come_and_go() -> None:
    """Each as often as it did; those that are on both sides are no change."""
    a, b, c = ({"name": name} for name in "abc")
    assert told(approval(a, a, b, columns=(NAME,)), b, c) == [
        CellChange("a", None, a, None),
        CellChange("a", None, a, None),
        CellChange("c", None, None, c),
    ]


def test_columns_add_up_exactly() -> None:
    """As numbers are written; of numbers that may be edited, and of nothing else."""
    columns = (
        AMOUNT,
        NAME,
        Column("fixed", "Fixed", ColumnType.NUMBER, editable=False),
        Column("id", "Id", ColumnType.NUMBER),
    )
    rows = [
        {"id": 1, "amount": 0.1, "fixed": 5},
        {"id": 2, "amount": 0.2, "fixed": 5},
        {"id": 3, "amount": 10**30, "fixed": 5},
        {"id": 4, "amount": True, "fixed": 5},
        {"id": 5, "amount": "7", "fixed": 5},
        {"id": 6, "fixed": 5},
    ]
    asked = approval(*rows, key="id", columns=columns)
    exactly = Decimal("1000000000000000000000000000000.3")
    assert totals(asked) == [Total("Amount", exactly, exactly)]
    (group,) = asked.groups
    fewer = evolve(
        asked,
        groups=(evolve(group, items=group.items[:2]),),
        history=(HistoryEntry(NOW, "approved", rows_before={"g": rows}, rows_after={"g": []}),),
    )
    assert totals(fewer) == [Total("Amount", exactly, Decimal("0.3"))]
