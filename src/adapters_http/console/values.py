"""
Values of any size as a page shows them: the beginning of a value as text, and a small value as a
tree.
"""

from collections.abc import Mapping
from itertools import islice
from json import dumps

from attrs import frozen

from wfcore.model.json import Json
from wfcore.wire.converter import plain

SHOWN = 64 * 1024
"""The most characters of a value on a page."""
_MOST_NODES = 400


@frozen
class DisplayedValue:
    """A value for people: its first `SHOWN` characters, and a tree if the value is small."""

    text: str
    whole: bool
    size: int
    tree: Json
    has_tree: bool


def display(value: Json) -> DisplayedValue:
    """The displayed form of *value*. Secrets in *value* must be masked already."""
    text = value if isinstance(value, str) else dumps(plain(value), indent=1, ensure_ascii=False)
    parts = isinstance(value, dict | list | tuple)
    has_tree = parts and len(text) <= SHOWN and _nodes(value) <= _MOST_NODES
    return DisplayedValue(
        text[:SHOWN], len(text) <= SHOWN, len(text), value if has_tree else None, has_tree
    )


def _nodes(value: Json) -> int:
    """The number of parts of a value; the count stops a little over `_MOST_NODES`."""
    if isinstance(value, Mapping):
        inside = list(value.values())
    elif isinstance(value, list | tuple):
        inside = list(islice(value, _MOST_NODES + 1))
    else:
        return 1
    return 1 + sum(_nodes(one) for one in inside[: _MOST_NODES + 1])


def columns(value: Json) -> list[str] | None:
    """
    The columns of a list of objects that a table can show, in order of their first use; None if
    *value* is anything else.
    """
    if not isinstance(value, list | tuple) or not 0 < len(value) <= _MOST_NODES:
        return None
    found = dict[str, None]()
    for row in value:
        if not isinstance(row, Mapping) or any(isinstance(one, _NESTED) for one in row.values()):
            return None
        found.update(dict.fromkeys(row))
    return list(found) if 0 < len(found) <= _MOST_COLUMNS else None


_NESTED = (Mapping, list, tuple)
_MOST_COLUMNS = 12
