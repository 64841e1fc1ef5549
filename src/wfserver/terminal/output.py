"""
The output of commands: one JSON document, or text, compact on a terminal and plain in a pipe.

All text of users passes through `clean`, so that none of their control characters reaches the
terminal.
"""

import json
import re
import shutil
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

from wfcore.rules.visible import visible

if TYPE_CHECKING:
    from rich.console import Console

_PIPE_WIDTH = 10_000
_GAP = "  "
_LEAST_CELL = 12
_MOST_CELL = 40
"""The widest column on a terminal, except for the last: an id fits, a long name is cut."""


def console(*, stderr: bool = False) -> "Console":
    """The console for text. If it is no terminal, there are neither colours nor line breaks."""
    from rich.console import Console

    width = None if (sys.stderr if stderr else sys.stdout).isatty() else _PIPE_WIDTH
    return Console(stderr=stderr, width=width, highlight=False, emoji=False, markup=False)


def clean(text: object) -> str:
    """*text* without invisible characters, except for line ends and tabs."""
    return visible(str(text))


def shortened(value: Any, most: int) -> str:
    """*value* as one line of at most *most* characters: a text itself, other values as JSON."""
    text = value if isinstance(value, str) else as_json(value, indent=None)
    text = clean(text).replace("\n", "⏎").replace("\t", " ")
    return _cut(text, most)


def as_json(document: Any, indent: int | None = 2) -> str:
    """*document* as JSON text that the encoding of stdout can express."""
    can_all = (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
    text = json.dumps(document, indent=indent, ensure_ascii=not can_all)
    return _CONTROLS.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


_CONTROLS = re.compile("[\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]")
"""Characters that may control a terminal but that JSON does not escape."""


def say(text: object = "", *, nl: bool = True, err: bool = False) -> None:
    """Print *text* for people, without invisible characters."""
    click.echo(clean(text), nl=nl, err=err)


def put_text(text: str) -> None:
    """Print *text* unchanged; on a terminal without invisible characters."""
    click.echo(clean(text) if sys.stdout.isatty() else text, nl=False)


def put_json(document: Any, indent: int | None = 2) -> None:
    """Print one JSON document on stdout."""
    click.echo(as_json(document, indent))


def put_answer(as_json: bool, answer: Any, put: Callable[[Any], None]) -> None:
    """Print the answer of an operation: as JSON, or with *put* for people."""
    if as_json:
        put_json(answer)
    else:
        put(answer)


def put_table(heads: Sequence[str], rows: Iterable[Sequence[object]], total: int | None) -> None:
    """
    Print rows under headings, the most important columns first; a terminal gets the columns that
    fit.

    Says how many more rows there are, or that there are no rows.
    """
    cells = [tuple(_cell(value) for value in row) for row in rows]
    if not cells:
        click.echo("none")
        return
    room = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    lines = _aligned([tuple(heads), *cells], room)
    click.secho(lines[0], bold=True)
    for line in lines[1:]:
        click.echo(line)
    if total is not None and total > len(cells):
        click.echo(f"{len(cells)} of {total}; --limit shows more")


def _aligned(rows: Sequence[tuple[str, ...]], room: int | None) -> list[str]:
    """
    *rows* as lines with aligned columns; columns beyond *room* are left out, the last column is
    cut.
    """
    if room is not None:
        rows = [(*(_cut(cell, _MOST_CELL) for cell in row[:-1]), row[-1]) for row in rows]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    shown, used = 0, 0
    for width in widths:
        least = min(width, _LEAST_CELL)
        if room is not None and shown and used + least > room:
            break
        shown, used = shown + 1, used + width + len(_GAP)
    lines = []
    for row in rows:
        padded = (f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True))
        line = _GAP.join(list(padded)[:shown]).rstrip()
        lines.append(line if room is None else _cut(line, room))
    return lines


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


def put_fields(fields: Mapping[str, object]) -> None:
    """Print names and values, aligned; names without a value are left out."""
    wide = max(map(len, fields))
    for name, value in fields.items():
        if value is not None and value != "":
            say(f"{name:<{wide}}  {_cell(value)}")


def _cell(value: object) -> str:
    return "-" if value is None else clean(value).replace("\n", " ")


def instant(at: int | None) -> str:
    """The instant *at* (epoch ms) for people, in UTC."""
    if at is None:
        return "-"
    return f"{datetime.fromtimestamp(at / 1_000, UTC):%Y-%m-%d %H:%M:%S}Z"


def span(ms: int | None) -> str:
    """The length of time *ms* for people."""
    if ms is None:
        return "-"
    if ms < 1_000:
        return f"{ms} ms"
    return f"{ms / 1_000:.1f} s" if ms < 120_000 else f"{ms // 60_000} min"


def counted(number: int, noun: str) -> str:
    """*number* of *noun*, whose plural takes an s: `1 scenario`, `3 scenarios`."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def rounds_of(begun: int, rounds: int) -> str:
    """The progress of a loop: `321 of 500 rounds`."""
    return f"{begun:,} of {rounds:,} {'round' if rounds == 1 else 'rounds'}"
