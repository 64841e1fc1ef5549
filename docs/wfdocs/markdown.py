"""Bits of Markdown: tables whose cells cannot break them."""

from collections.abc import Iterable, Sequence


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
