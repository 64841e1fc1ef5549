"""
Test vectors, as JSON: inputs and expected outputs, for clients in other languages.

`load("signatures")` returns a document `{about, groups: {name: {about, cases}}}`. A case has a
`name`, the input `given` and the output `expect`. The files are generated from the rules by `python
-m wfcore.testing.vectors`; a test checks that they are up to date. To copy them into a project of
another language: `python -m wfcore.testing.vectors FOLDER`.
"""

import json
from importlib.resources import files
from typing import Any

from attrs import frozen

NAMES = ("signatures", "keys", "mappings", "windows", "plans")
"""The names of all documents."""


@frozen
class Vector:
    """A test vector: its name, its input, and the expected output."""

    name: str
    given: Any
    expect: Any


def load(name: str) -> Any:
    """Return the document named *name*. Raises `FileNotFoundError`."""
    return json.loads(files(__name__).joinpath("data", f"{name}.json").read_text("utf-8"))


def cases(name: str, group: str) -> tuple[Vector, ...]:
    """Return the cases of one group of a document. Raises `KeyError`."""
    return tuple(
        Vector(f"{name} {group}: {case['name']}", case["given"], case["expect"])
        for case in load(name)["groups"][group]["cases"]
    )
