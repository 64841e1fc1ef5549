"""`wfcore approval`: what waits for people, decided by the operator."""

import json
from collections.abc import Mapping
from typing import Any, TextIO

import click

from wfcore.errors import AlreadyDecided, InvalidInput
from wfcore.model.approval import Approval, ApprovalStatus, DecisionSource
from wfcore.model.json import Json
from wfcore.model.page import Page, PageRequest
from wfcore.ports.records import ApprovalFilter
from wfcore.rules.approval.machine import Approve, Reject, Revise, items_hash
from wfcore.time import EpochMs
from wfcore.usecases.approvals import approvals
from wfcore.usecases.approvals.approvals import Decide
from wfcore.usecases.services import Services
from wfcore.wire.approvals import approval_detail, approval_view
from wfcore.wire.converter import plain
from wfserver.terminal import lookup
from wfserver.terminal.invocation import Session
from wfserver.terminal.lookup import AT_THE_COMMAND_LINE
from wfserver.terminal.options import Group, Member, Pair, limit, pass_session, span_of_time
from wfserver.terminal.output import console, instant, put_fields, put_json, put_list, put_table
from wfserver.terminal.review import (
    PAGE,
    Verdict,
    answer_lines,
    ask,
    file_line,
    put_groups,
    read_answers,
)
from wfserver.terminal.review import edit as edit_rows
from wfserver.terminal.row_editor import Draft


@click.group("approval", cls=Group)
def approval_command() -> None:
    """Approvals. The operator may decide each of them."""


@approval_command.command("list")
@click.option("--status", type=Member(ApprovalStatus), multiple=True, help="Only these.")
@click.option("--workflow", metavar="ID-or-NAME", help="Only of this workflow.")
@click.option("--execution", metavar="ID", help="Only of this execution.")
@span_of_time
@click.option("--oldest", is_flag=True, help="Oldest first.")
@limit
@pass_session
def list_(
    session: Session,
    status: tuple[ApprovalStatus, ...],
    workflow: str | None,
    execution: str | None,
    since: EpochMs | None,
    until: EpochMs | None,
    oldest: bool,
    limit: int,
) -> None:
    """Approvals, newest first. WHEN: 1h ago, an ISO date and time, or epoch milliseconds."""

    async def job(services: Services) -> tuple[Page[Approval], Mapping[str, str]]:
        id = (await lookup.workflow(services, workflow)).workflow.id if workflow else None
        where = ApprovalFilter(
            statuses=status,
            workflow_id=id,
            execution_id=execution,
            since=since,
            until=until,
            oldest_first=oldest,
        )
        found = await approvals.list_approvals(services, None, PageRequest(1, limit), where)
        ids = () if session.json else [one.workflow_id for one in found.rows]
        return found, await lookup.workflow_names(services, ids)

    found, names = session.work(job)
    if session.json:
        put_list([plain(approval_view(one)) for one in found.rows], found.total)
    else:
        heads = ("id", "status", "asks", "expires", "message", "execution")
        put_table(heads, [_row(one, names) for one in found.rows], found.total)


@approval_command.command("show")
@click.argument("id")
@pass_session
def show(session: Session, id: str) -> None:
    """One approval with its rows."""
    _show(session, session.work(lambda services: approvals.read_approval(services, None, id)))


@approval_command.command("approve")
@click.argument("id")
@click.option("--comment", help="Kept in the approval's history.")
@click.option("--expect", metavar="HASH", help="Only if `show` still tells this itemsHash.")
@click.option("--alone", is_flag=True, help="Enough, however many approvals are required.")
@click.option("--edit", is_flag=True, help="Show the rows, and edit them before.")
@click.option(
    "--rows",
    type=click.File(),
    metavar="FILE",
    help="Release the rows in this JSON file instead; - is stdin.",
)
@click.option(
    "--answer",
    "answers",
    type=Pair(),
    multiple=True,
    metavar="KEY=VALUE",
    help="An answer to one of its fields. Repeatable.",
)
@pass_session
def approve(
    session: Session,
    id: str,
    comment: str | None,
    expect: str | None,
    alone: bool,
    edit: bool,
    rows: TextIO | None,
    answers: tuple[tuple[str, str], ...],
) -> int | None:
    """
    Release the rows, as they are or edited; the execution goes on.

    FILE holds what `approval show --json` prints, with other rows in it, or {group: [row, ...]}:
    a group left out releases none. Rows that have changed since they were shown are not released.
    Where several approvals are required, the operator is one approver, unless --alone.
    """
    if edit and rows is not None:
        raise click.UsageError("--edit and --rows exclude one another")
    edited: Mapping[str, Any] | None = None
    if rows is not None:
        edited, seen = _rows_of(rows)
        expect = expect or seen
    given: Mapping[str, Json] | None = None
    if edit or answers:
        shown = session.work(lambda services: approvals.read_approval(services, None, id))
        given = read_answers(shown, answers)
    if edit:
        said = _asked(shown, comment, given)
        if isinstance(said.choice, Reject):
            click.echo("nothing was decided", err=True)
            return 1
        decision, comment = said.choice, said.comment
        expect = expect or items_hash(shown)
    else:
        decision = Approve(edited, given)
    _decide(session, Decide(id, decision, DecisionSource.CONSOLE, comment, expect, alone))
    return None


def _asked(approval: Approval, comment: str | None, answers: Mapping[str, Json] | None) -> Verdict:
    """What somebody at the terminal, or stdin, makes of the rows. Raises `AlreadyDecided`."""
    if approval.status is not ApprovalStatus.PENDING:
        raise AlreadyDecided("The approval has already been decided", approval.id)
    out, draft = console(stderr=True), Draft(approval, comment, answers)
    put_groups(approval, out, PAGE)
    edit_rows(draft, out)
    return ask(approval, "Approve these rows?", out, draft)


def _rows_of(file: TextIO) -> tuple[Mapping[str, Any], str | None]:
    """The `editedItems` in *file*, and the hash of the rows that they were made from."""
    try:
        document = json.load(file, object_pairs_hook=_once, parse_constant=_no_constant)
    except ValueError as error:
        raise InvalidInput("--rows", f"is not JSON: {error}") from None
    match document:
        case {"reviewableGroups": [*groups], "itemsHash": str(seen)}:
            return dict(map(_named, groups)), seen
        case dict():
            return document, None
        case _:
            raise InvalidInput("--rows", _WANTED)


def _named(group: Any) -> tuple[str, Any]:
    match group:
        case {"name": str(name), "items": items}:
            return name, items
        case _:
            raise InvalidInput("--rows", _WANTED)


_WANTED = 'must be {"group": [row, ...]} or what `approval show --json` prints'


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"{twice} stands twice in one object")
    return found


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no number in JSON")


@approval_command.command("reject")
@click.argument("id")
@click.option("--comment", help="Kept in the approval's history.")
@pass_session
def reject(session: Session, id: str, comment: str | None) -> None:
    """Stop the execution; no later step runs."""
    _decide(session, Decide(id, Reject(), DecisionSource.CONSOLE, comment))


@approval_command.command("revise")
@click.argument("id")
@click.option("--comment", required=True, help="What is to be changed.")
@pass_session
def revise(session: Session, id: str, comment: str) -> None:
    """Ask for changes; the execution goes back to the step that `onRevise` names."""
    _decide(session, Decide(id, Revise(), DecisionSource.CONSOLE, comment))


def _decide(session: Session, asked: Decide) -> None:
    decided = session.work(
        lambda services: approvals.decide_approval(
            services, None, asked, origin=AT_THE_COMMAND_LINE
        )
    )
    if session.json:
        put_json(plain(approval_detail(decided)))
    else:
        click.echo(f"{decided.id} is {decided.status}{_still_needed(decided)}")


def _still_needed(approval: Approval) -> str:
    if approval.status is not ApprovalStatus.PENDING:
        return ""
    return f": {len(approval.assents)} of {approval.required_approvals} approvals"


def _show(session: Session, approval: Approval) -> None:
    if session.json:
        put_json(plain(approval_detail(approval)))
        return
    decided = approval.decided_at and (
        f"{instant(approval.decided_at)} by {approval.decided_by or approval.decision_source}"
    )
    put_fields(
        {
            "id": approval.id,
            "step": approval.step_name,
            "execution": approval.execution_id,
            "status": approval.status,
            "message": approval.message,
            "expires": instant(approval.expires_at),
            "decided": decided,
            "comment": approval.comment,
            "approvals": _assents(approval),
            "attachments": "\n".join(map(file_line, approval.attachments)) or None,
            "answers": "\n".join(answer_lines(approval)) or None,
            "itemsHash": items_hash(approval),
        }
    )
    put_groups(approval, console())


def _assents(approval: Approval) -> str | None:
    """Who has approved so far, where several must."""
    if approval.required_approvals == 1:
        return None
    names = ", ".join(one.by for one in approval.assents)
    return f"{len(approval.assents)} of {approval.required_approvals} {names}".strip()


def _row(one: Approval, names: Mapping[str, str]) -> tuple[object, ...]:
    asks = f"{names.get(one.workflow_id, one.workflow_id)} › {one.step_name}"
    return one.id, one.status, asks, instant(one.expires_at), one.message, one.execution_id
