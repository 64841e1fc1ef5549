"""`wfcore artifact`: the files that executions have left: list and get them."""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import click

from wfcore.usecases.administration import executions
from wfserver.errors import CommandFailed
from wfserver.terminal.invocation import Invocation
from wfserver.terminal.options import CommandGroup, pass_invocation
from wfserver.terminal.output import clean, instant, put_answer, put_table, say

if TYPE_CHECKING:
    from wfserver.compose import System

_STDOUT = "-"
_DOWNLOADS = "/api/executions/"


@click.group("artifact", cls=CommandGroup)
def artifact_command() -> None:
    """Artifacts of executions."""


@artifact_command.command("list")
@click.argument("execution")
@pass_invocation
def list_(invocation: Invocation, execution: str) -> None:
    """The artifacts of an execution, newest first."""
    put_answer(
        invocation.json, invocation.perform(executions.list_artifacts, execution=execution), _put
    )


def _put(found: Any) -> None:
    heads = ("id", "name", "size", "step", "type", "made")
    put_table(heads, map(_row, found["items"]), found["total"])


def _row(one: Any) -> tuple[object, ...]:
    size = f"{one['size']:,}"
    made = instant(one["createdAt"])
    return one["id"], one["name"], size, one["stepName"], one["contentType"], made


@artifact_command.command("get")
@click.argument("execution")
@click.argument("artifact", metavar="ID-or-NAME")
@click.option(
    "--output", metavar="FILE", help="Where to; must be new. - is stdout.  [default: its name]"
)
@pass_invocation
def get(invocation: Invocation, execution: str, artifact: str, output: str | None) -> None:
    """Write the content of an artifact to a file, or to stdout. Of two equal names the newest."""
    found = invocation.perform(executions.read_artifact, execution=execution, artifact=artifact)
    with _target(output or _file_name(found)) as (file, name):
        digest = sha256()

        def write(part: bytes) -> None:
            digest.update(part)
            file.write(part)

        _fetch(invocation, found, write)
        if digest.hexdigest() != found["sha256"]:
            raise CommandFailed(f"{clean(found['name'])}: the content is not what was stored")
    if name is not None:
        put_answer(
            invocation.json,
            {"file": name, "size": found["size"], "sha256": found["sha256"]},
            lambda made: say(f"{clean(made['file'])}: {made['size']:,} bytes"),
        )


def _file_name(found: Any) -> str:
    """The name of the file: the last part of the artifact's name, or else the artifact's id."""
    last = clean(Path(found["name"]).name)
    return str(found["id"]) if last in ("", "..") else last


@contextmanager
def _target(name: str) -> Iterator[tuple[IO[bytes], str | None]]:
    """The new file, or stdout, to write to; a file that could not be completed is removed."""
    if name == _STDOUT:
        yield sys.stdout.buffer, None
        return
    if os.path.lexists(name):
        raise CommandFailed(f"{clean(name)} exists already; give another name with --output")
    try:
        with open(name, "xb") as file:
            yield file, name
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def _fetch(invocation: Invocation, found: Any, write: Callable[[bytes], object]) -> None:
    """Write the content: from the files of this host, or with a link of a server elsewhere."""
    if invocation.elsewhere is not None:
        from wfserver.terminal.http_client import Api

        path = _DOWNLOADS + found["downloadUrl"].partition(_DOWNLOADS)[2]
        Api(invocation.elsewhere, "").download(f"{invocation.elsewhere}{path}", write)
        return

    async def copy(system: "System") -> None:
        async for part in system.services.files.read(found["storageKey"], 0, found["size"]):
            write(part)

    invocation.work_in(copy)
