"""
The rows that a reviewer releases: the rules of `editedItems`. Spec: approve body rules 1-4.

Absent: the original rows. Present: exactly the rows submitted; a group that is left out releases no
rows. With any mistake nothing is decided. AP-7, AP-8, AP-9.

In a group with columns, a reviewer writes only columns. The other fields of a proposed row (its
hidden fields, such as an account number) belong to the workflow: they return with the row whether
or not the client sent them, and a change is refused. For that, the proposed row must be known. A
row key identifies it. Without a row key, the hidden fields identify the row; a client that leaves
the hidden fields out must send as many rows as were proposed, in the proposed order. If the match
would be a guess, the answer is 400: hidden fields on the wrong row pay the wrong account. AP-22 to
AP-24.
"""

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from wfcore.errors import InvalidInput
from wfcore.model.approval import Approval, Group, Rows
from wfcore.model.json import Json, JsonObject
from wfcore.model.workflow import Column, ColumnType
from wfcore.rules.limits import MAX_APPROVAL_ROWS
from wfcore.rules.visible import is_blank
from wfcore.rules.written_dates import is_date

_Release: TypeAlias = Callable[[int, JsonObject], JsonObject]
"""
A function from a place in the list and the row submitted there to the released row. Raises
`_WrongField`.
"""


class _WrongField(Exception):
    """
    Raised when a field of a submitted row violates a rule; *fix* says how to correct the field. The
    caller adds the row's place.
    """

    def __init__(self, field: str, fix: str) -> None:
        self.field, self.fix = field, fix


def standing_rows(approval: Approval) -> Rows:
    """The rows after all edits so far, by group."""
    return {group.name: group.items for group in approval.groups}


def original_rows(approval: Approval) -> Rows:
    """The proposed rows, by group."""
    edits = (entry.rows_before for entry in approval.history if entry.rows_before is not None)
    return next(edits, standing_rows(approval))


def released_rows(approval: Approval, edited: Mapping[str, Json]) -> Rows:
    """
    The rows of `editedItems` for every group, checked against the original rows: a later editor may
    bring back rows that an earlier editor left out.

    Raises `InvalidInput` naming the field: an unknown group, a row that is no object, a field that
    neither a column nor the proposed row has, a changed field without a column, a value of the
    wrong column type, a missing required value, more rows than proposed where none may be added,
    and with a row key: an unknown or repeated key, or a changed read-only column. AP-8, AP-9,
    AP-17, LM-7.
    """
    known = {group.name: group for group in approval.groups}
    for name in edited:
        if name not in known:
            names = ", ".join(sorted(known)) or "none"
            raise InvalidInput(f"editedItems.{name}", f"unknown group; the groups are: {names}")
    first = original_rows(approval)
    return {
        name: _group_rows(group, first[name], edited.get(name, ())) for name, group in known.items()
    }


def _group_rows(group: Group, first: Sequence[JsonObject], rows: Json) -> tuple[JsonObject, ...]:
    where = f"editedItems.{group.name}"
    if not isinstance(rows, list | tuple):
        raise InvalidInput(where, "must be an array of row objects")
    if len(rows) > MAX_APPROVAL_ROWS:
        raise InvalidInput(where, f"must hold at most {MAX_APPROVAL_ROWS} rows")
    release = _unkeyed(group, first, len(rows)) if group.row_key is None else _keyed(group, first)
    released: list[JsonObject] = []
    for number, row in enumerate(rows):
        if not isinstance(row, Mapping):
            raise InvalidInput(f"{where}[{number}]", "must be an object")
        if number >= len(first) and not group.allow_add and group.row_key is None:
            raise InvalidInput(f"{where}[{number}]", f"is more than was proposed; {_NO_ADDING}")
        try:
            released.append(release(number, row))
        except _WrongField as wrong:
            raise InvalidInput(f"{where}[{number}].{wrong.field}", wrong.fix) from None
    return tuple(released)


_NO_ADDING = "rows may be added only where the group says allowAdd: true"


def _keyed(group: Group, first: Sequence[JsonObject]) -> _Release:
    """
    The rule with a row key: a submitted row is its proposed row overwritten with the submitted
    fields. A row with a new key is an added row. A row that equals the proposed row is not judged.
    AP-9, AP-22, AP-24, AP-40.
    """
    key_field = group.row_key or ""
    originals = {key_text(row.get(key_field)): row for row in first}
    unedited = first is group.items
    standing = originals if unedited else {key_text(row.get(key_field)): row for row in group.items}
    columns = {column.key: column for column in group.columns}
    fixed = [column.key for column in group.columns if not column.editable]
    required = [column.key for column in group.columns if column.required]
    seen: set[str] = set()

    def release(_: int, row: JsonObject) -> JsonObject:
        key = key_text(row.get(key_field))
        original = originals.get(key)
        _check_key(key_field, key, known=original is not None, allow_add=group.allow_add, seen=seen)
        shown = standing.get(key) or original or {key_field: row[key_field]}
        released = {**shown, **row} if columns else row
        if original is not None and same(released, original):
            return released
        _check_fields(columns, row, shown)
        _check_required(required, released)
        if original is not None:
            _check_fixed(fixed, original, released)
        return released

    return release


def _check_key(field: str, key: str, *, known: bool, allow_add: bool, seen: set[str]) -> None:
    if not known and not allow_add:
        raise _WrongField(field, f"is no key of an original row; {_NO_ADDING}")
    if key == "null":
        raise _WrongField(field, "is required: an added row needs a key of its own")
    if key in seen:
        raise _WrongField(field, "stands twice; each row may be released once")
    seen.add(key)


def _check_fixed(fixed: Sequence[str], original: JsonObject, row: JsonObject) -> None:
    for name in fixed:
        if not same(original.get(name), row.get(name)):
            raise _WrongField(name, "is read-only and was changed")


def _unkeyed(group: Group, first: Sequence[JsonObject], count: int) -> _Release:
    """
    The rule without a row key: a submitted row is the proposed row with the same hidden fields, and
    each proposed row is used at most once; a row without hidden fields is the proposed row at its
    position. A row that equals a proposed row is not judged. AP-23, AP-40.
    """
    columns = {column.key: column for column in group.columns}
    required = [column.key for column in group.columns if column.required]
    free = Counter(_hidden_text(columns, row) for row in first) if columns else Counter[str]()
    hides = any(text != _NOTHING for text in free)
    in_order = count == len(group.items) and not group.allow_add

    def proposed(number: int, row: JsonObject) -> JsonObject:
        hidden = _hidden(columns, row)
        for one in (hidden, _hidden(columns, group.items[number]) if in_order else hidden):
            text = _text(one) if one else _NOTHING
            if free[text] > 0:
                free[text] -= 1
                return one
        if hidden or hides:
            _refuse_hidden(first, columns, hidden)
        return {}

    untouched: Counter[str] = Counter()
    done: list[JsonObject] = []

    def is_proposed(row: JsonObject) -> bool:
        if not untouched:
            untouched.update(map(_text, first))
        untouched.subtract(map(_text, done))
        done.clear()
        return untouched[_text(row)] > 0

    def release(number: int, row: JsonObject) -> JsonObject:
        shown = proposed(number, row) if columns else {}
        released = {**shown, **row}
        try:
            _check_fields(columns, row, shown)
            _check_required(required, released)
        except _WrongField:
            if not is_proposed(released):
                raise
        done.append(released)
        return released

    return release


def _refuse_hidden(
    first: Sequence[JsonObject], columns: Mapping[str, Column], hidden: JsonObject
) -> None:
    """Raises the mistake in the hidden fields of a row that matches no proposed row."""
    known = {name for row in first for name in row if name not in columns}
    for name in hidden:
        if name not in known:
            raise _WrongField(name, _UNKNOWN_FIELD)
    new = [name for name in hidden if not any(same(row.get(name), hidden[name]) for row in first)]
    raise _WrongField(
        next(iter(new or hidden or sorted(known))),
        "has no column: send it as it was proposed, each row once, so that its row can be told; "
        "a group with a rowKey needs neither",
    )


_UNKNOWN_FIELD = "is no column and no field of the proposed row"


def _check_fields(columns: Mapping[str, Column], row: JsonObject, shown: JsonObject) -> None:
    """
    Check every submitted field against its column, or against the proposed row. An unchanged value
    passes: its type is the workflow's responsibility. AP-9, AP-22.
    """
    if not columns:
        return
    for name, value in row.items():
        column = columns.get(name)
        if column is not None:
            wanted = misfit(column, value)
            if wanted is not None and not (name in shown and same(value, shown[name])):
                raise _WrongField(name, wanted)
        elif name not in shown:
            raise _WrongField(name, _UNKNOWN_FIELD)
        elif not same(value, shown[name]):
            raise _WrongField(name, "has no column and was changed; leave it out or as it was")


def misfit(column: Column, value: Json) -> str | None:
    """
    The kind of value that the column needs, in words; None if *value* fits the column or is null.
    AP-9, AP-30.
    """
    if value is None or _FITS[column.type](column, value):
        return None
    return f"must be {_WANTED[column.type]}{_choices(column)}"


def _check_required(required: Sequence[str], row: JsonObject) -> None:
    for name in required:
        if is_blank(row.get(name)):
            raise _WrongField(name, "is required")


def _hidden(columns: Mapping[str, Column], row: JsonObject) -> JsonObject:
    """The fields of *row* that have no column."""
    return {name: value for name, value in row.items() if name not in columns}


def _hidden_text(columns: Mapping[str, Column], row: JsonObject) -> str:
    hidden = _hidden(columns, row)
    return _text(hidden) if hidden else _NOTHING


def key_text(value: Json) -> str:
    """
    A row key as text. Keys of different JSON types are never equal: 1 is not "1", and true is not
    1. But 1.0 equals 1, because browsers write 1.0 as 1.
    """
    if type(value) is int:
        return str(value)
    return _text(value)


def _text(value: Json) -> str:
    """JSON text that is identical for values that are the `same`."""
    return _SORTED(_whole(value))


_SORTED = json.JSONEncoder(sort_keys=True).encode
_NOTHING = "{}"


def _whole(value: Json) -> Json:
    """*value* with whole numbers as integers, at any depth."""
    if isinstance(value, float):
        return int(value) if value.is_integer() else value
    if isinstance(value, Mapping):
        return {key: _whole(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_whole(item) for item in value]
    return value


def same(a: Json, b: Json) -> bool:
    """JSON equality: like Python's, but true is not 1."""
    if type(a) is str:  # most values are; ten thousand rows come by here
        return a == b
    if isinstance(a, bool) or isinstance(b, bool):
        return a is b
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    if isinstance(a, list | tuple) and isinstance(b, list | tuple):
        return len(a) == len(b) and all(map(same, a, b))
    return a == b


def _choices(column: Column) -> str:
    return f": {', '.join(map(str, column.options))}" if column.type is ColumnType.ENUM else ""


_FITS: Mapping[ColumnType, Callable[[Column, Json], bool]] = {
    ColumnType.STRING: lambda _, value: isinstance(value, str),
    ColumnType.NUMBER: lambda _, value: (
        isinstance(value, int | float) and not isinstance(value, bool)
    ),
    ColumnType.BOOLEAN: lambda _, value: isinstance(value, bool),
    ColumnType.DATE: lambda _, value: isinstance(value, str) and is_date(value),
    ColumnType.ENUM: lambda column, value: any(same(value, one) for one in column.options),
    ColumnType.JSON: lambda _, __: True,
}
_WANTED = {
    ColumnType.STRING: "a string",
    ColumnType.NUMBER: "a number",
    ColumnType.BOOLEAN: "true or false",
    ColumnType.DATE: "a date (YYYY-MM-DD)",
    ColumnType.ENUM: "one of the options",
    ColumnType.JSON: "any JSON",
}
