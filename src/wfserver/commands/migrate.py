"""`wfcore migrate`: gives a store of an older version the newest schema. ST-6."""

import asyncio
from contextlib import AsyncExitStack

import click

from adapters_store.sql.moving import require_idle
from wfserver.commands.move import side_of
from wfserver.data.pidfile import is_serving
from wfserver.errors import CommandFailed
from wfserver.terminal.invocation import Invocation
from wfserver.terminal.options import Command, pass_invocation
from wfserver.terminal.output import put_json, say


@click.command("migrate", cls=Command)
@pass_invocation
def migrate_command(invocation: Invocation) -> None:
    """
    Give the store the newest schema, as the first start of a new version does.

    Stop all servers first; back up before. Older versions refuse the store from then on.
    """
    settings = invocation.settings()
    if is_serving(settings):
        raise CommandFailed("a server works on this store; stop it first")

    async def migrated() -> str:
        async with AsyncExitStack() as stack:
            side = await side_of(stack, settings.store, settings.data, prepared=False)
            await require_idle(side)
        async with AsyncExitStack() as stack:
            return (await side_of(stack, settings.store, settings.data)).location

    location = asyncio.run(migrated())
    if invocation.json:
        put_json({"store": location})
    else:
        say(f"{location} has the newest schema")
