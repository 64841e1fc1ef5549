"""`wfcore up`: a running server with a first account, a key and a sample."""

from contextlib import suppress
from typing import TYPE_CHECKING

import click
from attrs import evolve

from adapters_store.sql.schema import Schema
from wfcore.errors import AccountBlocked
from wfcore.model.access import OPERATOR, Tier
from wfcore.usecases.accounts.sessions import issue_login_link
from wfcore.usecases.administration.operator import AT_THE_COMMAND_LINE
from wfserver.compose import System
from wfserver.data.bootstrap import First, first_things
from wfserver.serving.listening import require_free_port, serve
from wfserver.serving.memory import collecting_once
from wfserver.terminal.invocation import Invocation
from wfserver.terminal.options import Command, pass_invocation
from wfserver.terminal.output import put_json
from wfserver.terminal.welcome import welcome, welcome_json

if TYPE_CHECKING:
    from wfserver.serving.serve import ServerInfo


async def _way_in(system: System, first: First) -> str | None:
    """The token of a sign-in link; None without pages, or if the account may not sign in."""
    if not system.settings.console:
        return None
    with suppress(AccountBlocked):
        return await issue_login_link(
            system.services, OPERATOR, first.account.id, AT_THE_COMMAND_LINE
        )
    return None


@click.command("up", cls=Command)
@click.option("--host", metavar="ADDRESS", help="[env WFCORE_HOST; default: 127.0.0.1]")
@click.option("--port", type=click.IntRange(0, 65_535), help="[env WFCORE_PORT; default: 8000]")
@pass_invocation
def up_command(invocation: Invocation, host: str | None, port: int | None) -> None:
    """Serve, with a first account, a key and a sample workflow where there are none."""
    with collecting_once():
        settings = invocation.settings(host=host, port=port)
        plan = settings.default_plan or Tier.ENTERPRISE
        settings = evolve(settings, policy=evolve(settings.policy, default_plan=plan))
        require_free_port(settings)

        async def job(system: System) -> First:
            first = await first_things(system.services, system.settings.data, plan)
            return evolve(first, way_in=await _way_in(system, first))

        first = invocation.work_in(job, fresh=True, schema=Schema.NEWEST)

        def ready(info: "ServerInfo") -> None:
            languages = info.runner.languages()
            if invocation.json:
                put_json(welcome_json(info, first, languages))
            else:
                welcome(info, first, languages)

        serve(settings, ready)
