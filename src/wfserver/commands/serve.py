"""`wfcore serve`: the server in the foreground. Little is imported before it serves."""

from typing import TYPE_CHECKING

import click

from wfserver.serving.listening import serve
from wfserver.serving.memory import collecting_once
from wfserver.terminal.invocation import Invocation
from wfserver.terminal.options import Command, pass_invocation
from wfserver.terminal.output import put_json, say

if TYPE_CHECKING:
    from wfserver.serving.serve import ServerInfo


@click.command("serve", cls=Command)
@click.option("--host", metavar="ADDRESS", help="[env WFCORE_HOST; default: 127.0.0.1]")
@click.option("--port", type=click.IntRange(0, 65_535), help="[env WFCORE_PORT; default: 8000]")
@click.option("--public-url", metavar="URL", help="How clients reach it, if not at its address.")
@click.option(
    "--role",
    type=click.Choice(["api", "worker", "all"]),
    help="What this server does, if servers share a store. [env WFCORE_ROLE; default: all]",
)
@click.option(
    "--processes",
    type=click.IntRange(1, 99),
    metavar="N",
    help="How many processes share the port and the store. [env WFCORE_PROCESSES; default: 1]",
)
@pass_invocation
def serve_command(
    invocation: Invocation,
    host: str | None,
    port: int | None,
    public_url: str | None,
    role: str | None,
    processes: int | None,
) -> None:
    """Serve until Ctrl-C or SIGTERM; running steps may end first."""

    def ready(info: "ServerInfo") -> None:
        if invocation.json:
            put_json({"url": info.url, "store": info.system.location})
        else:
            say(f"wfcore serves {info.system.location} at {info.url}")

    with collecting_once():
        settings = invocation.settings(
            host=host, port=port, public_url=public_url, role=role, processes=processes
        )
        serve(settings, ready)
