"""`wfcore run`: one workflow, without server or store."""

import asyncio
import signal
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from wfcore.errors import InvalidDefinition
from wfcore.model.approval import Approval
from wfcore.model.event import Event
from wfcore.model.execution import ExecutionStatus
from wfcore.rules.approval.machine import Approve, Reject
from wfcore.rules.variables import parse_text
from wfcore.wire.converter import plain
from wfcore.wire.executions import result_view
from wfserver import logs
from wfserver.definitions.read import STDIN, announce_packages, children_in, read_text
from wfserver.run_local import LocalRun, Watcher, for_a_run, run_here
from wfserver.terminal.invocation import Invocation
from wfserver.terminal.options import Command, inputs, pass_invocation
from wfserver.terminal.output import as_json, clean, console, put_json, say, span
from wfserver.terminal.progress import Progress
from wfserver.terminal.review import ReviewerChoice, ask, put_question

if TYPE_CHECKING:
    from rich.console import Console

_NOBODY = "nobody is here to decide; give --approve or --reject"


@click.command("run", cls=Command)
@click.argument("file")
@inputs
@click.option("--approve", "answer", flag_value="approve", help="Approve whatever is asked.")
@click.option("--reject", "answer", flag_value="reject", help="Reject whatever is asked.")
@click.option(
    "--artifacts",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Keep the artifacts in this folder.  [default: ./wfcore-artifacts/EXECUTION-ID]",
)
@pass_invocation
def run_command(
    invocation: Invocation,
    file: str,
    given: tuple[tuple[str, str], ...],
    answer: str | None,
    artifacts: Path | None,
) -> int:
    """
    Run the workflow in FILE to its end. Asks at approvals. FILE - is stdin. Workflows that it
    starts are found by their names in the folder of FILE.
    """
    logs.set_up("warning")
    text, settings = read_text(file), invocation.settings(offline=True)
    javascript = settings.steps.javascript
    definition = text.definition(javascript=javascript)
    children = children_in(Path(file).parent, definition, javascript) if file != STDIN else ()
    values = {name: parse_text(definition.variables.get(name), text) for name, text in given}
    seat = _Seat(console(stderr=True), answer, quiet=invocation.json)
    watcher = Watcher(seat.show, seat.decide, artifacts)
    for one in (definition, *children):
        announce_packages(one, quiet=invocation.json)
    with tempfile.TemporaryDirectory(prefix="wfcore-run-") as folder:
        try:
            transient = for_a_run(settings, Path(folder))
            ran = asyncio.run(run_here(transient, definition, values, watcher, children))
        except InvalidDefinition as error:
            raise text.located(error) from None
        finally:
            seat.progress.pause()
    _show(invocation, ran, seat.out)
    return 0 if ran.execution.status is ExecutionStatus.COMPLETED else 1


class _Seat:
    """The user at this terminal, as a `Watcher` needs them."""

    def __init__(self, out: "Console", answer: str | None, quiet: bool) -> None:
        self.out = out
        self.progress = Progress(out)
        self._answer = answer
        self._quiet = quiet

    def show(self, event: Event) -> None:
        if not self._quiet:
            self.progress.show(event)

    def decide(self, approval: Approval) -> ReviewerChoice | None:
        if self._answer is not None:
            return ReviewerChoice(Approve() if self._answer == "approve" else Reject())
        if not sys.stdin.isatty():
            say(f"error: {approval.step_name}: {_NOBODY}", err=True)
            return None
        self.progress.pause()
        with _interruptible():
            put_question(approval, self.out)
            return ask(approval, clean(approval.message or approval.step_name), self.out)


@contextmanager
def _interruptible() -> Iterator[None]:
    """
    Let Ctrl-C end a prompt at once; the event loop, which is blocked by the prompt, would delay it.
    """
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _show(invocation: Invocation, ran: LocalRun, out: "Console") -> None:
    run = ran.execution
    view = result_view(run)
    if invocation.json:
        put_json(plain(view))
        return
    style = "green" if run.status is ExecutionStatus.COMPLETED else "red"
    why = f": {clean(view.error)}" if view.error else ""
    out.print(f"{run.status} in {span(view.duration)}{why}", style=style)
    for file in ran.artifacts:
        out.print(f"saved {clean(file)}", soft_wrap=True)
    if view.output is not None:
        output = view.output
        say(clean(output) if isinstance(output, str) else as_json(output))
