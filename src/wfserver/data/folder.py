"""
The data folder: created if it does not exist, checked before it is used; and its key files.

The check runs before any file in the folder is opened, and reports a problem in one line. SQLite
would call the same problem "unable to open database file", which names neither file nor cure.
"""

import errno
import os
import pwd
from collections.abc import Iterator
from pathlib import Path

from attrs import frozen

from adapters_store.private_folder import flush_folder, make_private
from wfserver.errors import CommandFailed
from wfserver.settings.names import FIRST_KEY_FILE

SIGNING_KEY_FILE = "signing.key"
SIGNING_KEY_BYTES = 32
SEAL_KEY_FILE = "seal.key"

_FOLDERS = ("artifacts", "packages", "steps", "workers")
_WRITTEN = ("wfcore.db", "wfcore.db-wal", "wfcore.db-shm", "wfcore.db-commit", "counters.db")
_READ = (SIGNING_KEY_FILE, SEAL_KEY_FILE, FIRST_KEY_FILE, "server.json")


@frozen
class Trouble:
    """A problem with the data folder, and its cure."""

    what: str
    cure: str


def make_data_folder(data: Path) -> None:
    """Create *data* if it does not exist. Raises `CommandFailed` with the reason and the cure."""
    if not os.path.lexists(data):
        try:
            make_private(data)
        except (PermissionError, NotADirectoryError, FileExistsError) as error:
            raise CommandFailed(f"cannot create {data}: {_why_not_made(data, error)}") from None
    trouble = trouble_with(data)
    if trouble is not None:
        raise CommandFailed(f"{trouble.what}; {trouble.cure}")


def trouble_with(data: Path) -> Trouble | None:
    """
    The first reason why this process cannot work in *data*, which exists; None: it can work there.
    """
    return next(_troubles(data), None)


def _troubles(data: Path) -> Iterator[Trouble]:
    another = "choose another folder with --data"
    if not data.exists():
        yield Trouble(f"{data} is a symbolic link to a path that does not exist", another)
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
        found, needed = ("a folder", "a file") if path.is_dir() else ("a file", "a folder")
        yield Trouble(f"{path} is {found}, but wfcore needs {needed} of that name", "move it away")
    elif not _may(path, wanted):
        yield _forbidden(path, data)


def _forbidden(path: Path, data: Path) -> Trouble:
    if os.statvfs(path).f_flag & os.ST_RDONLY:
        cure = "mount it read-write, or choose another folder with --data"
        return Trouble(f"{path} is on a file system that is mounted read-only", cure)
    found, me = path.stat(), _name(os.geteuid())
    if found.st_uid == os.geteuid():
        what = f"{path} belongs to {me}, but its mode denies its owner access"
        return Trouble(what, f"chmod u+rwX {path}")
    owner = _name(found.st_uid)
    what = f"{path} belongs to {owner}, and this process runs as {me}, who has no access to it"
    cure = f"run wfcore as {owner}, or choose another folder with --data"
    return Trouble(what, f"{cure}, or if only wfcore uses {data}: chown -R {me} {data}")


def _may(path: Path, wanted: int) -> bool:
    return os.access(path, wanted, effective_ids=True)


def _why_not_made(data: Path, error: OSError) -> str:
    there = next(folder for folder in data.parents if folder.exists())
    if error.errno == errno.EROFS or not isinstance(error, PermissionError):
        return f"{there}: {error.strerror}; choose another folder with --data"
    me = _name(os.geteuid())
    return (
        f"{me} may not write to {there}; create it as root and chown it to {me}, "
        "or choose another folder with --data"
    )


def _name(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def signing_key(data: Path) -> bytes:
    """
    The key that signs download links: created once, kept in the data folder with mode 600.

    Raises `CommandFailed` if the key is not 32 bytes long: with an empty key anybody could sign
    links.
    """
    path = data / SIGNING_KEY_FILE
    if not path.exists():
        write_key(path, os.urandom(SIGNING_KEY_BYTES), replace=False)
    with path.open("rb") as file:
        key = file.read(SIGNING_KEY_BYTES + 1)
    if len(key) != SIGNING_KEY_BYTES:
        raise CommandFailed(
            f"{path} has {path.stat().st_size} bytes instead of {SIGNING_KEY_BYTES}: restore it, "
            "for example from a backup. If it is lost, delete the file: a new key is created, and "
            "download links that were issued before stop working"
        )
    return key


def write_key(path: Path, content: bytes, *, replace: bool) -> None:
    """
    Write a file of mode 600 durably, all or nothing. An existing file is kept unless *replace* is
    set.
    """
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
    """Link *fresh* as *path*, or keep the file that another server made at the same time."""
    try:
        os.link(fresh, path)
    except FileExistsError:
        return
