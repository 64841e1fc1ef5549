"""`wfcore secret`: values of an account that only the steps get that list their names."""

import sys
from collections.abc import Sequence

import click

from wfcore.model.access import NamedSecret
from wfcore.usecases.accounts import accounts
from wfcore.usecases.services import Services
from wfserver.terminal import lookup
from wfserver.terminal.invocation import Session
from wfserver.terminal.lookup import AT_THE_COMMAND_LINE
from wfserver.terminal.options import Group, pass_session
from wfserver.terminal.output import instant, put_json, put_list, put_table

_account = click.option("--account", required=True, metavar="ID-or-EMAIL", help="Whose secrets.")


@click.group("secret", cls=Group)
def secret_command() -> None:
    """Named secrets of an account, for the steps that list them. No value is ever shown."""


@secret_command.command("set")
@click.argument("name")
@_account
@pass_session
def set_(session: Session, name: str, account: str) -> None:
    """Set a secret to what stdin says; a line break at its end does not count."""
    value = sys.stdin.read().removesuffix("\n").removesuffix("\r")

    async def job(services: Services) -> None:
        owner = await lookup.account(services, account)
        await accounts.set_secret(services, owner.id, name, value, AT_THE_COMMAND_LINE)

    session.work(job)
    _done(session, f"{name} is set")


@secret_command.command("list")
@_account
@pass_session
def list_(session: Session, account: str) -> None:
    """Names of the secrets of an account, and when each was set."""

    async def job(services: Services) -> Sequence[NamedSecret]:
        owner = await lookup.account(services, account)
        return await accounts.list_secrets(services, owner.id)

    found = session.work(job)
    if session.json:
        put_list([{"name": one.name, "updatedAt": one.updated_at} for one in found], len(found))
    else:
        rows = [(one.name, instant(one.updated_at)) for one in found]
        put_table(("name", "set"), rows, len(found))


@secret_command.command("delete")
@click.argument("name")
@_account
@pass_session
def delete(session: Session, name: str, account: str) -> None:
    """Delete a secret; steps that list it fail from then on."""

    async def job(services: Services) -> None:
        owner = await lookup.account(services, account)
        await accounts.delete_secret(services, owner.id, name, AT_THE_COMMAND_LINE)

    session.work(job)
    _done(session, f"{name} is deleted")


def _done(session: Session, said: str) -> None:
    if session.json:
        put_json({"ok": True})
    else:
        click.echo(said)
