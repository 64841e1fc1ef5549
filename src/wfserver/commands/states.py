"""`wfcore states`: the tables that decide what may happen next, for people and for programs."""

import click

from wfcore.rules.states import MACHINES, as_json, as_mermaid, as_text
from wfserver.terminal.invocation import Session
from wfserver.terminal.options import Command, pass_session
from wfserver.terminal.output import put_json, say

_TEXTS = {"text": as_text, "mermaid": as_mermaid}


@click.command("states", cls=Command)
@click.argument("machine", type=click.Choice(list(MACHINES)), metavar="MACHINE")
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "mermaid", "json"]),
    default="text",
    show_default=True,
    help="A table, a diagram's text, or JSON (as --json).",
)
@pass_session
def states_command(session: Session, machine: str, form: str) -> None:
    """The states of MACHINE (execution, step, approval, webhook), and what leads to which."""
    table = MACHINES[machine]
    if session.json or form == "json":
        put_json(as_json(table))
    else:
        say(_TEXTS[form](table))
