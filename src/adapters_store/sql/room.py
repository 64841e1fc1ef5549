"""
Giving room back: the file of a database does not shrink by itself when rows go.

Files made today keep account of unused pages, so that some at a time can be cut off beside the
load. Older ones do not; they are written anew once, which keeps writers waiting (decision 67).
"""

from contextlib import closing
from pathlib import Path
from time import monotonic

from adapters_store.sql.connection import (
    Cursor,
    DriverError,
    connect,
    detail_of,
    unavailable_on_error,
)
from wfcore.errors import StoreUnavailable

INCREMENTAL = 2
RESERVE_BYTES = 4 << 20
"""Unused room that a file keeps: executions that come soon need it again."""
STEPS = 1_000
"""Steps of SQLite between two looks at the clock."""


def release(cursor: Cursor, limit: int) -> int:
    """
    A job for the writer: cut up to *limit* bytes of unused pages off the end of the file; how
    many went. None where the file keeps no account of them.
    """
    if _number(cursor, "auto_vacuum") != INCREMENTAL:
        return 0
    size = _number(cursor, "page_size")
    pages = min(limit // size, _number(cursor, "freelist_count") - RESERVE_BYTES // size)
    if pages <= 0:
        return 0
    cursor.execute(f"PRAGMA incremental_vacuum({pages})").fetchall()
    return pages * size


def keeps_account(path: Path) -> bool:
    """Whether `release` works on *path*. Raises `StoreUnavailable`."""
    with unavailable_on_error(), closing(connect(path, "ro")) as connection:
        return _number(connection.cursor(), "auto_vacuum") == INCREMENTAL


def write_anew(path: Path, within_s: float | None = None) -> bool:
    """
    Write *path* anew without unused pages, so that it keeps account of them from now on. Writers
    wait meanwhile; what takes longer than *within_s* is given up and leaves no trace: False.

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


def carry_over(path: Path) -> None:
    """Bring the log into the file, as far as nobody still reads it: only then the file shrinks."""
    with unavailable_on_error(), closing(connect(path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(PASSIVE)")


def _number(cursor: Cursor, name: str) -> int:
    return int(cursor.execute(f"PRAGMA {name}").fetchone()[0])
