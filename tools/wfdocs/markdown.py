"""Bits of Markdown: tables whose cells cannot break them; and where a line of a page may break."""

import re
from collections.abc import Iterable, Sequence

_CODE = re.compile(r'(?<=<span class="pre">)[^<]+')
_RULE = re.compile(r">([A-Z]{2}-\d+)<")


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table; line breaks and bars in cells are taken care of."""
    lines = [_line(heads), _line(["---"] * len(heads))]
    return "\n".join([*lines, *(_line([cell(one) for one in row]) for row in rows)]) + "\n"


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def cell(text: str) -> str:
    """*text* on one line, its bars escaped."""
    return " ".join(text.replace("|", "\\|").split())


def code(text: object) -> str:
    """*text* in backticks; nothing for nothing."""
    return f"`{text}`" if str(text) else ""


def first_paragraph(doc: str | None) -> str:
    """What a docstring says first, on one line."""
    return " ".join((doc or "").strip().split("\n\n")[0].split())


def breakable(html: str) -> str:
    """
    A built page whose long names may break at `_`, `/` and `.`, and whose rule ids may not.

    So a table with `WFCORE_CONNECTIONS_PER_ADDRESS` in it fits a phone.
    """
    parted = _CODE.sub(lambda found: re.sub(r"(?<=\w)([_/.])(?=\w)", r"\1<wbr>", found[0]), html)
    return _RULE.sub(r'><span class="whole">\1</span><', parted)
