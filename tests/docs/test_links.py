"""Links lead somewhere: to a file, to a heading of it, to a rule; and every page can be found."""

import re
import subprocess
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from wfdocs import reference
from wfdocs.rules import rules

from .pages import DOCS, ROOT

PAGES = sorted([*ROOT.glob("*.md"), *DOCS.glob("*.md"), *DOCS.glob("*/*.md")])
DECISIONS = sorted((DOCS / "decisions").glob("0*.md"))
_FENCED = re.compile(r"^(`{3,}).*?^\1$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"(?<!\\)\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#{1,6} (.+)$", re.MULTILINE)
_RULES = {f"rule-{rule.id.lower()}" for rule in rules()}
_TARGET = re.compile(r"^([a-z-]+):(?!=)", re.MULTILINE)


def written() -> list[Path]:
    return [page for page in PAGES if page.parent.name != "reference"]


@cache
def text_of(page: Path) -> str:
    """What a page says: generated ones as they would be written, without their blocks of code."""
    if page.parent == DOCS / "reference":
        return reference.PAGES[page.stem]()
    return _FENCED.sub("", page.read_text())


@cache
def anchors(page: Path) -> set[str]:
    """What can stand behind `#` in a link to *page*."""
    made: Counter[str] = Counter()
    found = set(re.findall(r"^\(([\w-]+)\)=$", text_of(page), re.MULTILINE))
    for heading in _HEADING.findall(text_of(page)):
        plain = re.sub(r"\[([^]]*)\]\([^)]*\)|[`*]", r"\1", heading)
        slug = re.sub(r"[^\w\- ]", "", plain.lower()).strip().replace(" ", "-")
        found.add(f"{slug}-{made[slug]}" if made[slug] else slug)
        made[slug] += 1
    return found


def links(page: Path) -> Iterator[tuple[str, str]]:
    """Path and anchor of every link that stays here."""
    for target in _LINK.findall(text_of(page)):
        if not re.match(r"[a-z]+:", target):
            path, _, anchor = target.partition("#")
            yield path, anchor


def exists(path: Path) -> bool:
    if path.parent == DOCS / "reference":
        return path.stem in reference.PAGES
    return path.exists()


def test_links_lead_somewhere() -> None:
    """Each file is there, and each anchor is a heading of that file, or a rule."""
    assert list(dangling()) == []


def dangling() -> Iterator[str]:
    """The links to what is not there, each behind the page that it stands on."""
    for page in written():
        for path, anchor in links(page):
            goal = (page.parent / path).resolve() if path else page
            if not exists(goal):
                yield f"{page.relative_to(ROOT)}: {path}"
            elif anchor and anchor not in _RULES and anchor not in anchors(goal):
                yield f"{page.relative_to(ROOT)}: {path}#{anchor}"


def test_every_page_stands_in_the_contents() -> None:
    """Nobody has to know the name of a page to find it."""
    contents = (DOCS / "index.md").read_text()
    for page in written():
        if page.is_relative_to(DOCS) and page.parent.name != "decisions":
            name = str(page.relative_to(DOCS).with_suffix(""))
            assert name == "index" or f"\n{name}\n" in contents, name


def test_decisions_are_found_by_subject() -> None:
    """Each record stands once in the index, under its title and its number."""
    index = (DOCS / "decisions/README.md").read_text()
    for record in DECISIONS:
        number, _, title = record.read_text().partition("\n")[0].removeprefix("# ").partition(" ")
        assert int(number.rstrip(".")) == int(record.name[:4]), record.name
        entry = f"- [{title}]({record.name}) ({int(record.name[:4])})\n"
        assert index.count(entry) == 1, f"docs/decisions/README.md lacks: {entry}"


def test_files_that_are_named_are_there() -> None:
    """A path in backticks is one of the repository, or a page that `make docs` writes."""
    for page in written():
        if page.parent.name == "decisions" or page.name == "CHANGELOG.md":
            continue  # what they tell was so at its time
        for path in re.findall(r"`((?:src|tests|docs|examples)/[\w/.-]+)`", text_of(page)):
            folder, _, name = path.partition("docs/reference/")
            made = not folder and (not name or Path(name).stem in reference.PAGES)
            assert made or (ROOT / path).exists(), f"{page.name}: {path}"


def test_make_help_lists_every_target() -> None:
    """By subject, each with a line; and every `make …` of the documentation is one of them."""
    makefile = (ROOT / "Makefile").read_text()
    run = subprocess.run(["make", "help"], cwd=ROOT, capture_output=True, text=True, check=True)
    listed = re.findall(r"^  make ([a-z-]+) +\S", run.stdout, re.MULTILINE)
    assert sorted(listed) == sorted(_TARGET.findall(makefile))
    assert len(re.findall(r"^\S.+$", run.stdout, re.MULTILINE)) > 3
    for page in written():
        named = re.findall(r"`make ([a-z-]+)", page.read_text())
        assert set(named) <= set(listed), page.name
