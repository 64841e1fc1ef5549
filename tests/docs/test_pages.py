"""What the documentation tells to do works, as it is written."""

import re
from pathlib import Path

import pytest

from docs.pages import BESIDE, DOCS, FAILS, NOT_RUN, ROOT, Reader, blocks

FOLDERS = ("tutorial", "howto", "explanation")
PAGES = [
    *sorted(path for folder in FOLDERS for path in (DOCS / folder).glob("*.md")),
    DOCS / "simulator.md",
    DOCS / "testing.md",
]
SHOWN = ("text", "json", "http")
DONE = ("bash", "python")


def name(path: Path) -> str:
    return str(path.relative_to(DOCS))


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_a_page_does_what_it_says(page: Path, tmp_path: Path) -> None:
    """Files are written, commands run in order; tutorials need nothing but package and page."""
    reader = Reader(tmp_path, examples=page.parent.name != "tutorial")
    try:
        reader.follow(page)
    finally:
        reader.end()


def test_pages_install_what_exists() -> None:
    """Until there is a release, nobody is sent to an index, where others could use the name."""
    assert "(unreleased)" in (ROOT / "CHANGELOG.md").read_text()
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *DOCS.glob("*.md"), *DOCS.glob("*/*.md")]
    for page in pages:
        if page.parent.name not in ("decisions", "reference"):
            found = set(re.findall(r"pip install ([\w./]*wfcore)\S*", unquoted(page.read_text())))
            assert found <= {"path/to/wfcore"}, page


def unquoted(text: str) -> str:
    """Without quotation marks, and without what is added to an installation that is there."""
    return text.replace("'", "").replace('"', "").replace("pip install wfcore[node]", "")


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_every_block_is_a_file_a_command_or_shown_on_purpose(page: Path) -> None:
    """No code stands in a page that nobody has ever run."""
    for block in blocks(page):
        known = block.file is not None or block.language in (*SHOWN, *DONE)
        assert known, f"{page}:{block.line} is neither a file nor run nor shown"
        assert block.note in ("", BESIDE, FAILS) or block.note.startswith(NOT_RUN), block.note
