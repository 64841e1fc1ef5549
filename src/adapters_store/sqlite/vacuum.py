"""
Returning room: a database file does not shrink by itself when rows are deleted.

New files keep a list of unused pages, so that these can be cut off in batches beside the load.
Older ones do not; they are rewritten once, which makes writers wait.
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
"""The unused room that a file keeps: executions that come soon need it again."""
STEPS = 1_000
"""Steps of SQLite between two readings of the clock."""


def release(cursor: Cursor, limit: int) -> tuple[int, int]:
    """
    A job for the writer: cut *limit* bytes of unused pages off the end of the file, if there are
    that many beyond the reserve; returns how many bytes were cut, and the database's size now. None
    are cut if the file keeps no list of them.

    Less than *limit* remains: a file in use would return it and take it again all the time.
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
    Rewrite *path* without unused pages, so that it keeps a list of them from now on. Writers wait
    meanwhile; a copy that takes longer than *within_s* is given up and leaves no trace: False.
    Writing the copy back is not limited.

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
    Checkpoint the log if the file is larger than *size*, that of its database. Beside writers it
    may not shrink; a log of 16 MB is checkpointed by itself, or the next try does it.

    Raises `StoreUnavailable`.
    """
    if path.stat().st_size > size:
        carry_over(path)


def carry_over(path: Path) -> None:
    """Checkpoint the log as far as it has no readers: only then the file shrinks."""
    with unavailable_on_error(), closing(connect(path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(PASSIVE)")


def _number(cursor: Cursor, name: str) -> int:
    return int(cursor.execute(f"PRAGMA {name}").fetchone()[0])
