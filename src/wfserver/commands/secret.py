"""`wfcore secret`: the secrets of an account, which only steps get that list their names."""

import sys
from typing import Any

import click

from wfcore.usecases.administration import accounts
from wfserver.terminal.invocation import Invocation
from wfserver.terminal.options import CommandGroup, pass_invocation
from wfserver.terminal.output import instant, put_answer, put_table, say

_account = click.option("--account", required=True, metavar="ID-or-EMAIL", help="Whose secrets.")


@click.group("secret", cls=CommandGroup)
def secret_command() -> None:
    """Named secrets of an account, for the steps that list them. No value is ever shown."""


@secret_command.command("set")
@click.argument("name")
@_account
@pass_invocation
def set_(invocation: Invocation, name: str, account: str) -> None:
    """Set a secret to what stdin says; a line break at its end does not count."""
    value = sys.stdin.read().removesuffix("\n").removesuffix("\r")
    done = invocation.perform(accounts.set_secret, account=account, name=name, value=value)
    put_answer(invocation.json, done, lambda _: say(f"{name} is set"))


@secret_command.command("list")
@_account
@pass_invocation
def list_(invocation: Invocation, account: str) -> None:
    """Names of the secrets of an account, and when each was set."""
    put_answer(invocation.json, invocation.perform(accounts.list_secrets, account=account), _table)


def _table(found: Any) -> None:
    rows = [(one["name"], instant(one["updatedAt"])) for one in found["items"]]
    put_table(("name", "set"), rows, found["total"])


@secret_command.command("delete")
@click.argument("name")
@_account
@pass_invocation
def delete(invocation: Invocation, name: str, account: str) -> None:
    """Delete a secret; steps that list it fail from then on."""
    done = invocation.perform(accounts.delete_secret, account=account, name=name)
    put_answer(invocation.json, done, lambda _: say(f"{name} is deleted"))
