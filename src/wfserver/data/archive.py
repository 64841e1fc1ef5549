"""
Backup and restore: one tar of a database copy and the artifacts. Keys are included on request only:
with an archive without keys, nobody can read sealed records or sign a download.

The database is copied first. An artifact is stored before the record that names it, so the archive
holds every artifact that the copy names (unless retention has deleted it). Quota counters are left
out.
"""

import io
import json
import os
import re
import shutil
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from adapters_store import POSTGRES
from adapters_store.private_folder import alone, flush_folder, make_private
from adapters_store.sqlite.database_file import RESTORING
from adapters_store.sqlite.store import SqliteStore
from wfcore.ports.store import Store
from wfcore.rules.phrase import instant_text
from wfserver.data.folder import SEAL_KEY_FILE, SIGNING_KEY_FILE, make_data_folder
from wfserver.errors import CommandFailed

FORMAT = {"format": "wfcore-backup", "version": 1}
MANIFEST = "backup.json"
LAST_BACKUP = "last-backup.json"
"""The file that describes the last archive. It stays in the data folder; no backup holds it."""
DATABASE = "wfcore.db"
ARTIFACTS = "artifacts"
_MADE = (ARTIFACTS, SIGNING_KEY_FILE, SEAL_KEY_FILE, DATABASE)
_LOST_AND_FOUND = "lost+found"
_FEW = 3
_PART = r"[A-Za-z0-9][A-Za-z0-9_-]{0,127}"
_MEMBER = re.compile(
    rf"{'|'.join(map(re.escape, (DATABASE, SIGNING_KEY_FILE, SEAL_KEY_FILE)))}"
    rf"|{ARTIFACTS}/{_PART}/{_PART}"
)


async def back_up(
    store: Store,
    data: Path,
    file: Path,
    keys: Path | None = None,
    location: str = "memory",
    artifacts: str | None = None,
) -> int:
    """
    Write the archive *file* (mode 600), complete or not at all. Returns its size in bytes.

    *keys*: the file of the keys that seal the database, to include those keys and the signing key.
    *artifacts*: the URL where artifacts are kept, which leaves artifacts out; None: *data* holds
    the artifacts.

    Raises `CommandFailed` if *file* exists or the store is no file, `StoreUnavailable`, `OSError`.
    """
    if not isinstance(store, SqliteStore):
        raise CommandFailed(_instead(location, data, artifacts))
    _require_new(file)
    with tempfile.TemporaryDirectory(prefix=".wfcore-backup-", dir=file.parent) as folder:
        copy = Path(folder) / DATABASE
        await store.backup(str(copy))
        size = _write(Path(folder) / "part.tar", copy, data, file, keys)
    with suppress(OSError):  # the archive is there, whether or not that can be remembered
        made = {"file": str(file), "bytes": size, "at": store.now()}
        (data / LAST_BACKUP).write_text(json.dumps(made))
    return size


def last_backup(data: Path) -> str | None:
    """The archive that `back_up` last wrote of the folder *data*: name, size and time, in words."""
    try:
        last = json.loads((data / LAST_BACKUP).read_text())
        return f"{last['file']}, {last['bytes']:,} bytes, at {instant_text(last['at'])}"
    except (OSError, ValueError, TypeError, KeyError):
        return None


def _instead(location: str, data: Path, artifacts: str | None) -> str:
    """The instructions for backing up a store that is no file."""
    if not location.startswith(POSTGRES):
        return "a backup copies a database file, and this store has none"
    dump = f"  pg_dump --format=custom --file=wfcore.dump '{location}'\n"
    if artifacts is None:
        files = f"  tar -C '{data}' -cf wfcore-data.tar {ARTIFACTS} {SIGNING_KEY_FILE}\n"
    else:
        files = f"  a copy, or the bucket's versions, of {artifacts}\n"
    return (
        "a database server has its own tools; run these, in this order, and keep both results:\n"
        f"{dump}{files}"
        f"and keep {SEAL_KEY_FILE} apart. For every moment instead of one, archive the server's "
        "write-ahead log (pg_basebackup, archive_command)"
    )


def _require_new(file: Path) -> None:
    if os.path.lexists(file):
        raise CommandFailed(f"{file} exists already; give another name")


def _write(part: Path, database: Path, data: Path, file: Path, keys: Path | None) -> int:
    """Pack the archive in *part*, link it as *file* when it is complete; returns its size."""
    with open(part, "xb", opener=_private) as raw, tarfile.open(fileobj=raw, mode="w") as tar:
        manifest = json.dumps(FORMAT).encode()
        about = tarfile.TarInfo(MANIFEST)
        about.size = len(manifest)
        tar.addfile(about, io.BytesIO(manifest))
        tar.add(database, DATABASE)
        if keys is not None:
            tar.add(data / SIGNING_KEY_FILE, SIGNING_KEY_FILE)
            tar.add(keys.resolve(), SEAL_KEY_FILE)
        for path in sorted((data / ARTIFACTS).glob("*/*")):
            name = path.relative_to(data).as_posix()
            if _MEMBER.fullmatch(name) and path.is_file() and not path.is_symlink():
                _add(tar, path, name)
        tar.close()
        raw.flush()
        os.fsync(raw.fileno())
    os.link(part, file)
    flush_folder(file.parent)
    return file.stat().st_size


def _add(tar: tarfile.TarFile, path: Path, name: str) -> None:
    """Add the file at *path*, unless retention has deleted it since the folder was listed."""
    try:
        tar.add(path, name, recursive=False)
    except FileNotFoundError:
        return


@contextmanager
def unpacked(file: Path, data: Path) -> Iterator[Path]:
    """
    A folder in *data* with the content of the archive. On leaving without an error, the content
    moves up into *data*, which must be empty or not exist; after an error nothing remains.

    Everything happens inside *data*, which may be a mounted volume or lie in another user's folder.
    While the folder exists, no server starts on *data*. The folder is removed last, so the next
    restore recognises a restore that was killed, and begins anew.

    Raises `CommandFailed` if *data* is in use or *file* is no archive of wfcore.
    """
    made = not os.path.lexists(data)
    make_data_folder(data)
    folder = data / RESTORING
    with alone(data):
        _require_empty(data)
        _clear(data)
        make_private(folder)
        try:
            _extract(file, folder)
            yield folder
            _flush_tree(folder)
            _move_up(folder, data)
        except BaseException:
            _clear(data)
            if made:
                data.rmdir()
            raise


def _require_empty(data: Path) -> None:
    """Raises `CommandFailed` if *data* holds more than the remains of a restore that was killed."""
    left = _MADE if os.path.lexists(data / RESTORING) else ()
    found = sorted({path.name for path in data.iterdir()} - {_LOST_AND_FOUND, RESTORING, *left})
    if found:
        raise CommandFailed(
            f"{data} is not empty (it holds {', '.join(found[:_FEW])}); "
            "give an empty or new folder with --data"
        )


def _clear(data: Path) -> None:
    """Remove everything that a restore has made; the folder that marks the restore goes last."""
    if os.path.lexists(data / RESTORING):
        for name in _MADE:
            _remove(data / name)
        _remove(data / RESTORING)
        flush_folder(data)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _flush_tree(folder: Path) -> None:
    for parent, _, names in os.walk(folder):
        for name in names:
            with open(Path(parent) / name, "rb") as file:
                os.fsync(file.fileno())
        flush_folder(Path(parent))


def _move_up(folder: Path, data: Path) -> None:
    for name in _MADE:
        if (folder / name).exists():
            (folder / name).rename(data / name)
    flush_folder(data)
    shutil.rmtree(folder)
    flush_folder(data)


def _extract(file: Path, folder: Path) -> None:
    try:
        with tarfile.open(file, mode="r:") as tar:
            _check_manifest(tar, file)
            for member in tar:
                _extract_member(tar, member, folder)
    except tarfile.TarError as error:
        raise CommandFailed(f"{file} is no whole backup of wfcore: {error}") from None
    if not (folder / DATABASE).is_file():
        raise CommandFailed(f"{file} is no whole backup of wfcore: it lacks {DATABASE}")


def _check_manifest(tar: tarfile.TarFile, file: Path) -> None:
    first = tar.next()
    content = tar.extractfile(first) if first and first.name == MANIFEST else None
    try:
        manifest = json.loads(content.read(1_024)) if content else None
    except ValueError:
        manifest = None
    if manifest != FORMAT:
        raise CommandFailed(f"{file} is no backup of wfcore")


def _extract_member(tar: tarfile.TarFile, member: tarfile.TarInfo, folder: Path) -> None:
    """Extract a regular file with the name of a backup's member; refuse everything else."""
    if member.name == MANIFEST:
        return
    content = tar.extractfile(member) if member.isreg() else None
    if content is None or not _MEMBER.fullmatch(member.name):
        raise CommandFailed(
            f"the archive holds {member.name!r}, which no backup does; nothing was restored"
        )
    target = folder / member.name
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with open(target, "xb", opener=_private) as file:
        shutil.copyfileobj(content, file)


def _private(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW, 0o600)
