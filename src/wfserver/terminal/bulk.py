"""
Acting on all executions that a filter finds: the executions are shown first, and changed after a
yes.
"""

import sys
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

import click

from wfcore.errors import WfError
from wfcore.model.execution import ExecutionStatus
from wfcore.usecases.administration import executions
from wfcore.usecases.administration.operator import Operation
from wfserver.errors import CommandFailed
from wfserver.failures import FAILED
from wfserver.terminal.invocation import Invocation
from wfserver.terminal.options import Member
from wfserver.terminal.output import clean, put_json, put_table, say
from wfserver.terminal.perform import Perform

_MOST_AT_ONCE = 1_000

C = TypeVar("C", bound=Callable[..., Any])


def several(command: C) -> C:
    """The arguments of commands that act on one execution, or on all that a filter finds."""
    options = (
        click.argument("id", required=False),
        click.option("--workflow", metavar="ID-or-NAME", help="Instead of ID: of this workflow."),
        click.option(
            "--status", type=Member(ExecutionStatus), multiple=True, help="Instead of ID: these."
        ),
        click.option("--yes", is_flag=True, help="Without asking."),
    )
    for option in reversed(options):
        command = option(command)
    return command


def refuse_both(*filters: object) -> None:
    """Raises `UsageError` if a filter was given beside an id."""
    if any(filters):
        raise click.UsageError("Give an ID or a filter, not both")


def act_on_each(
    invocation: Invocation,
    done: str,
    operation: Operation[Any],
    query: Mapping[str, Any],
    yes: bool,
) -> int:
    """
    Show the executions that the filter finds, oldest first, and act on each. Returns 1 if the act
    on an execution was refused.
    """
    if not query["status"]:
        raise click.UsageError(f"None of these statuses can be {done}")
    with invocation.operations() as perform:
        rows, left = _found(perform, query, passes_redriven=done == "redriven")
        if rows:
            lines = (
                f"{one['executionId']}  {one['status']}  {one['workflowName']}" for one in rows
            )
            agreed(f"{len(rows)} executions would be {done}", lines, yes)
        more = {"once": True} if done == "redriven" else {}  # others may do the same just now
        ends = [_acted(perform, operation, one["executionId"], more) for one in rows]
    if invocation.json:
        put_json({"items": ends, "left": left})
    else:
        put_table(("id", done, "why not"), [tuple(one.values()) for one in ends], None)
        if left:
            say(f"{left} are left; call it again", err=True)
    return FAILED if any(one["error"] for one in ends) else 0


def agreed(what: str, lines: Iterable[str], yes: bool) -> None:
    """
    Show *what* and *lines*, and ask for consent unless *yes* is set.

    Raises `CommandFailed` if stdin is no terminal, `Abort` for a no.
    """
    if yes:
        return
    say(f"{what}:", err=True)
    for line in lines:
        say(clean(f"  {line}"), err=True)
    if not sys.stdin.isatty():
        raise CommandFailed("nothing was changed: give --yes to go on")
    click.confirm("Go on?", abort=True, err=True)


def _found(
    perform: Perform, query: Mapping[str, Any], *, passes_redriven: bool
) -> tuple[list[Any], int]:
    """The oldest executions to act on, and the number of younger executions that were not read."""
    since = query["since"]
    while True:
        found = perform(
            executions.list_executions,
            **{**query, "since": since},
            oldest=True,
            limit=_MOST_AT_ONCE,
        )
        seen = rows = found["items"]
        if passes_redriven:
            rows = [one for one in seen if not _redriven(perform, one["executionId"])]
        left = found["total"] - len(seen)
        if rows or not left or seen[-1]["startedAt"] == since:
            return rows, left
        since = seen[-1]["startedAt"]


def _redriven(perform: Perform, id: str) -> bool:
    return bool(perform(executions.read_execution, id=id)["redrivenAs"])


def _acted(
    perform: Perform, operation: Operation[Any], id: str, more: Mapping[str, bool]
) -> dict[str, str | None]:
    """
    The result for one execution; a refusal is a result, too, so that the other executions follow.
    """
    try:
        answer = perform(operation, id=id, **more)
    except (WfError, CommandFailed) as refused:
        return {"id": id, "executionId": None, "error": str(refused)}
    return {"id": id, "executionId": str(answer["executionId"]), "error": None}
