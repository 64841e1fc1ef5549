"""`wfcore move`: moves a store from SQLite to PostgreSQL, or back."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, BinaryIO

import click
from attrs import define, field

from adapters_runtime.system import SystemIds
from adapters_store import POSTGRES, database_of, servers_of, wall_clock
from adapters_store.files import LocalFiles
from adapters_store.sql.moving import MovedTable, Row, Side, move
from adapters_store.sqlite.moving import SqliteSide
from wfcore.errors import NotFound
from wfcore.installed import install
from wfcore.model.event import AuditEntry, AuditOutcome
from wfcore.ports.files import ArtifactFiles
from wfserver.compose import bucket_at, files_at
from wfserver.data.archive import ARTIFACTS as FOLDER
from wfserver.data.folder import (
    SEAL_KEY_FILE,
    SIGNING_KEY_FILE,
    make_data_folder,
    signing_key,
    write_key,
)
from wfserver.data.pidfile import is_serving
from wfserver.data.seal_keys import file_of, put_before, read_keys
from wfserver.errors import CommandFailed
from wfserver.settings.record import Settings
from wfserver.settings.sharing import ARTIFACTS, artifacts_url
from wfserver.terminal.invocation import Invocation
from wfserver.terminal.options import Command, pass_invocation
from wfserver.terminal.output import clean, put_json, say


@click.command("move", cls=Command)
@click.argument("target")
@click.option("--artifacts", "bucket", metavar="URL", help="Copy artifacts to s3://BUCKET/PREFIX.")
@pass_invocation
def move_command(invocation: Invocation, target: str, bucket: str | None) -> None:
    """
    Move everything to TARGET: the postgresql:// URL of an empty database, or a new data folder.

    Stop all servers first. What is stored is copied, read again and compared; then the old database
    refuses all work, and the new one begins. A move that was broken off goes on when the command is
    run again. Artifacts are compared with their checksums; to a new folder they are copied, with
    the keys, and to a bucket if --artifacts names one.
    """
    settings = invocation.settings()
    if is_serving(settings):
        raise CommandFailed("a server works on this store; stop it first")
    moved = asyncio.run(_moved(settings, target, bucket, not invocation.json))
    if invocation.json:
        put_json(
            {
                "target": moved.target,
                "tables": [
                    {"table": one.table, "rows": one.rows, "sha256": one.digest}
                    for one in moved.tables
                ],
                "artifacts": moved.artifacts.count,
                "missing": moved.artifacts.missing,
            }
        )
        return
    count = moved.artifacts.count
    say(f"artifacts{count:>21,}  {'copied' if moved.artifacts.to else 'stay where they are'}")
    for lost in moved.artifacts.missing:
        say(f"! {clean(lost)}: its content is missing or damaged, as it was before", err=True)
    way = moved.folder or f"{settings.data} --store {moved.target}"
    place = f"{ARTIFACTS}={bucket} " if bucket else ""
    say(f"Moved. Now: {place}wfcore serve --data {way}")


@define
class ArtifactCopies:
    """
    Compares artifacts with their checksums, and copies them to *to* (None: the artifacts stay).
    `missing`: the storage keys of artifacts that are missing or damaged.
    """

    here: ArtifactFiles
    to: ArtifactFiles | None
    count: int = 0
    missing: list[str] = field(factory=list)

    async def all(self, rows: AsyncIterator[Row]) -> None:
        """Copy the artifacts of *rows*, each of which is the body of an artifact alone."""
        async for (body,) in rows:
            about = json.loads(body)
            self.count += 1
            if not await self._carried(about):
                self.missing.append(about["storage_key"])

    async def _carried(self, about: dict[str, Any]) -> bool:
        with TemporaryFile() as content:
            if await _digest(self.here, about, content) != about["sha256"]:
                return False
            if self.to is None or await _digest(self.to, about) == about["sha256"]:
                return True
            content.seek(0)
            stored = await self.to.store(about["execution_id"], about["id"], content, about["name"])
        return bool(stored.sha256 == about["sha256"])


async def _digest(
    files: ArtifactFiles, about: dict[str, Any], copy: BinaryIO | None = None
) -> str | None:
    """
    The SHA-256 of an artifact's content, which is also written to *copy*; None: the content is
    missing.
    """
    found = sha256()
    try:
        async for chunk in files.read(about["storage_key"], 0, about["size"]):
            found.update(chunk)
            if copy is not None:
                copy.write(chunk)
    except NotFound:
        return None
    return found.hexdigest()


@define
class Moved:
    """The result of a move. `folder`: the new data folder, if the target is a folder."""

    target: str
    folder: Path | None
    artifacts: ArtifactCopies
    tables: list[MovedTable] = field(factory=list)


async def _moved(settings: Settings, target: str, bucket: str | None, shown: bool) -> Moved:
    folder = None if target.startswith(POSTGRES) else _folder_of(target)
    if bucket:
        artifacts_url({ARTIFACTS: bucket}, target, shared=False)
    copies = LocalFiles(folder / FOLDER) if folder else None
    artifacts = ArtifactCopies(files_at(settings), bucket_at(bucket) if bucket else copies)
    async with AsyncExitStack() as stack:
        source = await side_of(stack, settings.store, settings.data)
        new = await side_of(stack, None if folder else target, folder or settings.data)
        moved = Moved(new.location, folder, artifacts)

        def report(one: MovedTable) -> None:
            moved.tables.append(one)
            if shown:
                say(f"{one.table:<20}{one.rows:>10,}  {one.digest[:16]}")

        async def beside(rows: AsyncIterator[Row]) -> None:
            if folder:
                _give_keys(settings, folder)
            await artifacts.all(rows)

        await move(source, new, report, beside, _entry(new.location))
    return moved


def _entry(target: str) -> AuditEntry:
    """The audit entry of the move."""
    at = wall_clock()
    id = SystemIds().new("aud", at)
    return AuditEntry(id, at, "store.move", AuditOutcome.ALLOWED, target=target)


def _folder_of(target: str) -> Path:
    if "://" in target:
        raise CommandFailed(
            f"TARGET is a postgresql:// URL or a folder, not {target.partition(':')[0]}:"
        )
    folder = Path(target).absolute()
    make_data_folder(folder)
    return folder


async def side_of(
    stack: AsyncExitStack, url: str | None, data: Path, *, prepared: bool = True
) -> Side:
    """
    A side of a move. *prepared*: with the newest schema. Raises `CommandFailed` for other stores.
    """
    path = database_of(url, data)
    if path is not None:
        return stack.enter_context(SqliteSide.opened(path, data, prepared=prepared))
    if not (url or "").startswith(POSTGRES):
        raise CommandFailed(
            "only SQLite and PostgreSQL can be moved; a store of your own has its own way"
        )
    try:
        servers_of(str(url))
        from adapters_store.postgres.moving import PostgresSide
    except ValueError as error:
        raise CommandFailed(f"the URL of the database {error}") from None
    except ModuleNotFoundError:
        raise CommandFailed(f"postgresql:// needs a driver: {install('postgres')}") from None
    return await stack.enter_async_context(PostgresSide.opened(str(url), prepared=prepared))


def _give_keys(settings: Settings, folder: Path) -> None:
    """Copy the present keys to the new folder, except for keys in the environment."""
    if not settings.signing_keys:
        write_key(folder / SIGNING_KEY_FILE, signing_key(settings.data), replace=True)
    if settings.seal_key is None and file_of(settings).exists():
        put_before(folder / SEAL_KEY_FILE, read_keys(file_of(settings)))
