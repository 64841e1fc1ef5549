"""Each rule of docs/rules.md is cited where it lives and where it is tested, and no other."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LISTED = re.compile(r"^\| ([A-Z]{2}-\d+) \| (.+) \| (.+) \|$", re.MULTILINE)
CITED = re.compile(r"\b([A-Z]{2})-(\d+)(?: to (?:\1-)?(\d+))?\b")


def listed() -> list[str]:
    return [id for id, _, _ in LISTED.findall((ROOT / "docs/rules.md").read_text())]


def cited(folder: str) -> dict[str, str]:
    """Ids cited below *folder*, ranges spelled out, each with a file that does."""
    found: dict[str, str] = {}
    for path in sorted(set((ROOT / folder).rglob("*.py")) - {Path(__file__)}):
        for kind, first, last in CITED.findall(path.read_text()):
            for number in range(int(first), int(last or first) + 1):
                found.setdefault(f"{kind}-{number}", str(path.relative_to(ROOT)))
    return found


def test_no_rule_is_listed_twice():
    """An id stands for one sentence."""
    assert len(set(listed())) == len(listed()) > 100


@pytest.mark.parametrize("folder", ["src", "tests"])
def test_every_rule_is_cited(folder: str):
    """A rule without code or without a test is a wish."""
    missing = set(listed()) - cited(folder).keys()
    assert not missing, f"not cited in {folder}: {', '.join(sorted(missing))}"


@pytest.mark.parametrize("folder", ["src", "tests"])
def test_every_cited_rule_is_listed(folder: str):
    """A citation leads to a sentence."""
    unknown = {id: path for id, path in cited(folder).items() if id not in listed()}
    assert not unknown
