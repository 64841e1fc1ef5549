"""The rows at an approval: shown as tables, and edited by who is asked."""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from wfserver.output import clean, shortened

if TYPE_CHECKING:
    from rich.console import Console

_CELL = 60
Group = Mapping[str, Any]
Rows = list[dict[str, Any]]


def put_groups(groups: Sequence[Group], out: "Console") -> None:
    """Each group of `reviewableGroups` as a table."""
    for group in groups:
        _put_group(group, group["items"], out)


def _put_group(group: Group, rows: Sequence[Mapping[str, Any]], out: "Console") -> None:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    title = f"{clean(group['title'])} ({len(rows)})"
    table = Table(title=Text(title, "bold"), box=box.SIMPLE_HEAD, title_justify="left")
    columns = _columns(group, rows)
    for column in columns:
        right = column["type"] == "number"
        name = clean(column["title"]) + (" *" if column["editable"] else "")
        table.add_column(Text(name), justify="right" if right else "left")
    for row in rows:
        table.add_row(*(Text(_cell(row.get(column["key"]))) for column in columns))
    out.print(table)


def _columns(group: Group, rows: Sequence[Mapping[str, Any]]) -> Sequence[Mapping[str, Any]]:
    """The declared columns, or where there are none, one for each name in the rows."""
    if group["columns"]:
        columns: Sequence[Mapping[str, Any]] = group["columns"]
        return columns
    names = dict.fromkeys(name for row in rows for name in row)
    return [{"key": name, "title": name, "type": "json", "editable": True} for name in names]


def _cell(value: Any) -> str:
    return "" if value is None else shortened(value, _CELL)


def ask(
    groups: Sequence[Group], question: str, out: "Console"
) -> tuple[bool, dict[str, Rows] | None]:
    """
    Yes, no, or first edit: whether to approve, and `editedItems` where rows were changed.

    Raises `click.Abort` at the end of input.
    """
    edited: dict[str, Rows] | None = None
    while True:
        answer = _prompt(f"{question} [y]es, [n]o, [e]dit: ", out).strip().lower()
        if answer in ("y", "yes"):
            return True, edited
        if answer in ("n", "no"):
            return False, None
        if answer in ("e", "edit"):
            edited = edited or {one["name"]: [dict(row) for row in one["items"]] for one in groups}
            for group in groups:
                _edit(group, edited[group["name"]], out)


def _edit(group: Group, rows: Rows, out: "Console") -> None:
    out.print("KEY COLUMN VALUE changes a value, drop KEY leaves a row out, Enter is done")
    while line := _prompt(f"{clean(group['name'])}> ", out).strip():
        try:
            _apply(line, group, rows)
            _put_group(group, rows, out)
        except ValueError as error:
            out.print(f"  {error}")


def _prompt(words: str, out: "Console") -> str:
    answer: str = click.prompt(
        words, default="", show_default=False, prompt_suffix="", err=out.stderr
    )
    return answer


def _apply(line: str, group: Group, rows: Rows) -> None:
    """Change *rows* as *line* says. Raises `ValueError` with what would be right."""
    words = line.split(None, 2)
    if words[0] == "drop" and len(words) == 2:
        rows.remove(_row(words[1], group, rows))
    elif len(words) == 3:
        row = _row(words[0], group, rows)
        column = _column(words[1], group, rows)
        row[column["key"]] = _READERS.get(column["type"], str)(words[2])
    else:
        raise ValueError("say KEY COLUMN VALUE, or drop KEY")


def _row(key: str, group: Group, rows: Rows) -> dict[str, Any]:
    """The row with that key, or, where the group names no key, with that number from 1."""
    for number, row in enumerate(rows, 1):
        if key == str(row.get(group["rowKey"]) if group["rowKey"] else number):
            return row
    raise ValueError(f"there is no row {key}")


def _column(name: str, group: Group, rows: Rows) -> Mapping[str, Any]:
    for column in _columns(group, rows):
        if name.lower() in (column["key"].lower(), column["title"].lower()):
            if not column["editable"]:
                raise ValueError(f"{column['title']} cannot be edited")
            return column
    raise ValueError(f"there is no column {name}")


def _number(text: str) -> Any:
    try:
        value = json.loads(text)
    except ValueError:
        value = None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"{text} is not a number")
    return value


def _boolean(text: str) -> bool:
    if text not in ("true", "false"):
        raise ValueError("say true or false")
    return text == "true"


_READERS: Mapping[str, Callable[[str], Any]] = {
    "number": _number,
    "boolean": _boolean,
    "json": json.loads,
}
