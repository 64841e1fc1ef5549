"""JSON text as fast as this package can, and what a value of it takes up in memory."""

import json
from typing import Any, NamedTuple

import orjson


def text_of(value: Any) -> str:
    """JSON text; also of what orjson refuses (integers beyond 64 bits, lone surrogates)."""
    try:
        return orjson.dumps(value).decode()
    except TypeError:
        return json.dumps(value)


OBJECT, LIST, MEMBER, NAME, WIDE = 192, 64, 40, 32, 4
"""
Bytes that an object, a list, what follows a comma and what follows a colon take up, and how many a
character does where one is not ASCII: measured with `tracemalloc`, rounded up.
"""


class Size(NamedTuple):
    """About how many bytes a record takes up: what each change writes anew, and the rest."""

    head: int
    rest: int


def cost_of(text: str) -> int:
    """
    About how many bytes the value of a JSON text takes up in memory: hardly ever less. A text of
    many small objects takes up twenty times its length, a long string no more than its length.
    """
    width = 1 if text.isascii() else WIDE
    return (
        len(text) * width
        + text.count("{") * OBJECT
        + text.count("[") * LIST
        + text.count(",") * MEMBER
        + text.count(":") * NAME
    )


def value_of(text: str) -> Any:
    """What `text_of` was given."""
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return json.loads(text)
