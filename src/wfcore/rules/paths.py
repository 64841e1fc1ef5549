"""Paths of fields in a JSON document, as messages name them: `steps[0].config["a b"]`."""

import json
import re
from collections.abc import Mapping

_SIMPLE = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_LAST = re.compile(r'(?:\[[0-9]+\]|\["(?:[^"\\]|\\.)*"\]|\.?[A-Za-z_][A-Za-z0-9_-]*)\Z', re.DOTALL)


def below(path: str, key: str | int) -> str:
    """The path of *key* in the object or list at *path* (empty: the document)."""
    if isinstance(key, int):
        return f"{path}[{key}]"
    if not _SIMPLE.fullmatch(key):
        return f"{path}[{json.dumps(key, ensure_ascii=False)}]"
    return f"{path}.{key}" if path else key


def parent(path: str) -> str:
    """The path of the object or list that contains *path*; empty for a top-level field."""
    return _LAST.sub("", path)


def line_of(path: str, lines: Mapping[str, int]) -> int | None:
    """
    The line of the field at *path*, or of the object that lacks it, given the *lines* of the fields
    of a text by path; None if the text has neither.
    """
    while path and path not in lines and parent(path) != path:
        path = parent(path)
    return lines.get(path)
