"""
The rows of an approval while a reviewer changes them: lines of text in, checked rows out.

As for every other way to approve, `wfcore.rules.approval` decides which changes are allowed.
`wfcore.rules.approval` is called after each change, so that a mistake is reported at once. Printing
is the task of `review`.

Keys and headings may contain blanks: of all names with which a line may begin, the longest name
counts, and quotation marks resolve what remains unclear. Rows keep their numbers while others are
dropped, so that the numbers on the screen stay valid.
"""

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from attrs import evolve, frozen

from wfcore.errors import InvalidInput
from wfcore.model.approval import Approval, Group
from wfcore.model.json import Json, JsonObject
from wfcore.model.workflow import Column, ColumnType
from wfcore.rules.approval.agreement import given_answers
from wfcore.rules.approval.released_rows import released_rows
from wfcore.rules.numbers import kept
from wfserver.terminal.output import as_json

HELP = """\
KEY COLUMN VALUE   change a cell; "set" may stand before it
clear KEY COLUMN   empty a cell
drop KEY           leave a row out
add [KEY]          a new row, where the workflow allows it; then fill its cells
undo               take the last change back; again: the one before
rows [NUMBER]      the rows from that one on, or the next page
find TEXT          the rows that hold a text
comment TEXT       goes into the history of the approval
help               this
Enter              done with these rows

Names with blanks may be typed as they are, or in quotation marks: "A 1" "Paid by" Ann.
A text that begins or ends with blanks goes in quotation marks, too: A1 note " two "."""

_USAGE = "say KEY COLUMN VALUE, or help for what else there is"
_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"')
_Rows = Mapping[int, JsonObject]


@frozen
class EditorReply:
    """The result of a line: the numbers of the *rows* to show, or a *text*."""

    rows: Sequence[int] = ()
    text: str = ""


class Draft:
    """The rows, answers and comment of a decision that is not made yet."""

    def __init__(
        self,
        approval: Approval,
        comment: str | None = None,
        answers: Mapping[str, Json] | None = None,
    ) -> None:
        self.approval = approval
        self.comment = comment
        self.answers: dict[str, Json] = dict(answers or {})
        self._past: list[Mapping[str, _Rows]] = []
        self._rows: Mapping[str, _Rows] = {
            group.name: dict(enumerate(group.items, 1)) for group in approval.groups
        }

    def rows(self, group: Group) -> _Rows:
        """The present rows of *group*, by number."""
        return self._rows[group.name]

    @property
    def edited(self) -> Mapping[str, Json] | None:
        """The value of `editedItems`; None if nothing was changed."""
        if not self._past:
            return None
        return {name: list(rows.values()) for name, rows in self._rows.items()}

    def check(self) -> None:
        """Raises `InvalidInput` if rows or answers break a rule. AP-9, AP-30."""
        if self.edited is not None:
            released_rows(self.approval, self.edited)
        given_answers(self.approval, self.answers)

    def change(self, group: Group, rows: _Rows) -> None:
        """Replace the rows of *group* by *rows*; `undo` takes that back."""
        self._past.append(self._rows)
        self._rows = {**self._rows, group.name: rows}

    def undo(self) -> None:
        """Take back the last change. Raises `ValueError` if there is none."""
        if not self._past:
            raise ValueError("nothing is changed")
        self._rows = self._past.pop()


class Editor:
    """An editor for one group of a draft; `HELP` lists its commands."""

    def __init__(self, draft: Draft, group: Group) -> None:
        self._draft = draft
        self._group = group
        self._commands: Mapping[str, Callable[[str], EditorReply]] = {
            "set": self._set,
            "clear": self._clear,
            "drop": self._drop,
            "add": self._add,
            "undo": self._undo,
            "rows": self._page,
            "find": self._find,
            "comment": self._comment,
            "help": lambda _: EditorReply(text=HELP),
            "?": lambda _: EditorReply(text=HELP),
        }

    def obey(self, line: str) -> EditorReply:
        """
        Carry out the command *line*. Raises `ValueError` with the cure; then nothing is changed.
        """
        first, _, rest = line.strip().partition(" ")
        command = self._commands.get(first.lower())
        return command(rest.strip()) if command else self._set(line.strip())

    @property
    def _rows(self) -> _Rows:
        return self._draft.rows(self._group)

    def _set(self, text: str) -> EditorReply:
        number, rest = self._row(text)
        column, value = self._column(number, rest)
        if not value:
            raise ValueError(f"{_USAGE}; clear KEY COLUMN empties a cell")
        return self._put(number, column, read_cell(column, value))

    def _clear(self, text: str) -> EditorReply:
        number, rest = self._row(text)
        column, more = self._column(number, rest)
        if more:
            raise ValueError("say clear KEY COLUMN")
        return self._put(number, column, None)

    def _put(self, number: int, column: Column, value: Json) -> EditorReply:
        if self._group.columns:
            check_cell(self._draft.approval, column, value)
        row = {**self._rows[number], column.key: value}
        self._draft.change(self._group, {**self._rows, number: row})
        try:
            self._draft.check()
        except InvalidInput as wrong:
            place = list(self._rows).index(number)
            if wrong.field == f"editedItems.{self._group.name}[{place}].{column.key}":
                self._draft.undo()
                raise ValueError(f"{column.title} {wrong.fix}") from None
        return EditorReply([number])

    def _drop(self, text: str) -> EditorReply:
        number, more = self._row(text)
        if more:
            raise ValueError(f"there is no row {text}")
        rest = {one: row for one, row in self._rows.items() if one != number}
        self._draft.change(self._group, rest)
        return EditorReply(text=f"{len(rest):,} rows are left; undo brings it back")

    def _add(self, text: str) -> EditorReply:
        if not self._group.allow_add:
            raise ValueError("no row may be added here")
        number = max([len(self._group.items), *self._rows]) + 1
        key = self._group.row_key
        if key is not None and not text:
            raise ValueError("say add KEY")
        if key is None and text:
            raise ValueError("these rows have no key: say add, then fill the cells")
        if text in self._names():
            raise ValueError(f"there is a row {text} already")
        row = {} if key is None else {key: read_cell(self._key_column(key), text)}
        self._draft.change(self._group, {**self._rows, number: row})
        return EditorReply([number])

    def _key_column(self, key: str) -> Column:
        """
        The declared column *key*, or else a column of numbers or texts like the proposed keys.
        """
        for column in self._group.columns:
            if column.key == key:
                return column
        numbers = any(isinstance(row.get(key), int | float) for row in self._group.items)
        return Column(key, key, ColumnType.NUMBER if numbers else ColumnType.STRING)

    def _undo(self, _: str) -> EditorReply:
        self._draft.undo()
        return EditorReply(text="taken back")

    def _page(self, text: str) -> EditorReply:
        if text and not text.isdecimal():
            raise ValueError("say rows NUMBER")
        return EditorReply([one for one in self._rows if one >= int(text or 1)])

    def _find(self, text: str) -> EditorReply:
        if not text:
            raise ValueError("say find TEXT")
        wanted = _unquoted(text).casefold()
        found = [one for one, row in self._rows.items() if wanted in as_json(row, None).casefold()]
        return EditorReply(found, "" if found else f"no row holds {text}")

    def _comment(self, text: str) -> EditorReply:
        self._draft.comment = text or None
        return EditorReply(text=f"comment: {text}" if text else "no comment")

    def _names(self) -> Mapping[str, int]:
        """The numbers of the rows by name: the row's key, or its number if the group has no key."""
        key = self._group.row_key
        return {
            str(number) if key is None else shown(row.get(key)): number
            for number, row in self._rows.items()
        }

    def _row(self, text: str) -> tuple[int, str]:
        names = self._names()
        name, rest = _split(text, names)
        if name not in names:
            raise ValueError(f"there is no row {name}" if " " in text else _USAGE)
        return names[name], rest

    def _column(self, number: int, text: str) -> tuple[Column, str]:
        if not text:
            raise ValueError(_USAGE)
        columns = columns_of(self._group)
        names = {name.casefold(): one for one in columns for name in (one.title, one.key)}
        names |= {one.key.casefold(): one for one in columns}
        name, rest = _split(text, names, str.casefold)
        column = names.get(name.casefold())
        if column is None:
            known = ", ".join(one.title for one in columns)
            raise ValueError(f"there is no column {name}; the columns are: {known}")
        if not column.editable and number <= len(self._group.items):
            raise ValueError(f"{column.title} cannot be edited")
        return column, rest


def columns_of(group: Group) -> Sequence[Column]:
    """The declared columns, or else one column for each name in the rows."""
    if group.columns:
        return group.columns
    names = dict.fromkeys(name for row in group.items for name in row)
    return [Column(name, name, ColumnType.JSON) for name in names]


def check_cell(approval: Approval, column: Column, value: Json) -> None:
    """Raises `ValueError` if *value* is not allowed in *column* in any row. AP-9."""
    only = evolve(approval, groups=(Group("", "", (column,), ({},)),), history=())
    try:
        released_rows(only, {"": [{column.key: value}]})
    except InvalidInput as wrong:
        wrong_value = f" and {shown(value)} is not" if value is not None else ""
        raise ValueError(f"{column.title} {wrong.fix}{wrong_value}") from None


def read_cell(column: Column, text: str) -> Json:
    """The value of *text* in *column*. Raises `ValueError`."""
    match column.type:
        case ColumnType.NUMBER:
            return _number(text)
        case ColumnType.BOOLEAN:
            if text.lower() not in ("true", "false"):
                raise ValueError("say true or false")
            return text.lower() == "true"
        case ColumnType.ENUM:
            options = {shown(option): option for option in column.options}
            return options.get(_unquoted(text), _unquoted(text))
        case ColumnType.JSON:
            return _json(text)
        case _:
            return _unquoted(text)


def _number(text: str) -> Json:
    try:
        value = _kept(text)
    except json.JSONDecodeError:
        value = None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"{text} is not a number")
    return value


def _json(text: str) -> Json:
    """The JSON value in *text*; a text that does not begin like JSON stands for itself."""
    try:
        return _kept(text)
    except json.JSONDecodeError as error:
        if text[0] in '[{"':
            raise ValueError(f"{text} is not JSON: {error}") from None
        return text


def _kept(text: str) -> Json:
    """The JSON value in *text*. Raises `ValueError`, also for a number that would change. NU-2."""
    try:
        return kept(text.encode(), exact=True)
    except InvalidInput as refused:
        raise ValueError(str(refused)) from None


def shown(value: Any) -> str:
    """*value* as text for the screen: a text itself, other values as JSON."""
    return value if isinstance(value, str) else as_json(value, None)


def _split(text: str, names: Iterable[str], fold: Callable[[str], str] = str) -> tuple[str, str]:
    """The name at the beginning of *text* (quoted, or the longest of *names*), and the rest."""
    quoted = _QUOTED.match(text)
    if quoted:
        return _unquoted(quoted[0]), text[quoted.end() :].strip()
    folded = fold(text)
    fitting = [one for one in names if one and (folded + " ").startswith(one + " ")]
    if fitting:
        size = len(max(fitting, key=len))
        return text[:size], text[size:].strip()
    name, _, rest = text.partition(" ")
    return name, rest.strip()


def _unquoted(text: str) -> str:
    """*text* without the quotation marks around it, with JSON's escapes."""
    if _QUOTED.fullmatch(text) is None:
        return text
    try:
        return str(json.loads(text))
    except ValueError:
        return text[1:-1]
