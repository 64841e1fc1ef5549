"""`wfcore check`: reads everything that is stored, and names what is damaged."""

import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, cast

import attrs
import click

from adapters_store import POSTGRES, database_of
from adapters_store.sql.full_check import CheckEvent, CheckStage
from adapters_store.sql.schema import Schema
from adapters_store.sqlite.full_check import check, check_counters
from wfserver.compose import System
from wfserver.data.seal_keys import sealer_of
from wfserver.errors import CommandFailed
from wfserver.failures import FAILED
from wfserver.settings.record import Settings
from wfserver.terminal.invocation import Invocation
from wfserver.terminal.options import Command, pass_invocation
from wfserver.terminal.output import clean, put_json, say


@click.command("check", cls=Command)
@pass_invocation
def check_command(invocation: Invocation) -> int:
    """
    Read all of the database: what belongs together, every record; of a file also pages, indexes and
    artifacts.

    Writes nothing, and a server may run beside it. Exit status 1: something is damaged. Artifacts
    elsewhere are compared by wfcore doctor --artifacts, pages of PostgreSQL by its own pg_amcheck.
    """
    began = time.monotonic()
    found = []

    def take(item: CheckEvent) -> None:
        if isinstance(item, CheckStage):
            say(f"{time.monotonic() - began:7.1f} s  {item.name}", err=True)
            return
        found.append(item)
        if not invocation.json:
            say(f"{'note' if item.harmless else 'DAMAGE'}: {item.where}: {clean(item.what)}")

    settings = invocation.settings()
    if (settings.store or "").startswith(POSTGRES):
        invocation.work_in(partial(_check_server, take=take), schema=Schema.AS_IS)
    else:
        for item in _items(settings):
            take(item)
    ok = all(finding.harmless for finding in found)
    if invocation.json:
        put_json({"ok": ok, "findings": [attrs.asdict(finding) for finding in found]})
    elif ok:
        say("everything can be read")
    return 0 if ok else FAILED


async def _check_server(system: System, take: Callable[[CheckEvent], None]) -> None:
    async for item in cast("Any", system.services.store).check():  # its driver is of an extra
        take(item)


def _items(settings: Settings) -> Iterator[CheckEvent]:
    path = database_of(settings.store, settings.data)
    if path is None:
        raise CommandFailed(
            "this store is neither a file nor PostgreSQL: nothing that could be checked"
        )
    if not path.exists():
        raise CommandFailed(f"there is no {path}; wfcore up makes it")
    yield from check(path, settings.artifacts_folder, sealer_of(settings))
    yield from check_counters(settings.data / "counters.db")
