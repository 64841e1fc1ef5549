"""`wfcore trigger`: the schedules and chains that start workflows, and why they do not."""

from typing import Any

import click

from wfcore.time import EpochMs
from wfcore.usecases.administration import workflows
from wfserver.failures import FAILED
from wfserver.terminal.bulk import agreed
from wfserver.terminal.invocation import Invocation
from wfserver.terminal.options import CommandGroup, limit, pass_invocation, span_of_time
from wfserver.terminal.output import clean, instant, put_answer, put_table

HEADS = ("id", "state", "next run", "when", "runs", "last result", "workflow", "why")


@click.group("trigger", cls=CommandGroup)
def trigger_command() -> None:
    """Schedules and chains. They are made by `triggers` in a workflow's definition."""


@trigger_command.command("list")
@click.option("--workflow", metavar="ID-or-NAME", help="Only of this workflow.")
@limit
@pass_invocation
def list_(invocation: Invocation, workflow: str | None, limit: int) -> None:
    """All triggers: what they wait for, when they start next, and why they do not."""
    found = invocation.perform(workflows.list_triggers, workflow=workflow, limit=limit)
    put_answer(invocation.json, found, _table)


def _table(found: Any) -> None:
    put_table(HEADS, map(_row, found["items"]), found["total"])


@trigger_command.command("pause")
@click.argument("trigger", metavar="ID")
@click.option("--reason", help="Shown in the list and on the workflow's page.")
@pass_invocation
def pause(invocation: Invocation, trigger: str, reason: str | None) -> None:
    """Pause a trigger: it starts nothing until it is resumed."""
    paused = invocation.perform(workflows.pause_trigger, id=trigger, reason=reason)
    put_answer(invocation.json, paused, _put)


@trigger_command.command("resume")
@click.argument("trigger", metavar="ID")
@pass_invocation
def resume(invocation: Invocation, trigger: str) -> None:
    """Resume a paused trigger, from its next instant on."""
    put_answer(invocation.json, invocation.perform(workflows.resume_trigger, id=trigger), _put)


@trigger_command.command("backfill")
@click.argument("trigger", metavar="ID")
@span_of_time
@click.option("--dry-run", is_flag=True, help="Only show what would be started.")
@click.option("--yes", is_flag=True, help="Without asking.")
@pass_invocation
def backfill(
    invocation: Invocation,
    trigger: str,
    since: EpochMs | None,
    until: EpochMs | None,
    dry_run: bool,
    yes: bool,
) -> int | None:
    """
    Start a schedule for the instants of a past period, once they were shown.

    Each is started at most once, also if this is called twice or by two people; what a schedule may
    not start now, it may not start for then. At most 200 instants at a time.
    """
    if since is None or until is None:
        raise click.UsageError("Give --from and --to")
    parameters = {"id": trigger, "since": since, "until": until}
    with invocation.operations() as perform:
        found = perform(workflows.preview_backfill, **parameters)
        todo = [one for one in found["items"] if not (one["executionId"] or one["refusal"])]
        if not dry_run and todo:
            agreed(f"{len(todo)} executions would be started", map(_instant, todo), yes)
            found = perform(workflows.backfill_trigger, **parameters)
    put_answer(invocation.json, found, _put_instants)
    return FAILED if not dry_run and any(one["refusal"] for one in found["items"]) else None


def _instant(one: Any) -> str:
    return instant(one["scheduledFor"]) or ""


def _put_instants(found: Any) -> None:
    rows = [
        (
            _instant(one),
            one["executionId"],
            "started now" if one["startedNow"] else "was started" if one["executionId"] else None,
            one["refusal"],
        )
        for one in found["items"]
    ]
    put_table(("scheduled for", "execution", "state", "why not"), rows, found["total"])


def _put(trigger: Any) -> None:
    put_table(HEADS, [_row(trigger)], None)


def fires(definition: Any) -> str:
    """The times at which a trigger fires, in a few words."""
    if "cron" in definition:
        return f"{definition['cron']} {definition['timezone']}"
    runs = definition["maxRuns"]
    most = f", {runs} times" if runs is not None else ""
    ends = [one for one in definition["on"] if one != "COMPLETED"]
    end = f" {' or '.join(definition['on'])}" if ends else ""
    return f"{definition['delaySeconds']} s after {definition['workflow']}{end}{most}"


def _row(one: Any) -> tuple[object, ...]:
    detail = f", {clean(one['lastRefusalDetail'])}" if one["lastRefusalDetail"] else ""
    last = f"last time: {one['lastRefusal']}{detail}" if one["lastRefusal"] else None
    return (
        one["id"],
        one["state"],
        instant(one["nextRunAt"]),
        fires(one["definition"]),
        one["runs"],
        _result(one),
        one["workflowId"],
        one["reason"] or last,
    )


def _result(one: Any) -> str | None:
    """The end of the trigger's last execution, and the number of failures in a row."""
    if one["failures"] > 1:
        return f"{one['failures']} × FAILED"
    result: str | None = one.get("lastResult")
    return result
