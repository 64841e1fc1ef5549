"""
Test vectors: what goes in and what must come out, as JSON, for clients in other languages.

`load("signatures")` gives a document `{about, groups: {name: {about, cases}}}`; a case has a
`name`, what is `given`, and what to `expect`. The files are made from the rules by
`python -m wfcore.testing.vectors`, and a test holds that nothing else is in them. To copy them
into a project of another language: `python -m wfcore.testing.vectors FOLDER`.
"""

import json
from importlib.resources import files
from typing import Any

from attrs import frozen

NAMES = ("signatures", "keys", "mappings", "windows", "plans")
"""The documents there are."""


@frozen
class Case:
    """One vector: its place in words, what is given, and what must come of it."""

    name: str
    given: Any
    expect: Any


def load(name: str) -> Any:
    """The document of that name. Raises `FileNotFoundError`."""
    return json.loads(files(__name__).joinpath("data", f"{name}.json").read_text("utf-8"))


def cases(name: str, group: str) -> tuple[Case, ...]:
    """The cases of one group of a document. Raises `KeyError`."""
    return tuple(
        Case(f"{name} {group}: {case['name']}", case["given"], case["expect"])
        for case in load(name)["groups"][group]["cases"]
    )
