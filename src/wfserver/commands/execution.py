"""`wfcore execution`: start runs by hand, look at them, end them. The server does the work."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, TypeVar

import click

from wfcore.model.event import Event
from wfcore.model.execution import Execution, ExecutionStatus, TriggerSource
from wfcore.model.page import Page, PageRequest
from wfcore.ports.records import ExecutionFilter
from wfcore.rules.variables import parse_text
from wfcore.time import EpochMs
from wfcore.usecases.executions import executions, starting
from wfcore.usecases.executions.executions import rests
from wfcore.usecases.executions.explaining import explain_execution
from wfcore.usecases.executions.starting import Started
from wfcore.usecases.services import Services
from wfcore.wire.converter import plain
from wfcore.wire.events import LogView, explanation_view, log_view
from wfcore.wire.executions import ExecutionRow, StartView, StatusView, execution_row, status_view
from wfserver.serving.pidfile import is_serving
from wfserver.terminal import lookup
from wfserver.terminal.invocation import Session
from wfserver.terminal.lookup import AT_THE_COMMAND_LINE
from wfserver.terminal.options import (
    Duration,
    Group,
    Member,
    inputs,
    limit,
    pass_session,
    span_of_time,
)
from wfserver.terminal.output import (
    clean,
    instant,
    put_fields,
    put_json,
    put_list,
    put_table,
    shortened,
    span,
)

_POLL_S = 0.1
_PATIENCE_S = 3.0
_OUTPUT = 200
_ENDED_BADLY = frozenset({ExecutionStatus.FAILED, ExecutionStatus.CANCELLED})


C = TypeVar("C", bound=Callable[..., Any])


def _wait(command: C) -> C:
    """The options of commands that may wait for what they started."""
    wait = click.option("--wait", is_flag=True, help="Until it ends, or rests at an approval.")
    timeout = click.option(
        "--timeout", type=Duration(), metavar="30s", help="With --wait: at most so long, then 1."
    )
    return wait(timeout(command))


@click.group("execution", cls=Group)
def execution_command() -> None:
    """Executions of workflows."""


@execution_command.command("start")
@click.argument("workflow")
@inputs
@_wait
@pass_session
def start(
    session: Session,
    workflow: str,
    given: tuple[tuple[str, str], ...],
    wait: bool,
    timeout: int | None,
) -> int | None:
    """Start WORKFLOW (id or name). The running server does it."""
    return _started(session, lambda services: _start(services, workflow, given), wait, timeout)


@execution_command.command("list")
@click.option("--workflow", metavar="ID-or-NAME", help="Only of this workflow.")
@click.option("--status", type=Member(ExecutionStatus), multiple=True, help="Only these.")
@click.option("--by", type=Member(TriggerSource), multiple=True, help="Only so started.")
@span_of_time
@click.option("--oldest", is_flag=True, help="Oldest first.")
@limit
@pass_session
def list_(
    session: Session,
    workflow: str | None,
    status: tuple[ExecutionStatus, ...],
    by: tuple[TriggerSource, ...],
    since: EpochMs | None,
    until: EpochMs | None,
    oldest: bool,
    limit: int,
) -> None:
    """Executions, newest first. WHEN: 1h ago, an ISO date and time, or epoch milliseconds."""

    async def job(services: Services) -> tuple[Page[Execution], Mapping[str, str]]:
        id = (await lookup.workflow(services, workflow)).workflow.id if workflow else None
        where = ExecutionFilter(None, id, status, by, since, until, oldest)
        found = await executions.list_executions(services, None, PageRequest(1, limit), where)
        return found, await executions.starter_names(services, found.rows)

    found, names = session.work(job)
    rows = [execution_row(run, names) for run in found.rows]
    if session.json:
        put_list([plain(row) for row in rows], found.total)
    else:
        heads = ("id", "status", "steps", "workflow", "took", "started", "starter", "by")
        put_table(heads, [_row(row) for row in rows], found.total)


@execution_command.command("show")
@click.argument("id")
@pass_session
def show(session: Session, id: str) -> None:
    """One execution with the results of its steps."""
    _show(session, session.work(lambda services: _read(services, id)))


@execution_command.command("explain")
@click.argument("id")
@pass_session
def explain(session: Session, id: str) -> None:
    """Why nothing is happening, or what happens next."""
    serving = is_serving(session.settings())
    found = session.work(lambda services: explain_execution(services, None, id, serving=serving))
    if session.json:
        put_json(plain(explanation_view(found.run, found.at, found.lines)))
        return
    click.echo(found.run.status)
    for line in found.lines:
        click.echo(f"- {clean(line.text)}")


@execution_command.command("logs")
@click.argument("id")
@click.option("--step", metavar="KEY", help="Only of this step; in a loop like loop.0.name.")
@click.option("--follow", is_flag=True, help="Go on until the execution rests.")
@pass_session
def logs(session: Session, id: str, step: str | None, follow: bool) -> None:
    """What its steps wrote to stdout and stderr."""

    async def job(services: Services) -> list[LogView]:
        shown: list[LogView] = []
        after = 0
        while True:
            run, found, after = await executions.read_logs(services, None, id, after, step)
            shown += _lines_shown(session, found)
            if not found and (not follow or rests(run, services.clock.service_now())):
                return shown
            if not found:
                await asyncio.sleep(_POLL_S)

    shown = session.work(job)
    if session.json:
        put_json({"items": [plain(one) for one in shown]})


def _lines_shown(session: Session, found: Sequence[Event]) -> list[LogView]:
    """The lines as they come; for JSON they are gathered."""
    views = [log_view(event) for event in found]
    if session.json:
        return views
    for view in views:
        for line in clean(view.text).splitlines():
            click.echo(f"{view.step} │ {line}", err=view.stream == "stderr")
    return []


@execution_command.command("cancel")
@click.argument("id")
@pass_session
def cancel(session: Session, id: str) -> None:
    """End it at once; running steps are killed."""

    async def job(services: Services) -> StatusView:
        await executions.cancel_execution(services, None, id, origin=AT_THE_COMMAND_LINE)
        return await _read(services, id)

    view = session.work(job)
    if session.json:
        put_json(plain(view))
    else:
        click.echo(f"{view.execution_id} is {view.status}")


@execution_command.command("redrive")
@click.argument("id")
@_wait
@pass_session
def redrive(session: Session, id: str, wait: bool, timeout: int | None) -> int | None:
    """A new execution that begins at the first unfinished step of an ended one."""

    async def job(services: Services) -> Started:
        old = await executions.read_execution(services, None, id)
        who = await lookup.owner_of(services, old.owner_id)
        return await starting.redrive(
            services, who, id, source=TriggerSource.MANUAL, origin=AT_THE_COMMAND_LINE
        )

    return _started(session, job, wait, timeout)


def _started(
    session: Session,
    begin: Callable[[Services], Awaitable[Started]],
    wait: bool,
    timeout: int | None,
) -> int | None:
    """Begin, wait where that was asked for, and show how far it is; the exit status."""
    if timeout is not None and not wait:
        raise click.UsageError("--timeout goes with --wait")

    async def job(services: Services) -> tuple[Started, StatusView | None, bool]:
        started = await begin(services)
        if not wait:
            return started, None, False
        run = await _rest(session, services, started.execution_id, timeout)
        rested = rests(run, services.clock.service_now())
        return started, await _view(services, run), rested

    started, view, rested = session.work(job)
    if view is None:
        _show_start(session, started)
        return None
    _show(session, view)
    return 0 if rested and view.status not in _ENDED_BADLY else 1


async def _start(services: Services, workflow: str, given: tuple[tuple[str, str], ...]) -> Started:
    found = await lookup.workflow(services, workflow)
    declared = found.definition.variables
    return await starting.start_execution(
        services,
        await lookup.owner_of(services, found.workflow.owner_id),
        found.workflow.id,
        {name: parse_text(declared.get(name), text) for name, text in given},
        source=TriggerSource.MANUAL,
        origin=AT_THE_COMMAND_LINE,
    )


async def _rest(session: Session, services: Services, id: str, timeout: int | None) -> Execution:
    """The execution when it rests, or at the timeout. Says on stderr how far it is."""
    said, asked_at, warned = "", time.monotonic(), False
    while True:
        run = await executions.read_execution(services, None, id)
        if rests(run, services.clock.service_now()):
            return run
        if timeout is not None and time.monotonic() - asked_at >= timeout / 1_000:
            click.echo(f"not at rest after {span(timeout)}; it goes on", err=True)
            return run
        view = status_view(run)
        now = f"{view.status}  {view.completed_steps}/{view.total_steps}  {view.current_step or ''}"
        if now != said and not session.json:
            click.echo(now.rstrip(), err=True)
            said = now
        late = time.monotonic() - asked_at > _PATIENCE_S
        if run.status is ExecutionStatus.PENDING and late and not warned:
            click.echo("still PENDING: is a server running? (wfcore serve)", err=True)
            warned = True
        await asyncio.sleep(_POLL_S)


def _show_start(session: Session, started: Started) -> None:
    pending = ExecutionStatus.PENDING
    view = StartView(started.execution_id, pending, started.workflow_id, started.started_at)
    if session.json:
        put_json(plain(view))
    else:
        put_fields({"id": view.execution_id, "status": view.status})


async def _read(services: Services, id: str) -> StatusView:
    return await _view(services, await executions.read_execution(services, None, id))


async def _view(services: Services, run: Execution) -> StatusView:
    """The execution with the names of who started it, and what redrives it."""
    names = await executions.starter_names(services, [run])
    return status_view(run, names, await executions.redriven_as(services, run))


def _show(session: Session, view: StatusView) -> None:
    if session.json:
        put_json(plain(view))
        return
    put_fields(
        {
            "id": view.execution_id,
            "workflow": f"{view.workflow_name} ({view.workflow_id})",
            "by": view.trigger_source,
            "starter": view.started_by.email or view.started_by.account_id,
            "key": view.started_by.key_name,
            "version": view.workflow_version,
            "status": view.status,
            "steps": f"{view.completed_steps} of {view.total_steps}",
            "at": view.current_step,
            "started": instant(view.started_at),
            "ended": instant(view.completed_at) if view.completed_at else None,
            "error": view.error,
            "redrive of": view.redrive_of,
            "redriven as": view.redriven_as,
        }
    )
    rows = [
        (name, step.status, span(step.duration), step.error or _output(step.output))
        for name, step in view.step_results.items()
    ]
    if rows:
        click.echo()
        put_table(("step", "status", "took", "output"), rows, len(rows))


def _output(value: object) -> str:
    return "" if value is None else shortened(value, _OUTPUT)


def _row(view: ExecutionRow) -> tuple[object, ...]:
    took = view.completed_at - view.started_at if view.completed_at else None
    steps = f"{view.completed_steps}/{view.total_steps}"
    id, at = view.execution_id, instant(view.started_at)
    starter = view.started_by.email or view.started_by.account_id
    name, by = view.workflow_name, view.trigger_source
    return id, view.status, steps, name, span(took), at, starter, by
