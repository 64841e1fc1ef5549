"""An approval at the terminal: its rows as tables, and a prompt for the decision."""

import sys
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

import click
from attrs import evolve, frozen

from wfcore.errors import InvalidInput, WfError
from wfcore.model.approval import Approval, ApprovalStatus, Attachment, Group
from wfcore.model.json import Json, JsonObject
from wfcore.model.workflow import Column, ColumnType
from wfcore.rules.approval.agreement import given_answers
from wfcore.rules.approval.machine import Approve, Choice, Reject, Revise
from wfserver.errors import CommandFailed
from wfserver.terminal.output import clean, shortened
from wfserver.terminal.row_editor import Draft, Editor, columns_of, read_cell

if TYPE_CHECKING:
    from rich.console import Console

_CELL = 60
PAGE = 20
"""The number of rows that are shown at once."""

_HELP = """\
y            approve these rows
n            no
e            edit the rows, or leave some out
r            show all rows
v TEXT       ask for changes, where the workflow takes them
d BY TO      let TO decide in the place of the approver BY, where the step is delegable
a KEY VALUE  an answer to one of the fields
c TEXT       a comment for the history"""


@frozen
class ReviewerChoice:
    """The choice of a reviewer, with a comment."""

    choice: Choice
    comment: str | None = None


def approval_of(detail: Any) -> Approval:
    """The approval in the API's answer *detail*, to check a decision before it is sent."""
    return Approval(
        id=detail["id"],
        execution_id=detail["executionId"],
        workflow_id=detail["workflowId"],
        workflow_owner_id="",
        owner_id="",
        step_name=detail["stepName"],
        status=ApprovalStatus(detail["status"]),
        message=detail["approvalMessage"],
        timeout_ms=detail["timeout"],
        created_at=detail["createdAt"],
        expires_at=detail["expiresAt"],
        groups=tuple(map(_group, detail["reviewableGroups"])),
        fields=tuple(map(_field, detail["fields"])),
        answers=detail["answers"],
        attachments=tuple(map(_attachment, detail["attachments"])),
        revise_to=detail["reviseTo"],
        revisions_left=detail["revisionsLeft"],
    )


def _group(one: Any) -> Group:
    columns = tuple(
        Column(
            column["key"],
            column["title"],
            ColumnType(column["type"]),
            column["editable"],
            column["required"],
            tuple(column["options"]),
        )
        for column in one["columns"]
    )
    rows = tuple(one["items"])
    return Group(one["name"], one["title"], columns, rows, one["rowKey"], one["allowAdd"])


def _field(one: Any) -> Column:
    return Column(
        one["key"],
        one["title"],
        ColumnType(one["type"]),
        required=one["required"],
        options=tuple(one["options"]),
    )


def _attachment(one: Any) -> Attachment:
    fields = ("id", "executionId", "stepName", "name", "size", "contentType", "sha256")
    return Attachment(*(one[name] for name in fields))


def put_groups(approval: Approval, out: "Console", most: int | None = None) -> None:
    """Print each group of rows as a table of at most *most* rows."""
    for group in approval.groups:
        put_rows(group, dict(enumerate(group.items, 1)), out, most)


def put_question(approval: Approval, out: "Console") -> None:
    """Print the matter of *approval*: its files, its rows, and the fields to answer."""
    for file in approval.attachments:
        out.print(f"  attached: {file_line(file)}", soft_wrap=True)
    put_groups(approval, out, PAGE)
    for line in answer_lines(approval):
        out.print(f"  {line}", soft_wrap=True)


def file_line(file: Attachment) -> str:
    """An attachment in one line."""
    return clean(f"{file.name} of {file.step_name}, {file.size:,} bytes, sha256 {file.sha256}")


def answer_lines(approval: Approval) -> list[str]:
    """A line for each field with its answer; * marks required fields."""
    return [
        clean(f"{one.key}{' *' if one.required else ''} ({_description(one)}): ")
        + _cell(approval.answers.get(one.key))
        for one in approval.fields
    ]


def _description(field: Column) -> str:
    kind = "/".join(map(str, field.options)) if field.options else field.type.value
    return f"{field.title}, {kind}" if field.title != field.key else kind


def read_answers(approval: Approval, given: Iterable[tuple[str, str]]) -> Mapping[str, Json]:
    """The typed answers as values of their fields. Raises `InvalidInput` for a wrong value."""
    fields = {one.key: one for one in approval.fields}
    found: dict[str, Json] = {}
    for key, text in given:
        try:
            found[key] = read_cell(fields[key], text) if key in fields else text
        except ValueError as error:
            raise InvalidInput(f"answers.{key}", str(error)) from None
    return found


def put_rows(
    group: Group,
    rows: Mapping[int, JsonObject],
    out: "Console",
    most: int | None = None,
    total: int | None = None,
) -> None:
    """Print *rows*, by number, as a table of at most *most*; *group* has *total* rows in all."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    part = f"{len(rows):,} of " if total not in (None, len(rows)) else ""
    title = f"{clean(group.title)} ({part}{total or len(rows):,})"
    table = Table(title=Text(title, "bold"), box=box.SIMPLE_HEAD, title_justify="left")
    columns = _shown_columns(group)
    if group.row_key is None:
        table.add_column("#", justify="right")
    for column in columns:
        name = f"{clean(column.title)}{' *' if column.required else ''}"
        name += " (editable)" if column.editable else ""
        table.add_column(
            Text(name), justify="right" if column.type is ColumnType.NUMBER else "left"
        )
    for number, row in list(rows.items())[:most]:
        cells = [Text(_cell(row.get(column.key))) for column in columns]
        table.add_row(*([Text(str(number))] if group.row_key is None else []), *cells)
    out.print(table)
    if most is not None and len(rows) > most:
        next_one = list(rows)[most]
        out.print(f"  {most} of {len(rows):,} rows; rows {next_one}, while editing, goes on")


def _shown_columns(group: Group) -> list[Column]:
    columns = list(columns_of(group))
    if group.row_key is not None and group.row_key not in [one.key for one in columns]:
        columns.insert(0, Column(group.row_key, group.row_key, editable=False))
    return columns


def _cell(value: Json) -> str:
    return "" if value is None else shortened(value, _CELL)


Delegating = Callable[[str, str], str]
"""Lets the second person decide in place of the first; returns the result in words."""


def ask(
    approval: Approval,
    question: str,
    out: "Console",
    draft: Draft | None = None,
    delegating: Delegating | None = None,
) -> ReviewerChoice:
    """
    Prompt for a decision: yes, no, or edit *draft* first. Rows that violate a rule are not
    approved. With *delegating*, another person may be allowed to decide; the prompt remains.

    Raises `click.Abort` at the end of input.
    """
    draft = draft or Draft(approval)
    while True:
        answer = _prompt(f"{question} [y]es, [n]o, [e]dit, [c]omment, [?]: ", out).strip()
        word, _, rest = answer.partition(" ")
        match word.lower():
            case "y" | "yes":
                if _is_right(draft, out):
                    return ReviewerChoice(
                        Approve(draft.edited, draft.answers or None), draft.comment
                    )
            case "n" | "no":
                return ReviewerChoice(Reject(), draft.comment)
            case "v" | "revise" if approval.revise_to is not None:
                draft.comment = rest.strip() or draft.comment
                if draft.comment:
                    return ReviewerChoice(Revise(), draft.comment)
                out.print("  say what is to be changed: v TEXT")
            case "d" | "delegate" if delegating is not None:
                _delegate(delegating, rest, out)
            case "e" | "edit":
                edit(draft, out)
            case "r" | "rows":
                for group in approval.groups:
                    put_rows(group, draft.rows(group), out)
            case "a" | "answer":
                _answer(draft, rest, out)
            case "c" | "comment":
                draft.comment = rest.strip() or _prompt("comment: ", out).strip() or None
            case _:
                out.print(_HELP)


def _delegate(delegating: Delegating, text: str, out: "Console") -> None:
    by, _, to = text.strip().partition(" ")
    if not to.strip():
        out.print("  say who lets whom decide: d BY TO")
        return
    try:
        out.print(f"  {clean(delegating(by, to.strip()))}", soft_wrap=True)
    except (WfError, CommandFailed) as refused:  # here, or by a server elsewhere
        out.print(f"  {clean(refused)}", style="red")


def _answer(draft: Draft, text: str, out: "Console") -> None:
    key, _, value = text.strip().partition(" ")
    try:
        given = read_answers(draft.approval, [(key, value.strip())])
        optional = tuple(evolve(field, required=False) for field in draft.approval.fields)
        given_answers(evolve(draft.approval, fields=optional), given)
    except InvalidInput as wrong:
        out.print(f"  {clean(wrong)}", style="red")
        return
    draft.answers.update(given)


def _is_right(draft: Draft, out: "Console") -> bool:
    try:
        draft.check()
    except InvalidInput as wrong:
        out.print(f"  {clean(wrong)}", style="red")
        return False
    return True


def edit(draft: Draft, out: "Console") -> None:
    """Let the user change each group of rows, until an empty line."""
    if not draft.approval.groups:
        out.print("  there are no rows to edit")
    for group in draft.approval.groups:
        out.print("KEY COLUMN VALUE changes a value, drop KEY leaves a row out, help tells more")
        editor, at = Editor(draft, group), 0
        while line := _prompt(f"{clean(group.title)}> ", out).strip():
            if line == "rows":  # the next page
                line = f"rows {at + 1}"
            at = _obeyed(editor, draft, group, line, out)


def _obeyed(editor: Editor, draft: Draft, group: Group, line: str, out: "Console") -> int:
    """Carry out *line* and show the result; returns the number of the last row shown."""
    try:
        reply = editor.obey(line)
    except ValueError as error:
        out.print(f"  {clean(error)}")
        return 0
    if reply.text:
        out.print(f"  {clean(reply.text)}" if "\n" not in reply.text else reply.text)
    if not reply.rows:
        return 0
    rows = draft.rows(group)
    put_rows(group, {number: rows[number] for number in reply.rows}, out, PAGE, len(rows))
    return 0 if len(reply.rows) <= PAGE else reply.rows[PAGE - 1]


def _prompt(words: str, out: "Console") -> str:
    """
    The line that the user types. `input` is not used, because it loses a Ctrl-C that comes while it
    flushes. Raises `click.Abort` at Ctrl-C and at the end of input.
    """
    try:
        click.echo(words, nl=False, err=out.stderr)
        line = sys.stdin.readline()
    except KeyboardInterrupt:
        raise click.Abort from None
    if not line:
        raise click.Abort
    return line.rstrip("\n")
