"""`wfcore trigger`: what starts workflows by itself, and why it does not."""

import click

from wfcore.model.page import Page, PageRequest
from wfcore.model.trigger import Schedule, Shown, TriggerSpec
from wfcore.usecases.services import Services
from wfcore.usecases.workflows.triggers import list_triggers
from wfcore.wire.converter import plain
from wfcore.wire.workflows import trigger_view
from wfserver.terminal import lookup
from wfserver.terminal.invocation import Session
from wfserver.terminal.options import Group, limit, pass_session
from wfserver.terminal.output import instant, put_list, put_table


@click.group("trigger", cls=Group)
def trigger_command() -> None:
    """Schedules and chains. They are made by `triggers` in a workflow's definition."""


@trigger_command.command("list")
@click.option("--workflow", metavar="ID-or-NAME", help="Only of this workflow.")
@limit
@pass_session
def list_(session: Session, workflow: str | None, limit: int) -> None:
    """All triggers: what they wait for, when they fire next, and why they do not."""

    async def job(services: Services) -> Page[Shown]:
        id = (await lookup.workflow(services, workflow)).workflow.id if workflow else None
        return await list_triggers(services, None, PageRequest(1, limit), id)

    found = session.work(job)
    if session.json:
        put_list(
            [
                {"workflowId": one.trigger.workflow_id, **plain(trigger_view(one))}
                for one in found.rows
            ],
            found.total,
        )
        return
    heads = ("id", "state", "next run", "fires", "runs", "workflow", "why")
    put_table(heads, [_row(one) for one in found.rows], found.total)


def fires(spec: TriggerSpec) -> str:
    """When a trigger fires, in a few words."""
    if isinstance(spec, Schedule):
        return f"{spec.cron} {spec.timezone}"
    most = f", {spec.max_runs} times" if spec.max_runs is not None else ""
    return f"{spec.delay_seconds} s after {spec.workflow}{most}"


def _row(shown: Shown) -> tuple[object, ...]:
    one, standing = shown.trigger, shown.standing
    last = f"last time: {one.refusal}" if one.refusal else None
    why = standing.why or last
    next_at = instant(standing.next_at)
    return one.id, standing.state, next_at, fires(one.spec), one.runs, one.workflow_id, why
