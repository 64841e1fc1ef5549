"""
The return of unused space: a database file does not shrink by itself when rows are deleted.

New files keep a list of unused pages, so that these pages can be cut off in batches while the
server works. Older files keep no such list; they are rewritten once, and writers wait meanwhile.
"""

from contextlib import closing
from pathlib import Path
from time import monotonic

from adapters_store.sqlite.connection import (
    Cursor,
    DriverError,
    connect,
    detail_of,
    unavailable_on_error,
)
from wfcore.errors import StoreUnavailable

SHRINK = "PRAGMA shrink_memory"
"""The statement that frees the pages of a connection."""
INCREMENTAL = 2
RESERVE_BYTES = 4 << 20
"""The unused bytes that a file keeps: new executions soon need them again."""
STEPS = 1_000
"""The steps of SQLite between two readings of the clock."""


def release(cursor: Cursor, limit: int) -> tuple[int, int]:
    """
    A job for the writer: cut *limit* bytes of unused pages off the end of the file, if the file has
    that many beyond the reserve; returns the number of bytes cut, and the size of the database now.
    No bytes are cut if the file keeps no list of unused pages.

    Fewer than *limit* unused bytes remain: a file in use would return them and take them again all
    the time.
    """
    size, before = _number(cursor, "page_size"), _number(cursor, "page_count")
    pages, unused = limit // size, _number(cursor, "freelist_count")
    if _number(cursor, "auto_vacuum") == INCREMENTAL and unused >= pages + RESERVE_BYTES // size:
        for _ in range(pages):
            cursor.execute("PRAGMA incremental_vacuum(1)")  # of more, Python's driver does one
    left = _number(cursor, "page_count")
    return (before - left) * size, left * size


def keeps_account(path: Path) -> bool:
    """Whether `release` works on *path*. Raises `StoreUnavailable`."""
    with unavailable_on_error(), closing(connect(path, "ro")) as connection:
        return _number(connection.cursor(), "auto_vacuum") == INCREMENTAL


def used(path: Path) -> int:
    """The bytes of *path* in use. Raises `StoreUnavailable`."""
    with unavailable_on_error(), closing(connect(path, "ro")) as connection:
        cursor = connection.cursor()
        pages = _number(cursor, "page_count") - _number(cursor, "freelist_count")
        return pages * _number(cursor, "page_size")


def write_anew(path: Path, within_s: float | None = None) -> bool:
    """
    Rewrite *path* without unused pages, so that the file keeps a list of unused pages from now on.
    Writers wait meanwhile. A copy that takes longer than *within_s* is given up without a trace;
    then this returns False. The time for writing the copy back is not limited.

    Raises `StoreUnavailable`.
    """
    until = None if within_s is None else monotonic() + within_s
    with unavailable_on_error(), closing(connect(path)) as connection:
        connection.execute(f"PRAGMA auto_vacuum = {INCREMENTAL}")
        if until is not None:
            connection.set_progress_handler(lambda: monotonic() > until, STEPS)
        try:
            connection.execute("VACUUM")
        except DriverError as error:
            if str(error) == "interrupted":
                return False
            raise StoreUnavailable(detail=detail_of(error)) from error
        return True


def shrink(path: Path, size: int) -> None:
    """
    Checkpoint the log if the file is larger than *size*, the size of its database. While there are
    writers, the file may not shrink; then a later try shrinks it, or the checkpoint that SQLite
    does at 16 MB of log.

    Raises `StoreUnavailable`.
    """
    if path.stat().st_size > size:
        carry_over(path)


def carry_over(path: Path) -> None:
    """Checkpoint the part of the log that has no readers: only then the file shrinks."""
    with unavailable_on_error(), closing(connect(path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(PASSIVE)")


def _number(cursor: Cursor, name: str) -> int:
    return int(cursor.execute(f"PRAGMA {name}").fetchone()[0])
