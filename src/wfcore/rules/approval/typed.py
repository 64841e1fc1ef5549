"""Values as people type them, at a terminal or into the fields of a page, and back. AP-30."""

import json
import math
from collections.abc import Mapping
from typing import Any

from wfcore.errors import InvalidInput
from wfcore.model.approval import Approval
from wfcore.model.json import Json, fits
from wfcore.model.review import Column, ColumnType


def cell_text(value: Json) -> str:
    """A value as text that `typed_value` reads back; empty for null."""
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def typed_value(field: Column, text: str) -> Json:
    """
    The value that *text* stands for; what no value of the field looks like stays text, for the
    rules of answers to refuse. Empty text is no answer.
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
        value: Json = json.loads(
            text, parse_int=_whole, parse_float=_finite, parse_constant=_finite
        )
    except (ValueError, RecursionError):
        return text
    return value


def _whole(digits: str) -> int | float:
    """Beyond 64 bits a double, as in the body of a request."""
    value = int(digits)
    return value if fits(value) else _finite(digits)


def _finite(number: str) -> float:
    value = float(number)
    if not math.isfinite(value):
        raise ValueError(number)
    return value


def read_answers(approval: Approval, typed: Mapping[str, Any]) -> Mapping[str, Json]:
    """Answers as they were typed, by key. Raises `InvalidInput` for what is no text."""
    fields = {one.key: one for one in approval.fields}
    for key, text in typed.items():
        if not isinstance(text, str):
            raise InvalidInput(f"answers.{key}", "must be text")
    return {
        key: typed_value(fields[key], text) if key in fields else text
        for key, text in typed.items()
    }


def choices(field: Column) -> list[tuple[str, str]]:
    """What an enum or boolean field may be: as text, and as people read it."""
    if field.type is ColumnType.BOOLEAN:
        return [("true", "yes"), ("false", "no")]
    return [(cell_text(one), cell_text(one)) for one in field.options]
