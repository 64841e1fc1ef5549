"""The row editor, line by line: what it understands, refuses, and takes back."""

import pytest

from wfcore.model.approval import Approval, Group
from wfcore.model.json import Json
from wfcore.model.workflow import Column, ColumnType
from wfcore.testing import builders as make
from wfserver.terminal.row_editor import HELP, Draft, Editor

COLUMNS = (
    Column("id", "Order no", ColumnType.STRING, editable=False),
    Column("paid by", "Paid by", ColumnType.STRING),
    Column("amount", "Amount", ColumnType.NUMBER, required=True),
    Column("kind", "Kind", ColumnType.ENUM, options=("cash", "bank transfer", 7)),
    Column("urgent", "Urgent", ColumnType.BOOLEAN),
    Column("due", "Due on", ColumnType.DATE),
    Column("more", "More", ColumnType.JSON),
)
ROWS = (
    {"id": "A 1", "paid by": "Ann", "amount": 5, "iban": "DE1"},
    {"id": "A 1 b", "paid by": "Bob", "amount": 6, "iban": "DE2"},
    {"id": "undo", "paid by": "Cid", "amount": 7, "iban": "DE3"},
)


def approval(*rows: dict[str, Json], allow_add: bool = False, key: str | None = "id") -> Approval:
    group = Group("orders", "Orders", COLUMNS, rows or ROWS, key, allow_add)
    return make.approval(groups=(group,))


class UnitOfWork:
    """An editor on one group, with what it came to."""

    def __init__(self, asked: Approval | None = None) -> None:
        self.draft = Draft(asked or approval())
        self.group = self.draft.approval.groups[0]
        self._editor = Editor(self.draft, self.group)

    def type(self, *lines: str) -> "UnitOfWork":
        for line in lines:
            self.reply = self._editor.obey(line)
        return self

    def refused(self, line: str) -> str:
        before = self.draft.edited
        with pytest.raises(ValueError) as caught:
            self._editor.obey(line)
        assert self.draft.edited == before
        return str(caught.value)

    def row(self, number: int) -> dict[str, Json]:
        return dict(self.draft.rows(self.group)[number])


@pytest.mark.parametrize(
    ("line", "number", "key", "value"),
    [
        ("A 1 Paid by Zoe Zu", 1, "paid by", "Zoe Zu"),
        ("A 1 b paid BY Zoe", 2, "paid by", "Zoe"),
        ('"A 1" "Paid by" Zoe', 1, "paid by", "Zoe"),
        ('"A 1" "paid by" " Zoe "', 1, "paid by", " Zoe "),
        ('A 1 Paid by ""', 1, "paid by", ""),
        ('A 1 Paid by it\'s "so"', 1, "paid by", 'it\'s "so"'),
        ("set undo Paid by Zoe", 3, "paid by", "Zoe"),
        ("A 1 amount 1.5", 1, "amount", 1.5),
        ("A 1 kind bank transfer", 1, "kind", "bank transfer"),
        ("A 1 kind 7", 1, "kind", 7),
        ("A 1 urgent True", 1, "urgent", True),
        ("A 1 due on 2026-02-28", 1, "due", "2026-02-28"),
        ('A 1 more {"a": [1]}', 1, "more", {"a": [1]}),
        ("A 1 more just text", 1, "more", "just text"),
        ("clear A 1 Paid by", 1, "paid by", None),
    ],
)
def test_a_cell_is_changed(line: str, number: int, key: str, value: Json) -> None:
    """Keys and headings may hold blanks, quoted or not; the longest name counts; types are read."""
    desk = UnitOfWork().type(line)
    assert (desk.row(number)[key], list(desk.reply.rows)) == (value, [number])
    assert desk.row(number)["iban"] == f"DE{number}"
    desk.draft.check()


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("A 1 amount much", "much is not a number"),
        ("A 1 amount 1e999", "beyond those that JSON can hold"),
        ("A 1 amount NaN", "NaN is no number in JSON"),
        ("A 1 kind card", "Kind must be one of the options: cash, bank transfer, 7"),
        ("A 1 urgent maybe", "say true or false"),
        ("A 1 due on 2026-02-30", "Due on must be a date (YYYY-MM-DD) and 2026-02-30 is not"),
        ("A 1 more {a", "is not JSON"),
        ("clear A 1 amount", "Amount is required"),
        ("A 1 order no B 1", "Order no cannot be edited"),
        ("A 1 colour red", "there is no column colour; the columns are: Order no, Paid by"),
        ("A 9 amount 1", "there is no row A"),
        ("A 1 amount", "clear KEY COLUMN empties a cell"),
        ("nonsense", "say KEY COLUMN VALUE"),
        ("drop A 9", "there is no row A"),
        ("add A 2", "no row may be added here"),
        ("undo", "nothing is changed"),
        ("rows x", "say rows NUMBER"),
        ("find", "say find TEXT"),
    ],
)
def test_a_mistake_is_told_at_once(line: str, why: str) -> None:
    """Types, options, required and read-only cells are checked line by line; nothing is changed."""
    assert why in UnitOfWork().refused(line)


def test_changes_are_taken_back_one_by_one() -> None:
    """`undo` takes back the last change, again the one before; then nothing was edited."""
    desk = UnitOfWork().type("A 1 amount 1", "drop A 1 b", "A 1 amount 2")
    assert desk.row(1)["amount"] == 2
    assert len(desk.draft.rows(desk.group)) == 2
    assert desk.type("undo").row(1)["amount"] == 1
    assert desk.type("undo").row(2) == ROWS[1]
    assert desk.type("undo").draft.edited is None


def test_numbers_stay_while_rows_are_dropped() -> None:
    """Without a row key rows go by their numbers, and keep them."""
    desk = UnitOfWork(approval(key=None)).type("drop 1", "2 amount 9")
    assert desk.row(2)["amount"] == 9
    assert list(desk.draft.rows(desk.group)) == [2, 3]


def test_rows_are_added_where_that_is_allowed() -> None:
    """`add KEY` makes a row whose every cell may be filled; a key that is there is refused."""
    desk = UnitOfWork(approval(allow_add=True)).type("add B 7", "B 7 amount 3", "B 7 paid by Dee")
    assert desk.row(4) == {"id": "B 7", "amount": 3, "paid by": "Dee"}
    desk.draft.check()
    assert "there is a row A 1 already" in desk.refused("add A 1")
    assert "say add KEY" in desk.refused("add")


def test_a_row_key_cannot_be_made_another_row() -> None:
    """A key that may be edited is checked at once by the rule of the approval."""
    keyed = Group("orders", "Orders", (Column("id", "Id"),), ({"id": "a"}, {"id": "b"}), "id")
    desk = UnitOfWork(make.approval(groups=(keyed,)))
    assert "Id" in desk.refused("a id c")


def test_rows_without_columns_take_any_json() -> None:
    """Where no columns are declared, each name in the rows is one."""
    plain = Group("g", "G", (), ({"a": 1, "b c": None},))
    desk = UnitOfWork(make.approval(groups=(plain,))).type("1 a [2]", "1 b c why not")
    assert desk.row(1) == {"a": [2], "b c": "why not"}


def test_comment_find_and_help() -> None:
    """The comment is kept, rows are found by what they hold, and help lists every command."""
    desk = UnitOfWork().type("comment looks fine")
    assert desk.draft.comment == "looks fine"
    assert list(desk.type("find cid").reply.rows) == [3]
    assert "no row holds" in desk.type("find xyz").reply.text
    assert desk.type("help").reply.text == desk.type("?").reply.text == HELP


def test_ten_thousand_rows_are_edited_in_pages() -> None:
    """`rows N` begins there; a cell at the end is changed and checked."""
    many = tuple({"id": f"r{n}", "amount": n} for n in range(10_000))
    desk = UnitOfWork(approval(*many)).type("rows 9990")
    assert desk.reply.rows[0] == 9_990
    assert desk.type("r9999 amount 1").row(10_000)["amount"] == 1
