"""How vectors are made: cases from what is given, by asking the rules."""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from wfcore.testing.vectors import keys, mappings, plans, signatures, windows

Answer = Callable[..., Any]
MAKERS = {
    "signatures": signatures,
    "keys": keys,
    "mappings": mappings,
    "windows": windows,
    "plans": plans,
}
"""Each document's module: `ABOUT`, and `GROUPS` of what each group is about, asks and answers."""


def document(name: str) -> Mapping[str, Any]:
    """The whole document as the rules say it today."""
    maker = MAKERS[name]
    return {
        "about": maker.ABOUT,
        "groups": {
            group: {"about": about, "cases": _cases(given, answer)}
            for group, (about, given, answer) in maker.GROUPS.items()
        },
    }


def _cases(given: Mapping[str, Any], answer: Answer) -> Sequence[Mapping[str, Any]]:
    return [{"name": name, "given": one, "expect": answer(one)} for name, one in given.items()]


def text(name: str) -> str:
    """The document's file: ASCII, so that no tool can spoil it."""
    return json.dumps(document(name), indent=1) + "\n"
