"""Every command that the documentation mentions is one, with the options that it has."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from wfserver.cli import cli

from .pages import DOCS, ROOT

PAGES = [ROOT / "README.md", *sorted(DOCS.glob("*.md")), *sorted(DOCS.glob("*/*.md"))]
_INLINE = re.compile(r"`(?:[\w.$/-]*/)?wfcore ([^`]+)`")
_LINES = {
    "bash": re.compile(r"^(?:\w+=\$\()?(?:[\w./-]*/)?wfcore ([^|#>\n]*)", re.MULTILINE),
    "console": re.compile(r"^\$ (?:[\w./-]*/)?wfcore ([^|#>\n]*)", re.MULTILINE),
}
_FENCED = re.compile(r"^```(bash|console)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_PLACEHOLDER = re.compile(r"[A-Z][A-Z-]*|…|\.\.\.")


def mentioned(text: str) -> Iterator[str]:
    """The arguments of every call, in prose and in blocks; continued lines as one."""
    for found in _INLINE.finditer(text):
        yield " ".join(found[1].split())
    for block in _FENCED.finditer(text):
        for found in _LINES[block[1]].finditer(block[2].replace("\\\n", " ")):
            yield found[1]


def pages() -> list[Path]:
    return [page for page in PAGES if page.parent.name not in ("reference", "decisions")]


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.name)
def test_commands_exist(page: Path) -> None:
    """Words lead to a command, and its options are known."""
    for call in mentioned(page.read_text()):
        try:
            words = shlex.split(call.rstrip(")").replace("[", "").replace("]", ""))
        except ValueError:
            continue  # a quotation that goes on in the next line
        assert_known(words, f"{page.name}: wfcore {call}")


def assert_known(words: list[str], where: str) -> None:
    group: click.Command = cli
    while words and isinstance(group, click.Group):
        if words[0].startswith("-"):
            words = words[2:] if words[0] in ("--data", "--settings", "--store") else words[1:]
            continue
        if _PLACEHOLDER.fullmatch(words[0]):
            return  # COMMAND stands for any
        found = group.get_command(click.Context(group), words[0].partition("|")[0])
        assert found is not None, where
        group, words = found, words[1:]
    known = {option for one in group.params for option in (*one.opts, *one.secondary_opts)}
    for word in words:
        if word.startswith("-") and word != "-" and not word[1:].isdigit():
            assert word.partition("=")[0] in known | {"--help", "-h"}, where
