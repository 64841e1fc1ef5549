"""The page that links each sentence of the API specification to rules, code and tests."""

from collections.abc import Iterator
from functools import cache
from pathlib import Path

from attrs import frozen

from wfdocs.core import of_rule
from wfdocs.markdown import code
from wfdocs.rules import Place
from wfdocs.surface import definitions

SOURCE = Path(__file__).parent / "specification.txt"
_SHOWN = 3


@frozen
class Sentence:
    """One sentence in own words, the rules for it, and further places."""

    section: str
    text: str
    rules: tuple[str, ...]
    places: tuple[str, ...]


@cache
def sentences() -> tuple[Sentence, ...]:
    """All sentences in the order of the specification. Raises `ValueError` for a malformed line."""
    return tuple(_read(SOURCE.read_text()))


def _read(text: str) -> Iterator[Sentence]:
    section = ""
    for line in filter(None, text.splitlines()):
        if line.startswith("## "):
            section = line[3:]
            continue
        sentence, rules, places = line.removeprefix("- ").split(" |", 2)
        yield Sentence(section, sentence, tuple(rules.split()), tuple(places.split()))


def page() -> str:
    """The page, with a list for each section."""
    parts = [
        "# Specification, sentence by sentence\n\n"
        "What the API specification says, retold, and where each of its sentences lives: the rule "
        "it became, the code that keeps it and a test that holds it. Search this page for a word "
        "of the sentence.\n"
    ]
    for section in dict.fromkeys(one.section for one in sentences()):
        entries = [_entry(one) for one in sentences() if one.section == section]
        parts.append(f"## {section}\n\n{''.join(entries)}")
    return "\n".join(parts)


def _entry(one: Sentence) -> str:
    """The sentence with its rules, and below it the places in code and tests."""
    links = " ".join(f"[{id}](#rule-{id.lower()})" for id in one.rules)
    stated = [_place(place) for place in one.places]
    lives = [*stated, *(place for id in one.rules for place in of_rule("src", id)[:1])]
    tested = [place for id in one.rules for place in of_rule("tests", id)[:1]]
    found = "".join(
        f"  - {verb} {_shown(places)}\n"
        for verb, places in (("lives in", lives), ("tested in", tested))
        if places
    )
    return f"- {one.text} {links}\n{found}"


def _shown(places: list[Place]) -> str:
    return ", ".join(code(one) for one in list(dict.fromkeys(places))[:_SHOWN])


def _place(text: str) -> Place:
    """The place `src/a/b.py:name` with its line. Raises `LookupError` if it does not exist."""
    path, _, name = text.partition(":")
    found = definitions(path.removeprefix("src/").removesuffix(".py").replace("/", "."))
    if name not in found:
        raise LookupError(text)
    return Place(path, found[name].lineno, name)
