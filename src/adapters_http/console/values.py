"""
Values of any size as a page shows them: the beginning of a value as text, and a small value as a
tree.
"""

from collections.abc import Mapping, Sequence
from itertools import islice
from json import dumps

from attrs import frozen

from adapters_http.console.formats import cell
from adapters_http.console.language import has_comma
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


def padding(rows: Sequence[Mapping[str, Json]], name: str) -> Sequence[str]:
    """
    For each row what follows the number in column *name*, unseen, so that all numbers of the column
    are aligned at the decimal sign: `1.5` above `12.25` gets `0`, and `3` gets `.00`.
    """
    sign = "," if has_comma() else "."
    shown = [cell(row[name]) if _is_number(row.get(name)) else None for row in rows]
    parts = [None if text is None else len(text.partition(sign)[2]) for text in shown]
    most = max((part for part in parts if part is not None), default=0)
    return [
        "" if part is None else sign * (most > part == 0) + "0" * (most - part) for part in parts
    ]


def _is_number(value: Json) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


_NESTED = (Mapping, list, tuple)
_MOST_COLUMNS = 12
