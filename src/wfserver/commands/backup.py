"""`wfcore backup` and `wfcore restore`."""

import asyncio
from pathlib import Path

import click

from adapters_store.sql.migrate import require_whole
from wfserver.archive import DATABASE, back_up, unpacked
from wfserver.compose import System, open_system
from wfserver.failures import Failed
from wfserver.output import put_json
from wfserver.params import Command, pass_session
from wfserver.session import Session
from wfserver.settings import Settings


@click.command("backup", cls=Command)
@click.argument("file", type=click.Path(path_type=Path))
@pass_session
def backup_command(session: Session, file: Path) -> None:
    """Write a consistent copy of database, artifacts and signing key to FILE (a tar)."""
    target = file.absolute()

    async def job(system: System) -> int:
        return await back_up(system.services.store, system.settings.data, target)

    size = session.work_in(job)
    if session.json:
        put_json({"file": str(target), "size": size})
    else:
        click.echo(f"{target}: {size:,} bytes. Keep it safe: it holds all data.")


@click.command("restore", cls=Command)
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@pass_session
def restore_command(session: Session, file: Path) -> None:
    """Fill the data folder, which must be empty or new, from a backup."""
    settings = session.settings()
    if settings.store is not None:
        raise Failed("restore fills a data folder; leave out --store and WFCORE_STORE")
    with unpacked(file, settings.data) as folder:
        asyncio.run(_open_once(folder))
    if session.json:
        put_json({"data": str(settings.data)})
    else:
        click.echo(f"{settings.data} is restored")


async def _open_once(folder: Path) -> None:
    """A damaged or newer database is refused before it takes its place."""
    async with open_system(Settings(folder)):
        pass
    require_whole(folder / DATABASE)
