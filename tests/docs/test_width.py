"""Pages are written in one width, so that a change shows the lines that it changed."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from .test_links import written

WIDTH = 120


def prose(page: Path) -> Iterator[str]:
    """The lines of *page*, but for tables, code, lists of links, and what `make tables` writes."""
    ends = ""
    text, _, _ = page.read_text().partition("<!-- what follows is written by")
    for line in text.splitlines():
        opens = "```" if line.lstrip().startswith("```") else ""
        opens = "<!-- end" if line.startswith(("<!-- states", "<!-- fields")) else opens
        if ends:
            ends = "" if line.lstrip().startswith(ends) else ends
        elif opens:
            ends = opens
        elif not line.startswith(("|", "- [")):
            yield line


@pytest.mark.parametrize("page", written(), ids=lambda page: page.stem)
def test_prose_has_one_width(page: Path) -> None:
    """A page wraps its prose at 120 columns."""
    assert not [line for line in prose(page) if len(line) > WIDTH]
