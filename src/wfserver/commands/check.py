"""`wfcore check`: everything that is stored is read, and what is not as it should be is named."""

import time
from collections.abc import Iterator

import attrs
import click

from adapters_store import database_of
from adapters_store.sqlite.full_check import Stage, Told, check, check_counters
from wfserver.failures import FAILED, Failed
from wfserver.seal_keys import sealer_of
from wfserver.settings import Settings
from wfserver.terminal.invocation import Session
from wfserver.terminal.options import Command, pass_session
from wfserver.terminal.output import clean, put_json, say


@click.command("check", cls=Command)
@pass_session
def check_command(session: Session) -> int:
    """
    Read all of the database: pages, indexes, what belongs together, every record, artifacts.

    Writes nothing, and a server may run beside it. Exit status 1: something is damaged. Artifacts
    in a bucket are compared by wfcore doctor --artifacts.
    """
    began = time.monotonic()
    found = []
    for told in _told(session.settings()):
        if isinstance(told, Stage):
            say(f"{time.monotonic() - began:7.1f} s  {told.name}", err=True)
            continue
        found.append(told)
        if not session.json:
            say(f"{'note' if told.harmless else 'DAMAGE'}: {told.where}: {clean(told.what)}")
    ok = all(finding.harmless for finding in found)
    if session.json:
        put_json({"ok": ok, "findings": [attrs.asdict(finding) for finding in found]})
    elif ok:
        say("everything can be read")
    return 0 if ok else FAILED


def _told(settings: Settings) -> Iterator[Told]:
    path = database_of(settings.store, settings.data)
    if path is None:
        raise Failed(
            "this store is no file, and wfcore has nothing that could be checked; a database "
            "server has tools of its own (pg_amcheck)"
        )
    if not path.exists():
        raise Failed(f"there is no {path}; wfcore up makes it")
    yield from check(path, settings.artifacts_folder, sealer_of(settings))
    yield from check_counters(settings.data / "counters.db")
