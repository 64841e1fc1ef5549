"""`wfcore approval`: approvals, which the operator may decide."""

from collections.abc import Mapping
from typing import Any, TextIO

import click

from wfcore.errors import AlreadyDecided, InvalidInput
from wfcore.model.approval import Approval, ApprovalStatus
from wfcore.model.json import Json, as_json
from wfcore.rules.approval.machine import Reject, Revise
from wfcore.rules.numbers import kept, strictly
from wfcore.time import EpochMs
from wfcore.usecases.administration import approvals
from wfserver.terminal.invocation import Invocation
from wfserver.terminal.options import (
    CommandGroup,
    Member,
    Pair,
    Since,
    limit,
    pass_invocation,
    span_of_time,
)
from wfserver.terminal.output import (
    console,
    instant,
    put_answer,
    put_fields,
    put_json,
    put_table,
    say,
)
from wfserver.terminal.review import (
    PAGE,
    Delegating,
    ReviewerChoice,
    answer_lines,
    approval_of,
    ask,
    file_line,
    put_groups,
    read_answers,
)
from wfserver.terminal.review import edit as edit_rows
from wfserver.terminal.row_editor import Draft


@click.group("approval", cls=CommandGroup)
def approval_command() -> None:
    """Approvals. The operator may decide each of them."""


@approval_command.command("list")
@click.option("--status", type=Member(ApprovalStatus), multiple=True, help="Only these.")
@click.option("--workflow", metavar="ID-or-NAME", help="Only of this workflow.")
@click.option("--execution", metavar="ID", help="Only of this execution.")
@span_of_time
@click.option("--oldest", is_flag=True, help="Oldest first.")
@limit
@pass_invocation
def list_(
    invocation: Invocation,
    status: tuple[ApprovalStatus, ...],
    workflow: str | None,
    execution: str | None,
    since: EpochMs | None,
    until: EpochMs | None,
    oldest: bool,
    limit: int,
) -> None:
    """Approvals, newest first. WHEN: 1h ago, an ISO date and time, or epoch milliseconds."""

    found = invocation.perform(
        approvals.list_approvals,
        status=status,
        workflow=workflow,
        execution=execution,
        since=since,
        until=until,
        oldest=oldest,
        limit=limit,
    )
    put_answer(invocation.json, found, _table)


def _table(found: Any) -> None:
    heads = ("id", "status", "asks", "expires", "message", "execution")
    put_table(heads, map(_row, found["items"]), found["total"])


@approval_command.command("show")
@click.argument("id")
@pass_invocation
def show(invocation: Invocation, id: str) -> None:
    """One approval with its rows."""
    put_answer(invocation.json, invocation.perform(approvals.read_approval, id=id), _put)


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
@pass_invocation
def approve(
    invocation: Invocation,
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
    with invocation.operations() as perform:
        if edit or answers:
            detail = perform(approvals.read_approval, id=id)
            shown = approval_of(detail)
            given = read_answers(shown, answers)
        if edit:

            def delegating(by: str, to: str) -> str:
                return _delegated(perform(approvals.delegate, id=id, by=by, to=to), by)

            let = delegating if detail["delegable"] else None
            decision = _reviewed(shown, comment, given, let)
            if isinstance(decision.choice, Reject):
                say("nothing was decided", err=True)
                return 1
            if isinstance(decision.choice, Revise):
                revised = perform(approvals.revise, id=id, comment=decision.comment or "")
                put_answer(invocation.json, revised, _put_decided)
                return None
            edited, given = decision.choice.edited, as_json(decision.choice.answers or {})
            comment = decision.comment
            expect = expect or detail["itemsHash"]
        decided = perform(
            approvals.approve,
            id=id,
            comment=comment,
            expect=expect,
            alone=alone,
            rows=edited,
            answers=given,
        )
    put_answer(invocation.json, decided, _put_decided)
    return None


def _reviewed(
    approval: Approval,
    comment: str | None,
    answers: Mapping[str, Json] | None,
    delegating: Delegating | None,
) -> ReviewerChoice:
    """The reviewer's choice at the terminal, after editing the rows. Raises `AlreadyDecided`."""
    if approval.status is not ApprovalStatus.PENDING:
        raise AlreadyDecided("The approval has already been decided", approval.id)
    out, draft = console(stderr=True), Draft(approval, comment, answers)
    put_groups(approval, out, PAGE)
    edit_rows(draft, out)
    return ask(approval, "Approve these rows?", out, draft, delegating)


def _rows_of(file: TextIO) -> tuple[Mapping[str, Any], str | None]:
    """
    The `editedItems` in *file*, and the hash of the rows that they replace, if *file* has the hash.
    """
    try:
        text = file.read()
        document = strictly(text, object_pairs_hook=_once)
        kept(text.encode(errors="surrogatepass"), lambda _: document, exact=True)
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


@approval_command.command("reject")
@click.argument("id")
@click.option("--comment", help="Kept in the approval's history.")
@pass_invocation
def reject(invocation: Invocation, id: str, comment: str | None) -> None:
    """Stop the execution; no later step runs."""
    rejected = invocation.perform(approvals.reject, id=id, comment=comment)
    put_answer(invocation.json, rejected, _put_decided)


@approval_command.command("revise")
@click.argument("id")
@click.option("--comment", required=True, help="What is to be changed.")
@pass_invocation
def revise(invocation: Invocation, id: str, comment: str) -> None:
    """Ask for changes; the execution goes back to the step that `onRevise` names."""
    revised = invocation.perform(approvals.revise, id=id, comment=comment)
    put_answer(invocation.json, revised, _put_decided)


@approval_command.command("delegate")
@click.argument("id")
@click.option("--by", required=True, metavar="EMAIL", help="The approver on whose behalf.")
@click.option("--to", required=True, metavar="EMAIL-or-ID", help="Who decides instead.")
@click.option("--until", type=Since(), metavar="WHEN", help="Default: until the approval expires.")
@pass_invocation
def delegate(invocation: Invocation, id: str, by: str, to: str, until: EpochMs | None) -> None:
    """
    Let somebody decide in an approver's place, where the step is `delegable`.

    WHEN: an ISO date and time, or epoch milliseconds.
    """

    done = invocation.perform(approvals.delegate, id=id, by=by, to=to, until=until)
    if invocation.json:
        put_json(done)
        return
    say(_delegated(done, by))


def _delegated(done: Any, by: str) -> str:
    made = next(one for one in done["delegatedTo"] if one["by"].lower() == by.strip().lower())
    return f"{made['to']} may decide {done['id']} for {made['by']} until {instant(made['until'])}"


def _put_decided(approval: Any) -> None:
    needed = ""
    if approval["status"] == ApprovalStatus.PENDING:
        given, all = len(approval["approvedBy"]), approval["requiredApprovals"]
        needed = f": {given} of {all} approvals"
    say(f"{approval['id']} is {approval['status']}{needed}")


def _put(detail: Any) -> None:
    approval = approval_of(detail)
    decided = detail["decidedAt"] and (
        f"{instant(detail['decidedAt'])} by {detail['decidedBy'] or detail['decisionSource']}"
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
            "comment": detail["comment"],
            "approvals": _assents(detail),
            "attachments": "\n".join(map(file_line, approval.attachments)) or None,
            "answers": "\n".join(answer_lines(approval)) or None,
            "itemsHash": detail["itemsHash"],
        }
    )
    put_groups(approval, console())


def _assents(detail: Any) -> str | None:
    """The number and names of the people who have approved; None if one approval is enough."""
    by, required = detail["approvedBy"], detail["requiredApprovals"]
    if required == 1:
        return None
    return f"{len(by)} of {required} {', '.join(by)}".strip()


def _row(one: Any) -> tuple[object, ...]:
    asks = f"{one['workflowName'] or one['workflowId']} › {one['stepName']}"
    expires = instant(one["expiresAt"])
    message = one["approvalMessage"]
    return one["id"], one["status"], asks, expires, message, one["executionId"]
