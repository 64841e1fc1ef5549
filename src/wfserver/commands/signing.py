"""`wfcore signing`: the keys that sign links to downloads and approvals."""

from typing import Any

import click

from wfcore.usecases.administration import server
from wfserver.terminal.invocation import Invocation
from wfserver.terminal.options import CommandGroup, pass_invocation
from wfserver.terminal.output import put_answer, put_table, say


@click.group("signing", cls=CommandGroup)
def signing_command() -> None:
    """Keys that sign links to downloads and personal links. No key is ever shown."""


@signing_command.command("list")
@pass_invocation
def list_(invocation: Invocation) -> None:
    """Keys whose links are good; the first one signs new ones."""
    put_answer(invocation.json, invocation.perform(server.list_signing_keys), _table)


def _table(found: Any) -> None:
    rows = [
        (one["id"], one["madeAt"] or "given to the server", "signs" if one["signs"] else "verifies")
        for one in found["items"]
    ]
    put_table(("id", "made", "state"), rows, found["total"])


@signing_command.command("rotate")
@pass_invocation
def rotate(invocation: Invocation) -> None:
    """
    Let a new key sign from now on, at every server and without a restart. Links that are out stay
    good until the key that signed them is retired.
    """
    made = invocation.perform(server.rotate_signing_key)
    put_answer(invocation.json, made, lambda one: say(f"{one['id']} signs links from now on"))


@signing_command.command("retire")
@click.argument("id")
@pass_invocation
def retire(invocation: Invocation, id: str) -> None:
    """
    End every link that a key signed, at once and at every server: downloads, and personal links,
    whose approvers get a new one with the next reminder or sign in.
    """
    done = invocation.perform(server.retire_signing_key, id=id)
    put_answer(invocation.json, done, lambda _: say(f"Links that {id} signed are refused"))
