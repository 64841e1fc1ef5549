"""
`wfcore session`: the console sessions of accounts, and signing people out. `wfcore login`: signing
in without a password.
"""

from typing import Any

import click

from wfcore.usecases.administration import accounts
from wfserver.terminal.invocation import Invocation
from wfserver.terminal.options import Command, CommandGroup, pass_invocation
from wfserver.terminal.output import instant, put_answer, put_table, say


@click.group("session", cls=CommandGroup)
def session_command() -> None:
    """Console sessions of an account. They end by themselves after 12 idle hours, or 7 days."""


@session_command.command("list")
@click.argument("account", metavar="ID-or-EMAIL")
@pass_invocation
def list_(invocation: Invocation, account: str) -> None:
    """The sessions of an account that have not ended, newest first."""
    put_answer(invocation.json, invocation.perform(accounts.list_sessions, account=account), _table)


def _table(found: Any) -> None:
    rows = [
        (one["id"], instant(one["createdAt"]), instant(one["lastSeenAt"])) for one in found["items"]
    ]
    put_table(("id", "signed in", "last seen"), rows, found["total"])


@session_command.command("end")
@click.argument("account", metavar="ID-or-EMAIL")
@click.argument("id", required=False)
@pass_invocation
def end(invocation: Invocation, account: str, id: str | None) -> None:
    """Sign an account out everywhere, or end the one session ID; from the next request on."""
    done = invocation.perform(accounts.end_sessions, account=account, id=id)
    message = f"{account} is signed out" if id is None else f"{id} has ended"
    put_answer(invocation.json, done, lambda _: say(message))


@click.command("login", cls=Command)
@click.argument("account", metavar="ID-or-EMAIL")
@click.option(
    "--minutes", type=click.IntRange(1, 1_440), default=15, show_default=True, metavar="N"
)
@pass_invocation
def login_command(invocation: Invocation, account: str, minutes: int) -> None:
    """Print a link that signs the account in at the console: once, and within N minutes."""
    made = invocation.perform(accounts.issue_login_link, account=account, minutes=minutes)
    put_answer(invocation.json, made, lambda one: say(one["url"]))
