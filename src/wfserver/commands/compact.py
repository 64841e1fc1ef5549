"""`wfcore compact`: returns unused room of the database to the file system."""

import asyncio
from pathlib import Path
from time import monotonic

import click

from adapters_store import database_of
from adapters_store.sqlite.vacuum import carry_over, keeps_account, used, write_anew
from wfserver.compose import System
from wfserver.data.pidfile import is_serving
from wfserver.errors import CommandFailed
from wfserver.terminal.invocation import Invocation
from wfserver.terminal.options import Command, pass_invocation
from wfserver.terminal.output import put_json, say

_PIECE = 1 << 20
_BESIDE_S = 1.0
_BESIDE_BYTES = 64 << 20
"""
How long a copy beside a running server may take, and how large the copy may be. Writers wait until
the copy is made and written back, which takes about twice as long again; writers give up after 4.5
s.
"""


@click.command("compact", cls=Command)
@pass_invocation
def compact_command(invocation: Invocation) -> None:
    """
    Give unused room of the database back to the file system, in small pieces beside a server.

    A server does this by itself once nothing old is left. A file of an early version is written
    anew first, which needs room for a copy and, unless it is small, the server to be stopped.
    """
    settings = invocation.settings()
    path = database_of(settings.store, settings.data)
    if path is None:
        raise CommandFailed("this store keeps no file; a database server gives room back by itself")
    if not path.exists():
        raise CommandFailed(f"there is no {path}; wfcore up makes it")
    before = path.stat().st_size
    if not keeps_account(path):
        _write_anew(path, is_serving(settings) is True)
    invocation.work_in(_release_all)
    carry_over(path)
    after = path.stat().st_size
    if invocation.json:
        put_json({"file": str(path), "before": before, "after": after})
    else:
        say(f"{path}: {before:,} bytes before, {after:,} now")


def _write_anew(path: Path, beside: bool) -> None:
    is_small = not beside or used(path) <= _BESIDE_BYTES
    if not (is_small and write_anew(path, _BESIDE_S if beside else None)):
        raise CommandFailed(
            f"{path} is of an early version and too large to be written anew beside a server; "
            "stop the server, call wfcore compact once, and start it again"
        )


async def _release_all(system: System) -> None:
    """Release piece by piece, with a pause as long as each piece took, so that others can write."""
    gone = 1
    while gone:
        began = monotonic()
        gone = await system.services.store.release(_PIECE)
        await asyncio.sleep(monotonic() - began)
