"""`wfcore states`: the state machines as tables, for people and programs."""

import click

from wfcore.rules.states import MACHINES, as_json, as_mermaid, as_text
from wfserver.terminal.invocation import Invocation
from wfserver.terminal.options import Command, pass_invocation
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
@pass_invocation
def states_command(invocation: Invocation, machine: str, form: str) -> None:
    """The states of MACHINE (execution, step, approval, webhook), and what leads to which."""
    table = MACHINES[machine]
    if invocation.json or form == "json":
        put_json(as_json(table))
    else:
        say(_TEXTS[form](table))
