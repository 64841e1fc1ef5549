"""
The database as a file among files: is it complete, and still the one that was opened?

SQLite trusts its path. If the file is missing it creates an empty one; if the log (`-wal`) is
missing it continues with what had been checkpointed; and if either is unlinked or replaced while
open, it goes on writing to a file that nobody will ever read. Three checks detect this (decision
68):

- a database that is missing, empty or blank beside other data is refused, and nothing is touched;

- the number of the last commit is noted in a file of its own, after the commit is durable and
without a flush: a database that knows less than the note has lost commits;

- the writer checks once a second whether the path still leads to the open file.
"""

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from time import monotonic

from wfcore.errors import StoreDisplaced, StoreRefused, StoreUnavailable

LOG = "-wal"
NOTE = "-commit"
RESTORING = "restoring"
"""The folder that a restore works in; as long as it is there, the data folder is not whole."""
COMPANIONS = ("signing.key", "first.key", "counters.db", "artifacts")
"""What a data folder gets only after its database: none of it is there on a first start."""
LOOK_EVERY_S = 1.0

Identity = tuple[int, int]
"""Device and inode."""


class DatabaseFile:
    """The file of an open store. `note` and `look` belong to the writer's thread."""

    def __init__(self, path: Path) -> None:
        """*path* must exist. Raises `StoreUnavailable`."""
        self.path = path
        self._identity = _identity(path)
        self._log: Identity | None = None
        self._looked_at = monotonic()
        self._displaced: StoreUnavailable | None = None
        self._note: int | None = None

    def require_in_place(self) -> None:
        """Raises `StoreDisplaced` if the path leads to no file or a different one."""
        if _identity(self.path) != self._identity:
            raise StoreDisplaced(detail=f"{self.path.name} was removed or replaced")
        if self._log is not None and _identity(_beside(self.path, LOG)) != self._log:
            raise StoreDisplaced(detail=f"{self.path.name}{LOG} was removed or replaced")

    def hold_log(self) -> None:
        """A connection has the log open: from now on it must stay the same file."""
        self._log = _identity(_beside(self.path, LOG))

    def let_log_go(self) -> None:
        """The last connection may remove the log, and the next one make another."""
        self._log = None

    def look(self) -> None:
        """`require_in_place`, once a second; in between the last result."""
        if monotonic() - self._looked_at >= LOOK_EVERY_S:
            self._looked_at = monotonic()
            self._displaced = None
            try:
                self.require_in_place()
            except StoreUnavailable as error:
                self._displaced = error
        if self._displaced is not None:
            raise self._displaced

    def note(self, commit: int) -> None:
        """
        Note the number of a durable commit; the note may lag behind, but is never ahead.

        It is not flushed: after a power cut it may lag by what the system had not written, after a
        kill by one commit. A commit is valid without its note.
        """
        with suppress(OSError):
            if self._note is None:
                flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
                self._note = os.open(_beside(self.path, NOTE), flags, 0o600)
            os.pwrite(self._note, b"%020d %020d\n" % (commit, commit), 0)

    def close(self) -> None:
        """Close the note."""
        if self._note is not None:
            os.close(self._note)
            self._note = None


def require_no_broken_restore(data: Path) -> None:
    """Raises `StoreRefused` if a restore into *data* did not finish."""
    if os.path.lexists(data / RESTORING):
        raise StoreRefused(
            f"a restore into {data} was broken off, so it is no service yet: run wfcore restore "
            "again, which begins anew"
        )


def require_new(path: Path, data: Path) -> None:
    """
    Raises `StoreRefused` if *path* contains no database although there was a service.

    Recognized by what is beside *path* and in the folder *data*. Nothing is touched, since SQLite
    would delete the log of an empty database.
    """
    found = list(_traces(path, data))
    if found:
        raise StoreRefused(
            f"{path} is {_state(path)}, but a service was here: {', '.join(found)}. Put the "
            "database back together with its -wal, or restore a backup into an empty folder; "
            "to begin anew, use another folder"
        )


def noted_commit(path: Path) -> int:
    """
    The number that was noted last; 0 if there is no readable note.

    To be read before the database, because another process may commit in between.
    """
    try:
        number, again = map(int, _beside(path, NOTE).read_bytes()[:42].split())
    except (OSError, ValueError):
        return 0
    return number if number == again else 0


def _traces(path: Path, data: Path) -> Iterator[str]:
    for tail in (LOG, NOTE):
        if _has_content(_beside(path, tail)):
            yield path.name + tail
    for name in COMPANIONS:
        if _has_content(data / name):
            yield name


def _has_content(path: Path) -> bool:
    if path.is_dir():
        return any(path.iterdir())
    return path.exists() and path.stat().st_size > 0


def _state(path: Path) -> str:
    if not path.exists():
        return "missing"
    return "blank" if path.stat().st_size else "empty"


def _beside(path: Path, tail: str) -> Path:
    return path.with_name(path.name + tail)


def _identity(path: Path) -> Identity | None:
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StoreUnavailable(detail=str(error)) from error
    return found.st_dev, found.st_ino
