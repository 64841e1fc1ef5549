"""The page of the testing kit lists what there is: every port, suite, fake, document of vectors."""

import importlib
import inspect
import json
import pkgutil
import re
from collections.abc import Iterator
from typing import Any

import pytest

import wfcore.ports
from wfcore import testing
from wfcore.testing import vectors
from wfdocs import surface

from .pages import DOCS, blocks

PAGE = (DOCS / "testing.md").read_text()
CODE = re.compile(r"`([^`]+)`")
OF_SUITES = ("wfcore.testing.contracts.", "wfcore.testing.walks.")
OF_A_STORE = ("records", "store")
"""Ports that a store has as its parts."""


def rows(header: str) -> Iterator[list[str]]:
    """The rows of the table with that first cell."""
    lines = iter(PAGE.splitlines())
    next(line for line in lines if line.startswith(f"| {header} |"))
    next(lines)
    for line in lines:
        if not line.startswith("|"):
            return
        yield [cell.strip() for cell in line.strip("|").split(" | ")]


GIVEN = {"self", "monkeypatch", "tmp_path", "row", "fact", "state", "site", "wakeup", "does"} | {
    "clock",
    "elapse",
}
"""What pytest gives, or a suite itself, perhaps from what authors override."""
SUITES = {CODE.findall(row[1])[0]: row for row in rows("Port")}


def ports() -> set[str]:
    """The names of all ports, a store being one."""
    found = {"Store"}
    for module in pkgutil.iter_modules(wfcore.ports.__path__):
        if module.name in OF_A_STORE:
            continue
        home = f"wfcore.ports.{module.name}"
        found |= {
            name
            for name, one in vars(importlib.import_module(home)).items()
            if getattr(one, "_is_protocol", False) and one.__module__ == home
        }
    return found


def asked_of_authors(suite: type[Any]) -> set[str]:
    """The fixtures that tests of a suite want, and that neither it nor pytest gives."""
    wanted: set[str] = set()
    for name, test in inspect.getmembers(suite, inspect.isfunction):
        if name.startswith("test_"):
            given = {one for mark in getattr(test, "pytestmark", ()) for one in names(mark.args[0])}
            wanted |= set(inspect.signature(test).parameters) - given
    return {one for one in wanted - GIVEN if not one.startswith("given_")}


def names(parametrized: Any) -> list[str]:
    """The names in the first argument of `pytest.mark.parametrize`."""
    split = parametrized.split(",") if isinstance(parametrized, str) else parametrized
    return [one.strip() for one in split]


def test_every_port_has_a_suite() -> None:
    """No promise is without tests for whoever makes it, too."""
    listed = {name for row in SUITES.values() for name in CODE.findall(row[0])}
    assert listed == ports()


def test_every_suite_is_listed() -> None:
    """What is shipped is on the page, and what is on the page is shipped."""
    assert set(SUITES) == {name for name in dir(testing) if name.endswith("Contract")}


@pytest.mark.parametrize("name", SUITES)
def test_what_an_author_gives_is_named(name: str) -> None:
    """The fixtures in the table are those that the tests of the suite ask for."""
    fixtures, _, attributes = SUITES[name][2].partition(";")
    suite = getattr(testing, name)
    if name == "MachineContract":
        fixtures, attributes = "", fixtures
    assert asked_of_authors(suite) == set(CODE.findall(fixtures)) - GIVEN
    assert set(CODE.findall(attributes)) <= {*dir(suite), *inspect.get_annotations(suite)}


def test_every_fake_and_strategy_is_listed() -> None:
    """Each public name of the kit stands on the page, but for types in the signatures of suites."""
    missing = {name for name in dir(testing) if not re.search(rf"\b{name}\b", PAGE)}
    types = {name for name in missing if home_of(name).startswith(OF_SUITES)}
    assert missing - types == {"in_turn"}  # a part of `store_in_memory`


def home_of(name: str) -> str:
    """The module that the stub of the kit names for *name*."""
    found = surface.exports("wfcore.testing")
    return next(module for module, names in found.items() if name in names)


def test_the_vector_that_is_shown_is_one() -> None:
    """Shape, words and numbers are those of the file."""
    page = blocks(DOCS / "testing.md")
    (shown,) = [json.loads(block.text) for block in page if block.language == "json"]
    ((name, group),) = shown["groups"].items()
    kept = vectors.load("windows")["groups"][name]
    assert group["about"] == kept["about"]
    assert group["cases"][0] in kept["cases"]


def test_every_vector_is_listed() -> None:
    """Each document with each of its groups."""
    listed = {CODE.findall(row[0])[0]: set(CODE.findall(row[1])) for row in rows("Document")}
    assert listed == {name: set(vectors.load(name)["groups"]) for name in vectors.NAMES}
