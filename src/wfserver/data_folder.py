"""
The data folder: made where it is missing, looked at before it is used, and its key files.

What is wrong with it is said in one line before anything opens a file in it: the same fault would
come back from SQLite as "unable to open database file", which names neither file nor cure.
"""

import errno
import os
import pwd
from collections.abc import Iterator
from pathlib import Path

from attrs import frozen

from adapters_store.private_folder import flush_folder, make_private
from wfserver.terminal.failures import Failed

SIGNING_KEY_FILE = "signing.key"
SIGNING_KEY_BYTES = 32
SEAL_KEY_FILE = "seal.key"

_FOLDERS = ("artifacts", "packages", "steps", "workers")
_WRITTEN = ("wfcore.db", "wfcore.db-wal", "wfcore.db-shm", "wfcore.db-commit", "counters.db")
_READ = (SIGNING_KEY_FILE, SEAL_KEY_FILE, "first.key", "server.json")


@frozen
class Trouble:
    """What is wrong, and what helps."""

    what: str
    cure: str


def make_data_folder(data: Path) -> None:
    """Make *data* where it is missing. Raises `Failed` where it cannot be used, and says why."""
    if not os.path.lexists(data):
        try:
            make_private(data)
        except (PermissionError, NotADirectoryError, FileExistsError) as error:
            raise Failed(f"{data} cannot be made: {_why_not_made(data, error)}") from None
    trouble = trouble_with(data)
    if trouble is not None:
        raise Failed(f"{trouble.what}; {trouble.cure}")


def trouble_with(data: Path) -> Trouble | None:
    """Why this user cannot work in *data*, which is there; None: it can."""
    return next(_troubles(data), None)


def _troubles(data: Path) -> Iterator[Trouble]:
    another = "give another folder with --data"
    if not data.exists():
        yield Trouble(f"{data} is a link to nothing", another)
    elif not data.is_dir():
        yield Trouble(f"{data} is a file, not a folder", another)
    elif not _may(data, os.R_OK | os.W_OK | os.X_OK):
        yield _forbidden(data, data)
    else:
        for name in _FOLDERS:
            yield from _trouble_below(data, data / name, os.R_OK | os.W_OK | os.X_OK)
        for name in _WRITTEN:
            yield from _trouble_below(data, data / name, os.R_OK | os.W_OK)
        for name in _READ:
            yield from _trouble_below(data, data / name, os.R_OK)


def _trouble_below(data: Path, path: Path, wanted: int) -> Iterator[Trouble]:
    if not path.exists():
        return
    if path.is_dir() != (path.name in _FOLDERS):
        kinds = ("a folder", "a file") if path.is_dir() else ("a file", "a folder")
        yield Trouble(f"{path} is {kinds[0]} where wfcore keeps {kinds[1]}", "move it away")
    elif not _may(path, wanted):
        yield _forbidden(path, data)


def _forbidden(path: Path, data: Path) -> Trouble:
    if os.statvfs(path).f_flag & os.ST_RDONLY:
        cure = "mount it for writing, or give another folder with --data"
        return Trouble(f"{path} is on a file system that is mounted read-only", cure)
    found, me = path.stat(), _name(os.geteuid())
    if found.st_uid == os.geteuid():
        return Trouble(f"{path} is closed to its own owner, {me}", f"chmod u+rwX {path}")
    owner = _name(found.st_uid)
    what = f"{path} belongs to {owner}, and this process, which runs as {me}, may not use it"
    return Trouble(what, f"run it as {owner}, or: chown -R {me} {data}")


def _may(path: Path, wanted: int) -> bool:
    return os.access(path, wanted, effective_ids=True)


def _why_not_made(data: Path, error: OSError) -> str:
    there = next(folder for folder in data.parents if folder.exists())
    if error.errno == errno.EROFS or not isinstance(error, PermissionError):
        return f"{there}: {error.strerror}; give another folder with --data"
    me = _name(os.geteuid())
    return (
        f"{me} may not write to {there}; make it as root and chown it to {me}, "
        "or give another folder with --data"
    )


def _name(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def signing_key(data: Path) -> bytes:
    """
    The key of download links: made once, kept in the data folder, mode 600.

    Raises `Failed` where it is not 32 bytes: with an empty one anybody could sign.
    """
    path = data / SIGNING_KEY_FILE
    if not path.exists():
        write_key(path, os.urandom(SIGNING_KEY_BYTES), replace=False)
    with path.open("rb") as file:
        key = file.read(SIGNING_KEY_BYTES + 1)
    if len(key) != SIGNING_KEY_BYTES:
        raise Failed(
            f"{path} is {path.stat().st_size} bytes, and a key is {SIGNING_KEY_BYTES}: put the "
            "right file back, from a backup, say. If it is lost, delete it: a new one is made, "
            "and download links that were handed out end"
        )
    return key


def write_key(path: Path, content: bytes, *, replace: bool) -> None:
    """Write a file of mode 600, complete and durably; *replace*: one that is there already."""
    fresh = path.with_suffix(f".{os.getpid()}")
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
    with open(os.open(fresh, flags, 0o600), "wb", buffering=0) as file:
        file.write(content)
        os.fsync(file.fileno())
    try:
        if replace:
            fresh.replace(path)
        else:
            _link(fresh, path)
    finally:
        fresh.unlink(missing_ok=True)
    flush_folder(path.parent)


def _link(fresh: Path, path: Path) -> None:
    """Two servers that start at once must agree: the first one's stays."""
    try:
        os.link(fresh, path)
    except FileExistsError:
        return
