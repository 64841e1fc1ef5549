"""Decisions are few, short and there; nothing cites what a reader cannot open."""

import re
import subprocess
from collections.abc import Iterator

import pytest

from bench.parts import PARTS
from wfcore.model.workflow import Language
from wfcore.rules.definition.steps import KINDS

from .pages import DOCS, ROOT

MOST_WORDS = 200
RECORDS = sorted((DOCS / "decisions").glob("0*.md"))
NUMBERS = {int(record.name[:4]) for record in RECORDS}
SECTIONS = ["Question.", "Decided.", "Considered.", "Price."]
_NUMBERS = r"\d+(?:(?:, and|,|\s+and|\s+to)\s+\d+)*"
_CITED = re.compile(rf"\b[Dd]ecisions?[\s#*-]+({_NUMBERS})\b")
_ELSEWHERE = re.compile(r"\b([Cc]ontract|[Rr]eliability)[\s#*-]+(?:§|N?\d)")


def sources() -> Iterator[tuple[str, str]]:
    """Each text of the repository that people write, with its name."""
    listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    run = subprocess.run(listed, cwd=ROOT, capture_output=True, text=True, check=True)
    for name in filter(None, run.stdout.split("\0")):
        path = ROOT / name
        if path.suffix not in {".png", ".mo", ".gz"} and path.is_file():
            yield name, path.read_text(errors="ignore")


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: record.name[:4])
def test_a_decision_is_short(record):
    """It has a question, a decision, alternatives and a price, in at most 200 words."""
    text = record.read_text()
    assert len(text.split()) <= MOST_WORDS
    assert re.findall(r"^\*\*([A-Z]\w+\.)\*\*", text, re.MULTILINE) == SECTIONS


def test_every_cited_decision_is_there():
    """Code, tests and texts cite decisions by numbers that `docs/decisions` has."""
    # Published migrations never change, not even their comments.
    missing = {
        f"{name}: {found[0]}"
        for name, text in sources()
        if "/migrations/" not in name
        for found in _CITED.finditer(text)
        if not {int(number) for number in re.findall(r"\d+", found[1])} <= NUMBERS
    }
    assert not missing


def test_counts_in_words_are_those_of_the_code():
    """The languages and the kinds of steps, where a page counts them."""
    words = dict(enumerate(["six", "seven", "eight", "nine", "ten", "eleven", "twelve"], 6))
    assert f"in {words[len(Language)]} languages" in (DOCS / "index.md").read_text()
    (record,) = (DOCS / "decisions").glob("0016-*.md")
    assert f"one of {words[len(KINDS)]} kinds" in record.read_text()


def test_nothing_that_npm_installs_is_in_git():
    """Programs of tests and of the editor are installed from their locks."""
    assert not [name for name, _ in sources() if "node_modules/" in name]


def test_nothing_cites_a_document_that_is_not_here():
    """A promise is cited by the id of its rule, which stands in docs/rules.md."""
    assert not [name for name, text in sources() if _ELSEWHERE.search(text)]


def test_figures_name_parts_that_can_be_left_out():
    """What the page on performance says of a part, `python -m bench without` measures."""
    page = (DOCS / "performance.md").read_text()
    table = page.partition("## What each part buys")[2].partition("\n## ")[0]
    named = re.findall(r"^\| ([a-z][\w ]+) \|", table, re.MULTILINE)
    assert named
    assert set(named) <= set(PARTS)
