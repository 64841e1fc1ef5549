"""
Which rows a reviewer releases: the rules of `editedItems`. Spec: approve body rules 1-4.

Absent: the original rows. Present: exactly the rows submitted, and a group left out releases
none. A mistake decides nothing. AP-7, AP-8, AP-9.
"""

import json
import re
from collections.abc import Mapping, Sequence
from datetime import date

from wfcore.errors import InvalidInput
from wfcore.model.approval import Approval, Group, Rows
from wfcore.model.json import Json, JsonObject
from wfcore.model.workflow import Column, ColumnType
from wfcore.rules.limits import MAX_APPROVAL_ROWS

_DATE = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)


def standing_rows(approval: Approval) -> Rows:
    """The rows as they stand in the approval, after the edits so far."""
    return {group.name: group.items for group in approval.groups}


def original_rows(approval: Approval) -> Rows:
    """The rows that were asked about in the first place."""
    edits = (entry.rows_before for entry in approval.history if entry.rows_before is not None)
    return next(edits, standing_rows(approval))


def released_rows(approval: Approval, edited: Mapping[str, Json]) -> Rows:
    """
    The rows of `editedItems` for every group, checked against the original ones: who comes
    after an editor may take back what that one left out.

    Raises `InvalidInput` naming the field: an unknown group, a row that is no object, a value
    of the wrong column type, a missing required value, and with a row key: an unknown or
    repeated key, or a changed read-only column.
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
    originals = _by_key(group, first)
    seen: set[str] = set()
    released: list[JsonObject] = []
    for number, row in enumerate(rows):
        place = f"{where}[{number}]"
        if not isinstance(row, Mapping):
            raise InvalidInput(place, "must be an object")
        for column in group.columns:
            _check_value(column, row, f"{place}.{column.key}")
        if group.row_key is not None:
            _check_key(group, row, place, originals, seen)
        released.append(row)
    return tuple(released)


def _by_key(group: Group, rows: Sequence[JsonObject]) -> Mapping[str, JsonObject]:
    if group.row_key is None:
        return {}
    return {key_text(row.get(group.row_key)): row for row in rows}


def key_text(value: Json) -> str:
    """
    A row key as text. Keys of different JSON types never meet: 1 is not "1", and true is not
    1. But 1.0 is 1: a browser writes the one for the other.
    """
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return json.dumps(value, sort_keys=True)


def _check_key(
    group: Group,
    row: JsonObject,
    place: str,
    originals: Mapping[str, JsonObject],
    seen: set[str],
) -> None:
    assert group.row_key is not None
    field = f"{place}.{group.row_key}"
    key = key_text(row.get(group.row_key))
    if key not in originals:
        raise InvalidInput(field, "is no key of an original row")
    if key in seen:
        raise InvalidInput(field, "stands twice; each row may be released once")
    seen.add(key)
    for column in group.columns:
        before, after = originals[key].get(column.key), row.get(column.key)
        if not column.editable and not same(before, after):
            raise InvalidInput(f"{place}.{column.key}", "is read-only and was changed")


def same(a: Json, b: Json) -> bool:
    """JSON equality: like Python's, but true is not 1."""
    if isinstance(a, bool) or isinstance(b, bool):
        return a is b
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    if isinstance(a, list | tuple) and isinstance(b, list | tuple):
        return len(a) == len(b) and all(map(same, a, b))
    return a == b


def _check_value(column: Column, row: JsonObject, place: str) -> None:
    value = row.get(column.key)
    if value is None:
        if column.required:
            raise InvalidInput(place, "is required")
        return
    if not _fits(column, value):
        raise InvalidInput(place, f"must be {_WANTED[column.type]}{_choices(column)}")


def _fits(column: Column, value: Json) -> bool:
    match column.type:
        case ColumnType.STRING:
            return isinstance(value, str)
        case ColumnType.NUMBER:
            return isinstance(value, int | float) and not isinstance(value, bool)
        case ColumnType.BOOLEAN:
            return isinstance(value, bool)
        case ColumnType.DATE:
            return isinstance(value, str) and _is_date(value)
        case ColumnType.ENUM:
            return any(same(value, option) for option in column.options)
        case ColumnType.JSON:
            return True


def _is_date(text: str) -> bool:
    if _DATE.fullmatch(text) is None:
        return False
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return True


def _choices(column: Column) -> str:
    return f": {', '.join(map(str, column.options))}" if column.type is ColumnType.ENUM else ""


_WANTED = {
    ColumnType.STRING: "a string",
    ColumnType.NUMBER: "a number",
    ColumnType.BOOLEAN: "true or false",
    ColumnType.DATE: "a date (YYYY-MM-DD)",
    ColumnType.ENUM: "one of the options",
    ColumnType.JSON: "any JSON",
}
