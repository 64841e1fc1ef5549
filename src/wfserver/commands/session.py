"""
`wfcore session`: who is signed in at the console, and signing people out. `wfcore login`: a way in
without a password.
"""

from collections.abc import Sequence

import click

from wfcore.model.access import Session as ConsoleSession
from wfcore.time import MINUTE, DurationMs
from wfcore.usecases.accounts import sessions
from wfcore.usecases.accounts.sessions import issue_login_link
from wfcore.usecases.services import Services
from wfserver.serving.pidfile import base_url
from wfserver.terminal import lookup
from wfserver.terminal.invocation import Session
from wfserver.terminal.lookup import AT_THE_COMMAND_LINE
from wfserver.terminal.options import Command, Group, pass_session
from wfserver.terminal.output import instant, put_json, put_list, put_table


@click.group("session", cls=Group)
def session_command() -> None:
    """Console sessions of an account. They end by themselves after 12 idle hours, or 7 days."""


@session_command.command("list")
@click.argument("account", metavar="ID-or-EMAIL")
@pass_session
def list_(session: Session, account: str) -> None:
    """The sessions of an account that have not ended, newest first."""

    async def job(services: Services) -> Sequence[ConsoleSession]:
        owner = await lookup.account(services, account, "account")
        return await sessions.list_sessions(services, owner.id)

    found = session.work(job)
    if session.json:
        put_list(
            [
                {"id": one.id, "createdAt": one.created_at, "lastSeenAt": one.last_seen_at}
                for one in found
            ],
            len(found),
        )
    else:
        rows = [(one.id, instant(one.created_at), instant(one.last_seen_at)) for one in found]
        put_table(("id", "signed in", "last seen"), rows, len(found))


@session_command.command("end")
@click.argument("account", metavar="ID-or-EMAIL")
@click.argument("id", required=False)
@pass_session
def end(session: Session, account: str, id: str | None) -> None:
    """Sign an account out everywhere, or end the one session ID; from the next request on."""

    async def job(services: Services) -> str:
        owner = await lookup.account(services, account, "account")
        if id is None:
            await sessions.end_sessions(services, owner.id, AT_THE_COMMAND_LINE)
        else:
            await sessions.end_session(services, owner.id, id, AT_THE_COMMAND_LINE)
        return owner.email

    email = session.work(job)
    if session.json:
        put_json({"ok": True})
    else:
        click.echo(f"{email} is signed out" if id is None else f"{id} has ended")


@click.command("login", cls=Command)
@click.argument("account", metavar="ID-or-EMAIL")
@click.option(
    "--minutes", type=click.IntRange(1, 1_440), default=15, show_default=True, metavar="N"
)
@pass_session
def login_command(session: Session, account: str, minutes: int) -> None:
    """Print a link that signs the account in at the console: once, and within N minutes."""

    async def job(services: Services) -> str:
        owner = await lookup.account(services, account, "account")
        lasts = DurationMs(minutes * MINUTE)
        return await issue_login_link(services, owner.id, AT_THE_COMMAND_LINE, lasts)

    url = f"{base_url(session.settings())}/in/{session.work(job)}"
    if session.json:
        put_json({"url": url})
    else:
        click.echo(url)
