"""`wfcore backup` and `wfcore restore`: an archive of everything, written and unpacked."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import click
from attrs import evolve

from adapters_store.sqlite.full_check import unreadable
from adapters_store.sqlite.migrate import prepare, require_whole
from adapters_store.sqlite.sealing_keys import keys_of
from wfserver.compose import System, open_system
from wfserver.data.archive import DATABASE, back_up, unpacked
from wfserver.data.folder import SEAL_KEY_FILE, SIGNING_KEY_FILE, signing_key
from wfserver.data.seal_keys import file_of, sealer_of
from wfserver.errors import CommandFailed
from wfserver.settings.names import SEAL_KEY
from wfserver.settings.record import Settings
from wfserver.terminal.invocation import Invocation
from wfserver.terminal.options import Command, pass_invocation
from wfserver.terminal.output import clean, put_json, say


@click.command("backup", cls=Command)
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--with-key", is_flag=True, help="Put the keys in, too: seal and signing key.")
@pass_invocation
def backup_command(invocation: Invocation, file: Path, with_key: bool) -> None:
    """
    Write a consistent copy of database and artifacts to FILE (a tar).

    The database is sealed, and FILE is of no use without its keys: keep those apart, or in it.
    Without the signing key, links to downloads that were handed out before end with a restore.
    """
    target = file.absolute()

    async def job(system: System) -> tuple[int, str]:
        keys = _keys(system.settings) if with_key else None
        data, store = system.settings.data, system.services.store
        kept = system.settings.artifacts
        size = await back_up(store, data, target, keys, system.location, kept)
        sealer = sealer_of(system.settings)
        return size, sealer.where if sealer else ""

    size, where = invocation.work_in(job)
    if invocation.json:
        put_json({"file": str(target), "size": size})
    elif with_key:
        say(f"{target}: {size:,} bytes. Keep it safe: it holds all data, and the keys to it.")
    else:
        say(f"{target}: {size:,} bytes, without keys: keep {where} apart, and safe.")
    if (bucket := invocation.settings().artifacts) and not invocation.json:
        say(f"Artifacts are not in it: {bucket} keeps them, and its versions back them up.")


def _keys(settings: Settings) -> Path:
    if settings.seal_key is not None:
        raise CommandFailed(f"the keys are in {SEAL_KEY}, not in a file; keep them yourself")
    return file_of(settings)


@click.command("restore", cls=Command)
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@pass_invocation
def restore_command(invocation: Invocation, file: Path) -> None:
    """Fill the data folder, which must be empty or new, from a backup."""
    settings = invocation.settings()
    if settings.store is not None:
        raise CommandFailed("restore fills a data folder; leave out --store and WFCORE_STORE")
    with unpacked(file, settings.data) as folder:
        signs = (folder / SIGNING_KEY_FILE).exists()
        there = evolve(settings, data=folder)
        missing = _missing_keys(there)
        if missing:
            signing_key(folder)
            prepare(folder / DATABASE, folder)
        else:
            asyncio.run(_open_once(there))
        require_whole(folder / DATABASE)
        sealer = sealer_of(there)
        damaged = unreadable(folder / DATABASE, sealer) if sealer and not missing else ()
    if invocation.json:
        unread = [f"{one.where}: {one.what}" for one in damaged]
        put_json({"data": str(settings.data), "missingKeys": missing, "unreadable": unread})
        return
    say(f"{settings.data} is restored")
    for one in damaged:
        say(f"! {one.where}: {clean(one.what)}", err=True)
    if not signs:
        say("Download links from before have ended: the backup holds no signing key")
    if missing:
        say(
            f"The backup holds no key, and no server starts without {', '.join(missing)}: put the "
            f"file that you kept at {settings.data / SEAL_KEY_FILE}, or set {SEAL_KEY}; then run "
            "wfcore check",
            err=True,
        )


def _missing_keys(settings: Settings) -> Sequence[str]:
    """The ids of the keys that the unpacked database needs but that are missing."""
    sealer = sealer_of(settings)
    have = sealer.keys if sealer else ()
    return [id for id in keys_of(settings.data / DATABASE) if id not in have]


async def _open_once(settings: Settings) -> None:
    """Open the unpacked store once, which refuses a damaged or newer database."""
    async with open_system(settings):
        pass
