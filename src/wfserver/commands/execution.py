"""`wfcore execution`: start, read and end executions; the running server does the work."""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import click

from wfcore.model.approval import ApprovalStatus
from wfcore.model.event import Event
from wfcore.model.execution import ExecutionStatus, TriggerSource
from wfcore.rules.execution.machine import EXECUTION
from wfcore.rules.execution.redrive import FROM
from wfcore.time import EpochMs
from wfcore.usecases.administration import executions
from wfcore.usecases.administration.operator import Operation
from wfserver.terminal.bulk import act_on_each, refuse_both, several
from wfserver.terminal.invocation import Invocation
from wfserver.terminal.options import (
    CommandGroup,
    Duration,
    Member,
    Since,
    inputs,
    limit,
    pass_invocation,
    span_of_time,
)
from wfserver.terminal.output import (
    clean,
    console,
    instant,
    put_answer,
    put_fields,
    put_json,
    put_table,
    rounds_of,
    say,
    shortened,
    span,
)
from wfserver.terminal.perform import Perform
from wfserver.terminal.progress import Progress

_POLL_S = 0.1
_POLL_AFAR_S = 0.5
_PATIENCE_S = 3.0
_OUTPUT = 200
_GOING = tuple(one for one in ExecutionStatus if one not in EXECUTION.final)
_ENDED_BADLY = frozenset({ExecutionStatus.FAILED, ExecutionStatus.CANCELLED})


C = TypeVar("C", bound=Callable[..., Any])


def _wait(command: C) -> C:
    """The options of commands that may wait for the execution that they started."""
    wait = click.option("--wait", is_flag=True, help="Until it ends, or waits for an approval.")
    timeout = click.option(
        "--timeout", type=Duration(), metavar="30s", help="With --wait: at most so long, then 1."
    )
    return wait(timeout(command))


@click.group("execution", cls=CommandGroup)
def execution_command() -> None:
    """Executions of workflows."""


@execution_command.command("start")
@click.argument("workflow")
@inputs
@click.option("--like", metavar="ID", help="With the inputs of that execution.")
@click.option("--reference", metavar="TEXT", help="By which people find it, like an order number.")
@_wait
@pass_invocation
def start(
    invocation: Invocation,
    workflow: str,
    given: tuple[tuple[str, str], ...],
    like: str | None,
    reference: str | None,
    wait: bool,
    timeout: int | None,
) -> int | None:
    """Start WORKFLOW (id or name). The running server does it."""
    parameters = {
        "workflow": workflow,
        "inputs": dict(given),
        "like": like,
        "reference": reference,
    }
    if given:
        _warn_of_unknown(invocation, workflow, [name for name, _ in given])
    return _started(invocation, executions.start_execution, parameters, wait, timeout)


def _warn_of_unknown(invocation: Invocation, workflow: str, names: Sequence[str]) -> None:
    """Warn of variables that the workflow lacks: they are allowed, but usually typing errors."""
    from wfcore.usecases.administration.workflows import read_workflow

    declared = invocation.perform(read_workflow, workflow=workflow)["variables"]
    known = {one["name"] for one in declared}
    for name in names:
        if name not in known:
            say(f"warning: the workflow has no variable {clean(name)}", err=True)


@execution_command.command("list")
@click.option("--workflow", metavar="ID-or-NAME", help="Only of this workflow.")
@click.option("--status", type=Member(ExecutionStatus), multiple=True, help="Only these.")
@click.option("--by", type=Member(TriggerSource), multiple=True, help="Only so started.")
@click.option("--reference", metavar="TEXT", help="Only with exactly this reference.")
@span_of_time
@click.option("--oldest", is_flag=True, help="Oldest first.")
@limit
@pass_invocation
def list_(
    invocation: Invocation,
    workflow: str | None,
    status: tuple[ExecutionStatus, ...],
    by: tuple[TriggerSource, ...],
    reference: str | None,
    since: EpochMs | None,
    until: EpochMs | None,
    oldest: bool,
    limit: int,
) -> None:
    """Executions, newest first. WHEN: 1h ago, an ISO date and time, or epoch milliseconds."""

    found = invocation.perform(
        executions.list_executions,
        workflow=workflow,
        status=status,
        by=by,
        since=since,
        until=until,
        oldest=oldest,
        limit=limit,
        reference=reference,
    )
    put_answer(invocation.json, found, _table)


def _table(found: Any) -> None:
    heads = ("id", "status", "steps", "workflow", "reference", "took", "started", "starter", "by")
    put_table(heads, map(_row, found["items"]), found["total"])


@execution_command.command("show")
@click.argument("id")
@pass_invocation
def show(invocation: Invocation, id: str) -> None:
    """One execution with the results of its steps."""
    put_answer(invocation.json, invocation.perform(executions.read_execution, id=id), _put)


@execution_command.command("explain")
@click.argument("id")
@pass_invocation
def explain(invocation: Invocation, id: str) -> None:
    """Why nothing is happening, or what happens next."""
    put_answer(invocation.json, invocation.perform(executions.explain, id=id), _put_lines)


def _put_lines(found: Any) -> None:
    say(found["status"])
    for line in found["lines"]:
        say(f"- {clean(line['text'])}")


@execution_command.command("logs")
@click.argument("id")
@click.option("--step", metavar="KEY", help="Only of this step; in a loop like loop.0.name.")
@click.option("--stream", type=click.Choice(("stdout", "stderr")), help="Only of this stream.")
@click.option("--search", metavar="TEXT", help="Only lines with this text, in either case.")
@click.option("--follow", is_flag=True, help="Go on until the execution ends or waits.")
@pass_invocation
def logs(
    invocation: Invocation,
    id: str,
    step: str | None,
    stream: str | None,
    search: str | None,
    follow: bool,
) -> None:
    """The output of an execution's steps on stdout and stderr."""

    shown: list[Any] = []
    parameters = {"id": id, "step": step, "stream": stream, "search": search}
    with invocation.operations() as perform:
        after = 0
        while True:
            found = perform(executions.read_logs, after=after, **parameters)
            after = found["next"]
            shown += _lines_shown(invocation, found["items"])
            if not found["items"] and (not follow or found["rests"]):
                break
            if not found["items"]:
                time.sleep(_poll_s(invocation))
    if invocation.json:
        put_json({"items": shown})


@execution_command.command("watch")
@click.argument("id")
@pass_invocation
def watch(invocation: Invocation, id: str) -> int:
    """
    Show what happens, from its beginning, until it ends or waits for an approval.

    Exit status 1: it failed or was cancelled.
    """
    events: list[Any] = []
    progress = Progress(console())
    with invocation.operations() as perform:
        after, rests = 0, False
        while True:
            found = perform(executions.read_events, id=id, after=after)
            after, new = found["next"], found["items"]
            if invocation.json:
                events += new
            for one in () if invocation.json else new:
                progress.show(Event(id, one["number"], one["at"], one["kind"], one["data"]))
            if not new and rests:
                break
            rests = found["rests"]
            if not new and not rests:
                time.sleep(_poll_s(invocation))
        progress.pause()
        run = perform(executions.read_execution, id=id)
        put_answer(invocation.json, {"items": events}, lambda _: _put_rest(perform, run))
    return 1 if run["status"] in _ENDED_BADLY else 0


def _put_rest(perform: Perform, run: Any) -> None:
    why = f": {clean(run['error'])}" if run["error"] else ""
    say(f"{run['executionId']} is {run['status']}{why}")
    _put_next(perform, run)


def _put_next(perform: Perform, run: Any) -> None:
    """Print the command that decides each open approval of an execution."""
    from wfcore.usecases.administration.approvals import list_approvals

    if run["status"] == ExecutionStatus.AWAITING_APPROVAL:
        open_only = (ApprovalStatus.PENDING,)
        found = perform(list_approvals, execution=run["executionId"], status=open_only)
        for one in found["items"]:
            say(f"next: wfcore approval approve {one['id']}   ({clean(one['stepName'])})")


def _poll_s(invocation: Invocation) -> float:
    """The time between two polls; it is longer for a server elsewhere."""
    return _POLL_S if invocation.elsewhere is None else _POLL_AFAR_S


def _lines_shown(invocation: Invocation, found: list[Any]) -> list[Any]:
    """Print the lines *found* and return an empty list; with `--json` return the lines."""
    if invocation.json:
        return found
    for one in found:
        for line in clean(one["text"]).splitlines():
            say(f"{one['step']} │ {line}", err=one["stream"] == "stderr")
    return []


@execution_command.command("cancel")
@several
@span_of_time
@pass_invocation
def cancel(
    invocation: Invocation,
    id: str | None,
    workflow: str | None,
    status: tuple[ExecutionStatus, ...],
    since: EpochMs | None,
    until: EpochMs | None,
    yes: bool,
) -> int | None:
    """End one at once, or all that a filter finds, once shown; running steps are killed."""
    if id is not None:
        refuse_both(workflow, status, since, until)
        ended = invocation.perform(executions.cancel_execution, id=id)
        put_answer(invocation.json, ended, _put_status)
        return None
    wanted = tuple(one for one in status or _GOING if one in _GOING)
    parameters = {"workflow": workflow, "status": wanted, "since": since, "until": until}
    if not (workflow or status or since or until):
        raise click.UsageError("Give an ID, or --workflow, --status, --from or --to")
    return act_on_each(invocation, "cancelled", executions.cancel_execution, parameters, yes)


@execution_command.command("redrive")
@several
@click.option(
    "--from", "begin", metavar="STEP-or-WHEN", help="With ID: the first step that runs; else WHEN."
)
@click.option("--to", "until", type=Since(), metavar="WHEN", help="Before then.")
@click.option("--newest", is_flag=True, help="With the workflow's present version.")
@inputs
@click.option("--dry-run", is_flag=True, help="Only say what would be kept and what would run.")
@_wait
@pass_invocation
def redrive(
    invocation: Invocation,
    id: str | None,
    workflow: str | None,
    status: tuple[ExecutionStatus, ...],
    begin: str | None,
    until: EpochMs | None,
    newest: bool,
    given: tuple[tuple[str, str], ...],
    dry_run: bool,
    yes: bool,
    wait: bool,
    timeout: int | None,
) -> int | None:
    """
    A new execution that begins at the first unfinished step of an ended one, or at another one.

    By a filter: of each FAILED one (or of --status), once they were shown, but of none that was
    redriven already.
    """
    if id is not None:
        refuse_both(workflow, status, until)
        wanted = {"id": id, "start": begin, "newest": newest, "inputs": dict(given)}
        plan = invocation.perform(executions.preview_redrive, **wanted)
        if dry_run:
            put_answer(invocation.json, plan, _put_plan)
            return None
        wanted["digest"] = plan["digest"]
        return _started(invocation, executions.redrive_execution, wanted, wait, timeout)
    if wait or timeout is not None or newest or given or dry_run:
        raise click.UsageError("--wait, --timeout, --newest, -i and --dry-run go with an ID")
    if not (workflow or status or begin or until):
        raise click.UsageError("Give an ID, or --workflow, --status, --from or --to")
    statuses = tuple(one for one in status or (ExecutionStatus.FAILED,) if one in FROM)
    since = None if begin is None else Since()(begin)
    query = {"workflow": workflow, "status": statuses, "since": since, "until": until}
    return act_on_each(invocation, "redriven", executions.redrive_execution, query, yes)


def _put_plan(plan: Any) -> None:
    """Print a line for each step, then the other differences between the definitions."""
    rows = [(one["plan"], one["step"], one["begun"]) for one in plan["steps"]]
    put_table(("PLAN", "STEP", "BEGUN"), rows, None)
    for change in plan["changes"]:
        say(f"changed: {clean(change)}")
    say(f"begins at {plan['from'] or 'the end'}, version {plan['version']}")


def _put_status(run: Any) -> None:
    say(f"{run['executionId']} is {run['status']}")


def _started(
    invocation: Invocation,
    begin: Operation[Any],
    parameters: Mapping[str, Any],
    wait: bool,
    timeout: int | None,
) -> int | None:
    """Start an execution, wait for it if *wait* is set, and print it; returns the exit status."""
    if timeout is not None and not wait:
        raise click.UsageError("--timeout goes with --wait")
    with invocation.operations() as perform:
        started = perform(begin, **parameters)
        if not wait:
            put_answer(invocation.json, started, _put_started)
            return None
        id = started["executionId"]
        rested = _rest(invocation, perform, id, timeout)
        run = perform(executions.read_execution, id=id)
        put_answer(invocation.json, run, _put)
        if not invocation.json:
            _put_next(perform, run)
    return 0 if rested and run["status"] not in _ENDED_BADLY else 1


def _rest(invocation: Invocation, perform: Perform, id: str, timeout: int | None) -> bool:
    """Whether the execution rests before the timeout. Prints its progress on stderr."""
    printed, began, warned = "", time.monotonic(), False
    while True:
        run = perform(executions.check_execution, id=id)
        if run["rests"]:
            return True
        if timeout is not None and time.monotonic() - began >= timeout / 1_000:
            say(f"not finished after {span(timeout)}; it goes on", err=True)
            return False
        steps = f"{run['completedSteps']}/{run['totalSteps']}"
        now = f"{run['status']}  {steps}  {_at(run)}"
        if now != printed and not invocation.json:
            say(now.rstrip(), err=True)
            printed = now
        late = time.monotonic() - began > _PATIENCE_S
        if run["status"] == ExecutionStatus.PENDING and late and not warned:
            say("still PENDING: is a server running? (wfcore serve)", err=True)
            warned = True
        time.sleep(_poll_s(invocation))


def _at(run: Any) -> str:
    """The current step of *run*, and in a loop the number of rounds that have begun."""
    rounds = "" if run["rounds"] is None else rounds_of(*run["rounds"])
    return ", ".join(filter(None, (run["currentStep"], rounds)))


def _put_started(started: Any) -> None:
    put_fields({"id": started["executionId"], "status": started["status"]})


def _put(run: Any) -> None:
    starter, ended = run["startedBy"], run.get("completedAt")
    put_fields(
        {
            "id": run["executionId"],
            "workflow": f"{run['workflowName']} ({run['workflowId']})",
            "reference": run["reference"],
            "by": run["triggerSource"],
            "starter": starter["email"] or starter["accountId"],
            "key": starter.get("keyName"),
            "version": run["workflowVersion"],
            "status": run["status"],
            "steps": f"{run['completedSteps']} of {run['totalSteps']}",
            "at": _at(run),
            "started": instant(run["startedAt"]),
            "ended": instant(ended) if ended else None,
            "redrive of": run["redriveOf"],
            "redriven as": run["redrivenAs"],
            "callback": _callback(run["callback"]),
        }
    )
    if run["error"]:
        say("error")
        say("\n".join(f"  {line}" for line in clean(run["error"]).splitlines()))
    rows = [
        (name, step["status"], span(step["duration"]), step["error"] or _output(step.get("output")))
        for name, step in run["stepResults"].items()
    ]
    if rows:
        say()
        put_table(("step", "status", "took", "output"), rows, len(rows))


def _callback(callback: Any) -> str | None:
    if callback is None:
        return None
    tried = f", attempt {callback['attempts']}" if callback["attempts"] else ""
    failed = f"; last error: {callback['lastError']}" if callback["lastError"] else ""
    return f"{callback['status']} ({callback['host']}{tried}{failed})"


def _output(value: object) -> str:
    return "" if value is None else shortened(value, _OUTPUT)


def _row(run: Any) -> tuple[object, ...]:
    ended, starter = run.get("completedAt"), run["startedBy"]
    return (
        run["executionId"],
        run["status"],
        f"{run['completedSteps']}/{run['totalSteps']}",
        run["workflowName"],
        run["reference"],
        span(ended - run["startedAt"] if ended else None),
        instant(run["startedAt"]),
        starter["email"] or starter["accountId"],
        run["triggerSource"],
    )
