"""
The rows of an approval as a person reviews them: the proposed rows beside the rows that stand now.

A reviewer sees every proposed row, even a row that an earlier approver left out, and may bring that
row back: `released_rows` checks against the proposed rows, too. AP-28.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from decimal import Context, Decimal

from attrs import frozen

from wfcore.model.approval import Approval, Group, HistoryEntry
from wfcore.model.json import Json, JsonObject
from wfcore.model.review import ColumnType
from wfcore.rules.approval.released_rows import key_text, original_rows, same
from wfcore.rules.approval.typed import cell_text


@frozen
class ReviewRow:
    """
    A row under review. `proposed` None: an approver added the row. `standing` None: an approver
    left the row out. `by`: the approver of the last difference; None if the row is as proposed.
    """

    proposed: JsonObject | None
    standing: JsonObject | None
    by: str | None = None


def review_rows(approval: Approval, group: Group) -> tuple[ReviewRow, ...]:
    """
    The rows of *group* in the proposed order, then the added rows. AP-28.

    Without a row key, a row is known only by its place. If rows were left out, nobody knows which
    rows; then only the rows that stand are shown.
    """
    first = original_rows(approval)[group.name]
    if first is group.items:
        return tuple(ReviewRow(row, row) for row in first)
    if group.row_key is not None:
        return tuple(_by_key(approval, group, first, group.row_key))
    if len(first) != len(group.items):
        return tuple(ReviewRow(row, row) for row in group.items)
    last = next((entry.by for entry in reversed(tuple(_edits(approval)))), None)
    pairs = zip(first, group.items, strict=True)
    return tuple(ReviewRow(one, now, None if same(one, now) else last) for one, now in pairs)


@frozen
class Total:
    """The sum of a column of numbers that may be edited: as proposed, and as the rows stand."""

    title: str
    proposed: Decimal
    standing: Decimal


def totals(approval: Approval) -> Sequence[Total]:
    """The sums of each group's columns, exact, as numbers are written."""
    first = original_rows(approval)
    return [
        Total(column.title, _sum(first[group.name], column.key), _sum(group.items, column.key))
        for group in approval.groups
        for column in group.columns
        if column.type is ColumnType.NUMBER and column.editable and column.key != group.row_key
    ]


_EXACT = Context(prec=400)


def _sum(rows: Sequence[JsonObject], key: str) -> Decimal:
    total = Decimal()
    for row in rows:
        value = row.get(key)
        if isinstance(value, int | float) and not isinstance(value, bool):
            whole = isinstance(value, float) and value.is_integer()
            total = _EXACT.add(total, Decimal(int(value) if whole else str(value)))
    return total


@frozen
class CellChange:
    """
    One change of a decision: a cell of the row *row* (its name for people), or the whole row if
    *column* is None. `was` None: the row was added, or the cell was empty. `now` None: the row was
    left out, or the cell emptied.
    """

    row: str
    column: str | None
    was: Json = None
    now: Json = None


def changes_of(approval: Approval, entry: HistoryEntry) -> Iterator[CellChange]:
    """The differences between the rows before and after one decision, group by group."""
    if entry.rows_after is None:
        return
    for group in approval.groups:
        before = (entry.rows_before or {}).get(group.name, ())
        after = entry.rows_after.get(group.name, ())
        for was, now in _pairs(group, before, after):
            name = _name_of(group, now if was is None else was)
            if was is None or now is None:
                yield CellChange(name, None, was, now)
            else:
                yield from _cells(group, name, was, now)


def _pairs(
    group: Group, before: Sequence[JsonObject], after: Sequence[JsonObject]
) -> Iterator[tuple[JsonObject | None, JsonObject | None]]:
    """
    Pairs of rows, matched by key, or else by position. If there is no key and the two sides have
    different numbers of rows: each row that only one side has, paired with None.
    """
    if group.row_key is not None:
        first, then = _keyed(before, group.row_key), _keyed(after, group.row_key)
        for text in {**first, **then}:
            yield first.get(text), then.get(text)
    elif len(before) == len(after):
        yield from zip(before, after, strict=True)
    else:
        gone, come = [key_text(row) for row in before], [key_text(row) for row in after]
        for text in (Counter(gone) - Counter(come)).elements():
            yield before[gone.index(text)], None
        for text in (Counter(come) - Counter(gone)).elements():
            yield None, after[come.index(text)]


def _cells(group: Group, name: str, was: JsonObject, now: JsonObject) -> Iterator[CellChange]:
    titles = {column.key: column.title for column in group.columns}
    for key in {**was, **now}:
        if not same(was.get(key), now.get(key)):
            yield CellChange(name, titles.get(key, key), was.get(key), now.get(key))


def _name_of(group: Group, row: JsonObject | None) -> str:
    """The name of a row for people: its key, or the value in its first column."""
    key = group.row_key or (group.columns[0].key if group.columns else None)
    return cell_text((row or {}).get(key or "", ""))


def _by_key(
    approval: Approval, group: Group, first: Sequence[JsonObject], key: str
) -> Iterator[ReviewRow]:
    standing = _keyed(group.items, key)
    editors = _editors(approval, group.name, key)
    for row in first:
        text = key_text(row.get(key))
        now = standing.pop(text, None)
        yield ReviewRow(row, now, None if now is not None and same(row, now) else editors.get(text))
    for text, now in standing.items():
        yield ReviewRow(None, now, editors.get(text))


def _editors(approval: Approval, group: str, key: str) -> Mapping[str, str | None]:
    """The last editor of each row, by its key: who changed, left out or took back the row."""
    found: dict[str, str | None] = {}
    for entry in _edits(approval):
        before = _keyed((entry.rows_before or {}).get(group, ()), key)
        after = _keyed((entry.rows_after or {}).get(group, ()), key)
        for text in {**before, **after}:
            if not same(before.get(text), after.get(text)):
                found[text] = entry.by
    return found


def _edits(approval: Approval) -> Iterator[HistoryEntry]:
    return (entry for entry in approval.history if entry.rows_after is not None)


def _keyed(rows: Sequence[JsonObject], key: str) -> dict[str, JsonObject]:
    return {key_text(row.get(key)): row for row in rows}
