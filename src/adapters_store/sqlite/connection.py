"""
The only module that knows the SQLite drivers: opening, pragmas, errors, copies.

This module neither reads nor closes a database file by hand: closing any descriptor of a file
releases the locks that SQLite holds on it in this process.
"""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TypeAlias
from urllib.parse import quote

import aiosqlite

from adapters_store.private_folder import flush_folder
from wfcore.errors import StoreUnavailable

Connection: TypeAlias = sqlite3.Connection
Cursor: TypeAlias = sqlite3.Cursor
AsyncConnection: TypeAlias = aiosqlite.Connection

DriverError = sqlite3.Error
UniqueTaken = sqlite3.IntegrityError
BadJob = (sqlite3.DataError, sqlite3.InterfaceError, sqlite3.ProgrammingError)
"""The errors of a statement or its values; they say nothing about the database."""

is_complete = sqlite3.complete_statement

STATEMENTS = 256
BUSY_S = 4.5
"""The most seconds that a thread waits for a lock: every caller has an answer within 5 s."""
NEVER_WAIT = "PRAGMA busy_timeout = 0"
"""The setting for the event loop, which waits for no lock: every request would wait with it."""
COUNTERS_BUSY_S = 1.0
"""The most seconds that a thread waits, before counts are kept in memory for a while."""


def uri_of(path: Path, mode: str) -> str:
    """The URI by which SQLite opens *path*."""
    return f"file:{quote(str(path.absolute()))}?mode={mode}"


def connect(path: Path, mode: str = "rw", busy_s: float = BUSY_S) -> Connection:
    """A connection without implicit transactions; any thread may use it, one thread at a time."""
    return sqlite3.connect(
        uri_of(path, mode),
        uri=True,
        timeout=busy_s,
        isolation_level=None,
        check_same_thread=False,
        cached_statements=STATEMENTS,
    )


def connect_writer(path: Path, busy_s: float = BUSY_S) -> Connection:
    """
    A connection whose commits survive a power cut; it waits up to *busy_s* for a lock.

    The log may grow to 16 MB before a checkpoint: a checkpoint takes two more flushes, which a busy
    writer should not do every few batches.
    """
    return _prepared(
        connect(path, busy_s=busy_s),
        "PRAGMA synchronous = FULL",
        "PRAGMA wal_autocheckpoint = 4000",
        "PRAGMA cache_size = -16000",
        "PRAGMA journal_size_limit = 67108864",
        "PRAGMA user_version",  # reading opens the log, which is to be known from now on
    )


def connect_reader(path: Path) -> Connection:
    """
    A read-only connection for short reads in the event loop; opened in a thread.

    The first read is done here: the first reader of a killed process's log recovers the log, and
    other readers wait for that. Readers wait for nothing else.
    """
    return _prepared(
        connect(path, "ro"),
        "PRAGMA cache_size = -16000",
        "PRAGMA user_version",
        NEVER_WAIT,
    )


def connect_counters(path: Path) -> Connection:
    """
    A connection whose commits survive the process, and a power cut except for the last moments.

    Small pages: a count changes a few bytes, and each commit writes whole pages. The log may grow
    to 8 MB before a checkpoint: a checkpoint flushes the disk while the event loop waits.
    """
    return _prepared(
        connect(path, busy_s=COUNTERS_BUSY_S),
        "PRAGMA page_size = 1024",
        "PRAGMA journal_mode = WAL",
        "PRAGMA synchronous = NORMAL",
        "PRAGMA wal_autocheckpoint = 8000",
    )


async def connect_async_reader(path: Path) -> AsyncConnection:
    """A read-only connection with a thread of its own, for lists and scans."""
    return await aiosqlite.connect(
        uri_of(path, "ro"),
        uri=True,
        timeout=BUSY_S,
        isolation_level=None,
        cached_statements=STATEMENTS,
    )


def _prepared(connection: Connection, *pragmas: str) -> Connection:
    try:
        for pragma in pragmas:
            connection.execute(pragma)
    except sqlite3.Error:
        connection.close()
        raise
    return connection


def is_no_text(error: BaseException) -> bool:
    """Whether the driver found text that is not UTF-8: damage to one row, not to the database."""
    return "decode to UTF-8" in str(error)


def text_or_bytes(stored: bytes) -> str | bytes:
    """
    The text factory of a connection that found invalid text: it returns bytes that are not UTF-8
    unchanged.
    """
    try:
        return stored.decode()
    except UnicodeDecodeError:
        return stored


@contextmanager
def unavailable_on_error() -> Iterator[None]:
    """Turn every error of the driver into `StoreUnavailable`."""
    try:
        yield
    except sqlite3.Error as error:
        raise StoreUnavailable(detail=detail_of(error)) from error


def detail_of(error: BaseException) -> str:
    """The part of a driver error that helps an operator; never stored content."""
    if is_no_text(error):
        return f"{type(error).__name__}: a text is not UTF-8"
    return f"{type(error).__name__}: {error}"


def speaks_of_damage(error: DriverError) -> bool:
    """Whether the error says that the file is no database, or an inconsistent database."""
    text = detail_of(error)
    signs = ("not a database", "malformed", "corrupt", "unsupported file format")
    return any(sign in text for sign in signs)


def never_wait(connection: Connection) -> Connection:
    """
    Make every lock of another connection an immediate error for *connection*; for the event loop.
    """
    connection.execute(NEVER_WAIT)
    return connection


def is_locked(error: BaseException | None) -> bool:
    """Whether another connection held a lock for too long."""
    code = getattr(error, "sqlite_errorcode", 0)
    return isinstance(error, sqlite3.Error) and code & 0xFF == sqlite3.SQLITE_BUSY


def close_quietly(connection: Connection) -> None:
    """Close a connection that may be broken."""
    try:
        connection.close()
    except sqlite3.Error:
        return


def create_private(path: Path) -> None:
    """Create an empty file that only its owner may read; an existing file stays as it is."""
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    except FileExistsError:
        return
    flush_folder(path.parent)


def copy_database(source: Path, target: Path) -> None:
    """
    Write a consistent copy of a live database to *target*, complete or not at all.

    Raises `StoreUnavailable`.
    """
    part = target.with_name(target.name + ".part")
    try:
        part.unlink(missing_ok=True)
        create_private(part)
        _copy(source, part)
        part.replace(target)
    except OSError as error:
        raise StoreUnavailable(detail=detail_of(error)) from error
    finally:
        part.unlink(missing_ok=True)


def _copy(source: Path, target: Path) -> None:
    with (
        unavailable_on_error(),
        closing(connect(source, "ro")) as live,
        closing(connect(target)) as copy,
    ):
        live.backup(copy)
