"""Bits of Markdown: tables with escaped cells, and line breaks in long names."""

import re
from collections.abc import Iterable, Sequence

_CODE = re.compile(r'(?<=<span class="pre">)[^<]+')
_RULE = re.compile(r">([A-Z]{2}-\d+)<")


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table, with line breaks and bars in cells escaped."""
    lines = [_line(heads), _line(["---"] * len(heads))]
    return "\n".join([*lines, *(_line([cell(one) for one in row]) for row in rows)]) + "\n"


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def cell(text: str) -> str:
    """*text* on one line, its bars escaped."""
    return " ".join(text.replace("|", "\\|").split())


def code(text: object) -> str:
    """*text* in backticks; an empty text stays empty."""
    return f"`{text}`" if str(text) else ""


def first_paragraph(doc: str | None) -> str:
    """The first paragraph of a docstring, on one line."""
    return " ".join((doc or "").strip().split("\n\n")[0].split())


def breakable(html: str) -> str:
    """
    A built page whose long names may break at `_`, `/` and `.`, and whose rule ids may not.

    So a table with `WFCORE_CONNECTIONS_PER_ADDRESS` in it fits a phone.
    """
    parted = _CODE.sub(lambda found: re.sub(r"(?<=\w)([_/.])(?=\w)", r"\1<wbr>", found[0]), html)
    return _RULE.sub(r'><span class="whole">\1</span><', parted)
