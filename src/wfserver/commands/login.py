"""`wfcore login`: a way into the console without a password."""

import click

from wfcore.time import MINUTE, DurationMs
from wfcore.usecases.accounts.sessions import issue_login_link
from wfcore.usecases.services import Services
from wfserver.serving.pidfile import base_url
from wfserver.terminal import lookup
from wfserver.terminal.invocation import Session
from wfserver.terminal.lookup import AT_THE_COMMAND_LINE
from wfserver.terminal.options import Command, pass_session
from wfserver.terminal.output import put_json


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
