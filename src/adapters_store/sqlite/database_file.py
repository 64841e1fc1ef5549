"""
The database as a file among files: is it complete, and still the one that was opened?

SQLite trusts its path. If the file is missing it creates an empty one; if the log (`-wal`) is
missing it continues with what had been checkpointed; and if either is unlinked or replaced while
open, it goes on writing to a file that nobody will ever read. Three checks detect this:

- a database that is missing, empty or blank beside other data is refused, and nothing is touched;

- the number of the last commit is noted in a file of its own, after the commit is durable and
without a flush: a database that knows less than the note has lost commits;

- the writer checks before each batch whether the path still leads to the open file.
"""

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from wfcore.errors import StoreRefused

LOG = "-wal"
NOTE = "-commit"
RESTORING = "restoring"
"""The folder that a restore works in; as long as it is there, the data folder is not whole."""
COMPANIONS = ("signing.key", "first.key", "counters.db", "artifacts")
"""The entries that a data folder gets only after its database: none is there on a first start."""


def require_no_broken_restore(data: Path) -> None:
    """Raises `StoreRefused` if a restore into *data* did not finish."""
    if os.path.lexists(data / RESTORING):
        raise StoreRefused(
            f"a restore into {data} was broken off, so it is no service yet: run wfcore restore "
            "again, which begins anew"
        )


def require_new(path: Path, data: Path) -> None:
    """
    Raises `StoreRefused` if *path* contains no database although there was a service. Traces are
    files beside *path* and in the folder *data*. Nothing is touched, since SQLite would delete the
    log of an empty database.
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
        number, again = map(int, beside(path, NOTE).read_bytes()[:42].split())
    except (OSError, ValueError):
        return 0
    return number if number == again else 0


def _traces(path: Path, data: Path) -> Iterator[str]:
    for tail in (LOG, NOTE):
        if _has_content(beside(path, tail)):
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


def beside(path: Path, tail: str) -> Path:
    return path.with_name(path.name + tail)


def size_of(path: Path) -> int:
    """Bytes of the database and of its log, if there is one."""
    size = 0
    for file in (path, beside(path, "-wal")):
        with suppress(FileNotFoundError):
            size += file.stat().st_size
    return size
