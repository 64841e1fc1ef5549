"""
The database as a file among files: checks that the file is complete, and still the opened file.

SQLite trusts its path. If the file is missing, SQLite creates an empty file. If the log (`-wal`) is
missing, SQLite continues with the last checkpoint. If the file or the log is unlinked or replaced
while open, SQLite goes on writing to a file that nobody will ever read. Three checks detect this:

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
"""
The folder in which a restore works; as long as the folder exists, the data folder is not complete.
"""
COMPANIONS = ("signing.key", "first.key", "counters.db", "artifacts")
"""
The entries that a data folder gets only after its database: on a first start they are all missing.
"""


def require_no_broken_restore(data: Path) -> None:
    """Raises `StoreRefused` if a restore into *data* did not finish."""
    if os.path.lexists(data / RESTORING):
        raise StoreRefused(
            f"a restore into {data} was broken off, so it is no service yet: run wfcore restore "
            "again, which begins anew"
        )


def require_new(path: Path, data: Path) -> None:
    """
    Raises `StoreRefused` if *path* contains no database although there was a service. The traces of
    a service are files beside *path* and in the folder *data*. No file is opened, since SQLite
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
    The number in the note; 0 without a readable note.

    The note must be read before the database, because another process may commit in between.
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
    """The bytes of the database and of its log, if there is a log."""
    size = 0
    for file in (path, beside(path, "-wal")):
        with suppress(FileNotFoundError):
            size += file.stat().st_size
    return size
