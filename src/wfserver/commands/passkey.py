"""`wfcore passkey`: the passkeys of accounts, and help for people who have lost theirs."""

from typing import Any

import click

from wfcore.usecases.administration import accounts
from wfserver.terminal.invocation import Invocation
from wfserver.terminal.options import CommandGroup, pass_invocation
from wfserver.terminal.output import instant, put_answer, put_table, say


@click.group("passkey", cls=CommandGroup)
def passkey_command() -> None:
    """Passkeys sign approvals and sign in. People register theirs on the page of their account."""


@passkey_command.command("list")
@click.argument("account", metavar="ID-or-EMAIL")
@pass_invocation
def list_(invocation: Invocation, account: str) -> None:
    """The passkeys of an account. With --json also their public keys, for evidence verify."""
    put_answer(invocation.json, invocation.perform(accounts.list_passkeys, account=account), _table)


def _table(found: Any) -> None:
    rows = [
        (one["id"], one["name"], one["rpId"], instant(one["createdAt"]), _used(one["lastUsedAt"]))
        for one in found["items"]
    ]
    put_table(("id", "name", "host", "registered", "last used"), rows, found["total"])


def _used(at: int | None) -> str:
    return "never" if at is None else instant(at)


@passkey_command.command("remove")
@click.argument("account", metavar="ID-or-EMAIL")
@click.argument("id")
@pass_invocation
def remove(invocation: Invocation, account: str, id: str) -> None:
    """
    Remove a passkey that its person has lost; they are told by mail.

    Without its last passkey the account signs in with its password alone. Receipts stay valid.
    """
    done = invocation.perform(accounts.remove_passkey, account=account, id=id)
    put_answer(invocation.json, done, lambda _: say(f"{id} is removed"))
