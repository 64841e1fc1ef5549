"""`wfcore test`: plays the scenarios of definitions in virtual time."""

from collections.abc import Sequence
from pathlib import Path

import click

from wfcore.errors import InvalidInput
from wfcore.scenarios.document import scenarios_schema
from wfcore.scenarios.judging import ScenarioResult
from wfserver.definitions.read import ENDINGS, files_in
from wfserver.definitions.scenarios import (
    junit,
    played,
    report,
    unexpected,
)
from wfserver.failures import FAILED
from wfserver.terminal.invocation import Invocation
from wfserver.terminal.options import Command, pass_invocation
from wfserver.terminal.output import counted, put_json


def _put_schema(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        put_json(scenarios_schema())
        ctx.exit()


@click.command("test", cls=Command)
@click.argument("paths", metavar="FILE-or-FOLDER...", nargs=-1, required=True)
@click.option("--only", metavar="TEXT", help="Only scenarios with this text in their name.")
@click.option(
    "--junit",
    "junit_file",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write the results as JUnit XML, too.",
)
@click.option(
    "--schema",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_put_schema,
    help="Print the JSON Schema of these files, for editors, and exit.",
)
@pass_invocation
def test_command(
    invocation: Invocation, paths: Sequence[str], only: str | None, junit_file: Path | None
) -> int:
    """
    Play the scenarios of workflow definitions: real templates and control flow in virtual time,
    stubs instead of steps. No server, no code, no network. Of a folder, files *.test.yaml.

    Exit status 1: something is not as expected, or a file has mistakes.
    """
    files = files_in(paths)
    if not files:
        names = ", ".join(f"*{ending}" for ending in ENDINGS)
        raise InvalidInput("", f"there are no files {names} in {', '.join(paths)}")
    ran = {file: played(file, only) for file in files}
    if junit_file is not None:
        junit_file.write_bytes(junit(ran))
    if invocation.json:
        put_json(report(ran))
    else:
        _show(ran)
    return FAILED if any(one.wrong for found in ran.values() for one in found) else 0


def _show(ran: dict[str, Sequence[ScenarioResult]]) -> None:
    for file, found in ran.items():
        for line in unexpected(file, found):
            click.secho(line, fg=None if line.startswith(" ") else "red")
    every = [one for found in ran.values() for one in found]
    failed, seconds = sum(bool(one.wrong) for one in every), sum(one.seconds for one in every)
    click.secho(
        f"{counted(len(every), 'scenario')} in {seconds:.2f} s: "
        + (f"{failed} not as expected" if failed else "all as expected"),
        fg="red" if failed else "green",
    )
