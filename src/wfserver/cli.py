"""
The command line: one group; each command is imported when it is called.

`wfcore --help` reads only the table below, which is fast.
"""

import importlib
import os
import sys
from collections.abc import Sequence

import click

from wfserver.failures import FAILED, USAGE, explain, is_expected, status_of
from wfserver.terminal.invocation import Invocation
from wfserver.terminal.options import CommandGroup

COMMANDS = {
    "up": "Serve, with a first account, key and sample: the place to begin.",
    "try": "Run the sample against the running server and watch.",
    "run": "Run one workflow file here and now.",
    "serve": "Serve the API.",
    "test": "Play the scenarios of workflow definitions in virtual time.",
    "doctor": "What works here, and what to install.",
    "settings": "What is set, and where: in the environment, in a file, or by default.",
    "check": "Read all that is stored, beside a server, and name what is damaged.",
    "compact": "Give unused room of the database back, beside a server.",
    "account": "Accounts: create, invite, set, list, delete.",
    "login": "A link that signs an account in at the console, once.",
    "passkey": "Passkeys of accounts: list, remove.",
    "session": "Console sessions: list, end.",
    "key": "API keys: create, rotate, revoke, list.",
    "secret": "Named secrets for the steps that list them: set, list, delete.",
    "group": "Groups of people, for approvers: create, add, remove, list, show, delete.",
    "workflow": "Workflows: schema, validate, draw, apply, list, show, versions, rollback, export, "
    "state, share, unshare, delete.",
    "trigger": "Schedules and chains: list, pause, resume, backfill.",
    "webhook": "Webhooks: create, set, test, list, deliveries, replay, delete.",
    "mcp": "Offer the workflows of a server elsewhere to an agent, over stdin and stdout.",
    "execution": "Executions: start, list, show, watch, logs, explain, cancel, redrive.",
    "artifact": "Files that executions left: list, get.",
    "approval": "Approvals: list, show, approve, reject, revise, delegate.",
    "notice": "Notices: list, retry, test.",
    "nodes": "Servers that run steps: list, drain.",
    "signing": "Keys that sign links: list, rotate, retire.",
    "audit": "The audit log, and whether it is whole: verify, anchor.",
    "evidence": "One file about one execution that can be checked anywhere: write, verify.",
    "simulate": "The service in worlds where everything goes wrong, judged.",
    "states": "The tables of states: execution, approval, webhook.",
    "seal": "What is stored is sealed: key, status, rotate, prune.",
    "backup": "Write one archive of everything, while the server runs.",
    "restore": "Fill an empty data folder from an archive.",
    "migrate": "Give a store of an older version the newest schema.",
    "move": "Move everything from SQLite to PostgreSQL, or back.",
}
_MODULES = {"try": "trial", "restore": "backup", "login": "session"}


class Commands(CommandGroup):
    """The group `wfcore`, which imports `wfserver.commands.<name>` when that command is called."""

    shows_shared = True

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(f"wfserver.commands.{_MODULES.get(cmd_name, cmd_name)}")
        command: click.Command = getattr(module, f"{cmd_name}_command")
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            from difflib import get_close_matches

            close = get_close_matches(args[0], COMMANDS, n=1)
            ctx.fail(f"no command {args[0]!r}" + (f"; did you mean {close[0]}?" if close else ""))
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(cls=Commands, name="wfcore", invoke_without_command=True)
@click.version_option(package_name="wfcore", prog_name="wfcore", message="%(prog)s %(version)s")
@click.pass_context
def cli(ctx: click.Context) -> None:
    """A workflow engine and its server. To begin: wfcore up"""
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help(), err=True)
        ctx.exit(USAGE)


def main(arguments: Sequence[str]) -> int:
    """Run the command in *arguments*; returns the exit status. Errors are printed on stderr."""
    _open_closed_streams()
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    invocation = Invocation()
    try:
        _require_text(arguments)
        returned = cli.main(list(arguments), "wfcore", standalone_mode=False, obj=invocation)
        sys.stdout.flush()
        return returned if isinstance(returned, int) else 0
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    except (Exception, KeyboardInterrupt) as error:
        if isinstance(error, Exception) and not is_expected(error):
            raise
        _say(explain(error), "--json" in arguments)
        return status_of(error)


def _open_closed_streams() -> None:
    """Open closed standard streams on /dev/null, so that no file or socket takes their numbers."""
    for number, name in ((0, "stdin"), (1, "stdout"), (2, "stderr")):
        if getattr(sys, name) is None:
            nowhere = os.open(os.devnull, os.O_RDWR)
            if nowhere != number:
                os.dup2(nowhere, number)
                os.close(nowhere)
            setattr(sys, name, os.fdopen(number, "w" if number else "r", closefd=False))


def _require_text(arguments: Sequence[str]) -> None:
    """Raises `UsageError` for an argument that is not UTF-8, which JSON could not express."""
    for argument in arguments:
        if any("\ud800" <= character <= "\udfff" for character in argument):
            raise click.UsageError(f"{argument!r} is not UTF-8")


def _say(message: str, as_json: bool) -> None:
    from wfserver.terminal.output import put_json, say

    say("\n".join(f"error: {line}" for line in message.splitlines()), err=True)
    if as_json:
        put_json({"error": message}, indent=None)
