"""Values as people type them, at a terminal or into the fields of a page, and back. AP-30."""

import json
from collections.abc import Mapping
from typing import Any

from wfcore.errors import InvalidInput
from wfcore.model.approval import Approval
from wfcore.model.json import Json
from wfcore.model.review import Column, ColumnType
from wfcore.rules.numbers import kept


def cell_text(value: Json) -> str:
    """A value as text that `typed_value` reads back; empty for null."""
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def typed_value(field: Column, text: str) -> Json:
    """
    The value of *text*; None for empty text. Text in no form of the field's values stays text, and
    the rules of answers then refuse that text. Raises `InvalidInput` for a number that storing
    would change. NU-2.
    """
    if not text.strip():
        return None
    match field.type:
        case ColumnType.ENUM:
            return next((one for one in field.options if cell_text(one) == text), text)
        case ColumnType.NUMBER | ColumnType.BOOLEAN | ColumnType.JSON:
            return _json(text)
        case _:
            return text


def _json(text: str) -> Json:
    try:
        return kept(text.encode(), exact=True)
    except (ValueError, RecursionError):
        return text


def read_answers(approval: Approval, typed: Mapping[str, Any]) -> Mapping[str, Json]:
    """
    The typed answers, by key. Raises `InvalidInput` for an answer that is not text, and for a
    number that storing would change.
    """
    fields = {one.key: one for one in approval.fields}
    found: dict[str, Json] = {}
    for key, text in typed.items():
        if not isinstance(text, str):
            raise InvalidInput(f"answers.{key}", "must be text")
        try:
            found[key] = typed_value(fields[key], text) if key in fields else text
        except InvalidInput as refused:
            raise InvalidInput(f"answers.{key}", refused.fix) from None
    return found


def choices(field: Column) -> list[tuple[str, str]]:
    """The values of an enum or boolean field: as text, and as people read them."""
    if field.type is ColumnType.BOOLEAN:
        return [("true", "yes"), ("false", "no")]
    return [(cell_text(one), cell_text(one)) for one in field.options]
