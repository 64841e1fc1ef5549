"""
The one thread that writes: group commit.

Durable before answered means a disk flush before every 202, and a flush per request would cap the
server at the disk's latency. So no unit opens a transaction: a unit of work collects its writes and
hands them over as one *job*, a function of a cursor. This thread takes every job that waits, runs
them in one `BEGIN IMMEDIATE` transaction, commits, and then wakes all the waiters. Decision 2.

**Optimistic first.** Usually no job fails, so `_together` runs the batch without savepoints, and
writes that several units make with the same statement become one statement with many rows
(`statements.perform_together`). If any job raises, the transaction is rolled back and `_apart` runs
each job in a savepoint of its own, so that only the loser of a race fails. A job may therefore run
twice, and must only use its cursor.

**Waiting for more jobs.** A thread that starts with the first job fights with the event loop for
the interpreter's lock and flushes more often. `Batcher` holds jobs back until a few turns of the
event loop have brought nothing more; a lone request is not noticeably slower. Decision 2.

**Commits are numbered.** Every commit that changed something increments one row (`BEAT`), in the
same transaction. The read cache compares that number with its own, and `Committed` is called, in
the event loop and before any waiter wakes, with the units of the batch; see `reads`.

**What may go wrong.** `UniqueTaken` is a lost race (`Stale`). `BadJob` is a value that SQLite
refuses, and concerns only the job with that value. Any other driver error concerns the database:
the whole batch fails with `StoreUnavailable` and the connection is opened anew. The cancellation of
a waiter changes nothing: its job is done as a whole or not at all. An unexpected exception must
reach its waiter and leave the thread alive, or every later write would hang.

**Locks are never waited for in the event loop.** Another process may hold the write lock; then this
thread waits, for `BUSY_S` once and only briefly after that, so that requests get their 503 soon.
"""

import asyncio
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import groupby
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from time import monotonic, sleep
from typing import Any, TypeVar, cast

from attrs import frozen

from adapters_store.sqlite.batcher import Batcher
from adapters_store.sqlite.connection import (
    BUSY_S,
    BadJob,
    Connection,
    Cursor,
    DriverError,
    UniqueTaken,
    close_quietly,
    connect_writer,
    detail_of,
    is_locked,
    never_wait,
)
from adapters_store.sqlite.database_file import LOG, NOTE
from adapters_store.sqlite.statements import Writes, perform_together
from wfcore.errors import Stale, StoreClosed, StoreDisplaced, StoreUnavailable

T = TypeVar("T")
Job = Callable[[Cursor], T]
"""
A function of a cursor. If the function has a method `written`, that method turns the result into
the writes of an equal unit.
"""

BATCH = 512
"""The number of jobs at which a batch is full, so that the first waiter is not delayed too long."""
SHORTLY_S = 0.25
"""The seconds to wait for the lock after a wait of `BUSY_S` was in vain."""
NAP_S, LONGEST_NAP_S = 0.0003, 0.005
"""
The pauses in seconds between two attempts to take the lock: a commit takes about a millisecond.
"""
QUIET_TURNS = 3
"""The turns of the event loop after which no further job of the same requests is expected."""


Waiting = tuple[Job[Any], "asyncio.Future[Any]"]
"""A job and the future that waits for it."""

End = tuple["asyncio.Future[Any]", Any, BaseException | None]
"""The end of a job: its future, and its value or its error."""

BEAT = "UPDATE pulse SET beats = beats + 1 RETURNING beats"
"""The statement that numbers the commits of all processes."""

Committed = Callable[[int, Sequence[Writes], bool], None]
"""
A function that is called with the number of a commit, its units, and whether nothing else was
written.
"""


Identity = tuple[int, int]
"""The device and the inode of a file."""


class DatabaseFile:
    """
    The file of an open store, which must stay at its path: see `database_file`. Only the thread of
    the writer calls `note`.
    """

    def __init__(self, path: Path) -> None:
        """*path* must exist. Raises `StoreUnavailable`."""
        self.path = path
        self._identity = _identity(path)
        self._log_path, self._note_path = (path.with_name(path.name + tail) for tail in (LOG, NOTE))
        self._log: Identity | None = None
        self._note: int | None = None

    def require_in_place(self) -> None:
        """Raises `StoreDisplaced` if the path leads to no file or to a different file."""
        if _identity(self.path) != self._identity:
            raise StoreDisplaced(detail=f"{self.path.name} was removed or replaced")
        if self._log is not None and _identity(self._log_path) != self._log:
            raise StoreDisplaced(detail=f"{self.path.name}{LOG} was removed or replaced")

    def hold_log(self) -> None:
        """
        Require from now on that the log stays the same file, because a connection has it open.
        """
        self._log = _identity(self._log_path)

    def let_log_go(self) -> None:
        """
        Require nothing of the log: the last connection may remove the log, and the next connection
        creates another.
        """
        self._log = None

    def note(self, commit: int) -> None:
        """
        Note the number of a durable commit. The note may lag behind the commits, but is never
        ahead.

        The note is not flushed. After a power cut it lags by the notes that the system had not
        written, after a kill by one commit. A commit is valid without its note.
        """
        with suppress(OSError):
            if self._note is None:
                flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
                self._note = os.open(self._note_path, flags, 0o600)
            os.pwrite(self._note, b"%020d %020d\n" % (commit, commit), 0)

    def close(self) -> None:
        """Close the note."""
        if self._note is not None:
            os.close(self._note)
            self._note = None


def _identity(path: Path) -> Identity | None:
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StoreUnavailable(detail=str(error)) from error
    return found.st_dev, found.st_ino


class JobFailed(Exception):
    """Raised if a job of a batch failed: each job has to run separately."""

    def __init__(self, cause: BaseException) -> None:
        super().__init__(cause)
        self.cause = cause


class Writer:
    """
    Group commit on one database file. Belongs to the event loop that started the writer; in that
    loop *committed* is called before the waiters learn of the commit.
    """

    def __init__(self, file: DatabaseFile, committed: Committed = lambda *_: None) -> None:
        self._file = file
        self._committed = committed
        self._loop = asyncio.get_running_loop()
        self._queue: SimpleQueue[list[Waiting] | None] = SimpleQueue()
        self._gathering = Batcher[Waiting](self._queue.put, QUIET_TURNS)
        self._connection: Connection | None = None
        self._locked_since: float | None = None
        self._closed = False
        self._thread = Thread(target=self._work, name="wfcore-writer", daemon=True)
        self._thread.start()

    def submit(self, job: Job[T]) -> asyncio.Future[T]:
        """Submit *job*; the future resolves when its effect is durable."""
        future: asyncio.Future[T] = self._loop.create_future()
        if self._closed:
            future.set_exception(StoreClosed())
            return future
        self._gathering.add((job, future))
        return future

    async def close(self) -> None:
        """Do every submitted job, then end the thread."""
        if not self._closed:
            self._closed = True
            self._gathering.flush()
            self._queue.put(None)
        await asyncio.to_thread(self._thread.join)

    def _work(self) -> None:
        going = True
        while going:
            batch, going = self._next_batch()
            if batch:
                done = self._carry_out(batch)
                self._report(done)
                if done.beat is not None:
                    self._file.note(done.beat)
        self._drop_connection()
        self._file.close()

    def _next_batch(self) -> tuple[list[Waiting], bool]:
        """All waiting jobs, and whether more may come."""
        batch: list[Waiting] = []
        while True:
            jobs = self._queue.get()
            if jobs is None:
                return batch, False
            batch += jobs
            if len(batch) >= BATCH or self._queue.empty():
                return batch, True

    def _report(self, done: "Done") -> None:
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._resolve, done)

    def _resolve(self, done: "Done") -> None:
        """Wake every waiter that was not cancelled."""
        try:
            if done.beat is not None:
                self._committed(done.beat, done.units, done.complete)
        finally:
            for future, value, error in done.ends:
                if future.done():
                    continue
                if error is None:
                    future.set_result(value)
                else:
                    future.set_exception(error)

    def _carry_out(self, batch: Sequence[Waiting]) -> "Done":
        """
        Do *batch* in one transaction; after an error of the database, no job of the batch is
        stored.
        """
        began = monotonic()
        try:
            self._file.require_in_place()
            cursor = self._cursor()
            try:
                done = _together(cursor, batch, self._patience_s())
            except JobFailed:
                cursor.execute("ROLLBACK")
                done = _apart(cursor, batch, self._patience_s())
            if self._locked_since is not None:
                self._locked_since = None
                self._drop_connection()
            return done
        except StoreDisplaced as error:  # the connection stays: the file may be put back
            return Done([(future, None, error) for _, future in batch])
        except Exception as error:  # whatever it is, nobody may wait for ever: the thread lives on
            self._drop_connection()
            if is_locked(error) and self._locked_since is None:
                self._locked_since = began
            unavailable = StoreUnavailable(detail=detail_of(error))
            return Done([(future, None, unavailable) for _, future in batch])

    def _cursor(self) -> Cursor:
        if self._connection is None:
            fresh = connect_writer(self._file.path, self._patience_s())
            try:
                self._file.require_in_place()
                self._file.hold_log()
            except StoreUnavailable:
                close_quietly(fresh)
                raise
            self._connection = never_wait(fresh)
        return self._connection.cursor()

    def _patience_s(self) -> float:
        """
        The seconds to wait for the lock. All waits together take `BUSY_S`: jobs that arrived while
        other jobs waited, and the next commits of a request, wait only for the remaining time.
        """
        if self._locked_since is None:
            return BUSY_S
        return max(SHORTLY_S, BUSY_S - (monotonic() - self._locked_since))

    def _drop_connection(self) -> None:
        """Close the connection; the next batch opens a new connection."""
        if self._connection is not None:
            self._file.let_log_go()
            close_quietly(self._connection)
            self._connection = None


@frozen
class Done:
    """
    The ends of the jobs of a batch; for the other fields see `Committed`. Without a number
    (`beat`), nothing was committed.
    """

    ends: Sequence[End]
    beat: int | None = None
    units: Sequence[Writes] = ()
    complete: bool = False


def _commit(cursor: Cursor, changes: int) -> int | None:
    """
    Commit, and return the number of the commit; None if no row was changed, so that nothing is
    flushed.
    """
    beat: int | None = None
    if cursor.connection.total_changes != changes:
        beat = cursor.execute(BEAT).fetchone()[0]
    cursor.execute("COMMIT")
    return beat


def _begin(cursor: Cursor, patience_s: float) -> None:
    """
    Take the write lock. SQLite itself would pause longer and longer between two attempts, up to 100
    ms; but another process that commits all the time releases the lock only for a moment after each
    commit.
    """
    until, nap_s = monotonic() + patience_s, NAP_S
    while True:
        try:
            cursor.execute("BEGIN IMMEDIATE")
            return
        except DriverError as error:
            if not is_locked(error) or monotonic() >= until:
                raise
        sleep(nap_s)
        nap_s = min(nap_s * 1.5, LONGEST_NAP_S)


def _together(cursor: Cursor, batch: Sequence[Waiting], patience_s: float) -> Done:
    """Do a batch without savepoints, in the usual case that no job fails."""
    changes = cursor.connection.total_changes
    _begin(cursor, patience_s)
    ends: list[End] = []
    units: list[Writes] = []
    complete = True
    with _failing():
        for are_units, group in groupby(batch, key=_is_unit):
            some = list(group)
            if are_units:
                jobs = [cast("Writes", job) for job, _ in some]
                complete = perform_together(cursor, jobs) and complete
                units += jobs
                ends += [(future, None, None) for _, future in some]
                continue
            for job, future in some:
                ends.append((future, value := job(cursor), None))
                written = getattr(job, "written", None)
                complete = complete and written is not None
                units += [written(value)] if written else []
    return Done(ends, _commit(cursor, changes), units, complete)


def _is_unit(waiting: Waiting) -> bool:
    return isinstance(waiting[0], Writes)


def _apart(cursor: Cursor, batch: Sequence[Waiting], patience_s: float) -> Done:
    """
    Do a batch in which some job fails: each job has a savepoint, so that only its own work is
    undone.
    """
    changes = cursor.connection.total_changes
    _begin(cursor, patience_s)
    ends = [_apart_from_others(cursor, waiting) for waiting in batch]
    return Done(ends, _commit(cursor, changes))


def _apart_from_others(cursor: Cursor, waiting: Waiting) -> End:
    job, future = waiting
    cursor.execute("SAVEPOINT job")
    try:
        with _failing():
            end: End = (future, job(cursor), None)
    except JobFailed as failed:
        cursor.execute("ROLLBACK TO job")
        end = (future, None, failed.cause)
    cursor.execute("RELEASE job")
    return end


@contextmanager
def _failing() -> Iterator[None]:
    """
    A context that turns errors of a job into `JobFailed`, and leaves errors of the database as they
    are.
    """
    try:
        yield
    except UniqueTaken as error:
        raise JobFailed(Stale(kind=str(error))) from error
    except BadJob as error:
        raise JobFailed(StoreUnavailable(detail=detail_of(error))) from error
    except DriverError:
        raise
    except Exception as error:  # Stale or a bug: goes to the waiter, the thread must live on
        raise JobFailed(error) from error
