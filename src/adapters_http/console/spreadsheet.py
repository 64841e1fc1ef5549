"""
Tables as CSV for spreadsheets in the reader's languages. Decision 240.

If a comma is the decimal sign, semicolons separate cells. Texts are quoted, but not numbers. A text
that a spreadsheet would run as a formula gets a mark, and so does a text that begins like the mark:
pasting removes one mark (`unmarked` in `values.js`).
"""

import re
from collections.abc import Iterable, Sequence
from itertools import chain

from adapters_http.console.language import has_comma
from wfcore.model.json import Json
from wfcore.rules.approval.typed import cell_text

_FORMULA = re.compile(r"'*[=+\-@\t\r]")


def spreadsheet(titles: Sequence[Json], rows: Iterable[Sequence[Json]]) -> str:
    """The CSV of *titles* and *rows*."""
    comma = has_comma()
    between = ";" if comma else ","
    lines = chain([titles], rows)
    return "".join(between.join(_cell(one, comma) for one in line) + "\r\n" for line in lines)


def _cell(value: Json, comma: bool) -> str:
    text = cell_text(value)
    if isinstance(value, float) and comma:
        return text.replace(".", ",")
    if value is None or isinstance(value, int | float):
        return text
    mark = "'" if isinstance(value, str) and _FORMULA.match(text) else ""
    return '"' + mark + text.replace('"', '""') + '"'
