"""
The one thread that writes: group commit.

A job is a function of a cursor. The thread takes all jobs that wait, runs them in one
transaction and flushes the disk once for all of them. A job that fails leaves no trace and
does not harm the others. A waiter that goes away changes nothing: its job is done or not done.
"""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from typing import Any, TypeVar

from adapters_store.sql.connection import (
    BadJob,
    Connection,
    Cursor,
    DriverError,
    UniqueTaken,
    close_quietly,
    connect_writer,
    detail_of,
)
from wfcore.errors import Stale, StoreUnavailable

T = TypeVar("T")
Job = Callable[[Cursor], T]

BATCH = 512
"""The most jobs of one transaction, so that the first waiter need not wait for ever."""


Waiting = tuple[Job[Any], "asyncio.Future[Any]"]
"""A job and the future that waits for it."""

End = tuple["asyncio.Future[Any]", Any, BaseException | None]
"""How a job ended: with a value, or with an error."""


class Failed(Exception):
    """A job failed among others: run each of them apart."""

    def __init__(self, cause: BaseException) -> None:
        super().__init__(cause)
        self.cause = cause


class Writer:
    """Group commit on one database file. Belongs to the event loop that started it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._loop = asyncio.get_running_loop()
        self._gathered: list[Waiting] = []
        self._queue: SimpleQueue[list[Waiting] | None] = SimpleQueue()
        self._connection: Connection | None = None
        self._closed = False
        self._thread = Thread(target=self._work, name="wfcore-writer", daemon=True)
        self._thread.start()

    def submit(self, job: Job[T]) -> asyncio.Future[T]:
        """Hand in *job*; the future resolves when its effect is durable."""
        future: asyncio.Future[T] = self._loop.create_future()
        if self._closed:
            future.set_exception(StoreUnavailable(detail="the store is closed"))
            return future
        if not self._gathered:
            self._loop.call_soon(self._hand_over)
        self._gathered.append((job, future))
        return future

    def _hand_over(self) -> None:
        """
        Give the thread what one turn of the event loop brought, at once.

        Handing over one by one would have both threads fight for the interpreter's lock.
        """
        if self._gathered:
            self._queue.put(self._gathered)
            self._gathered = []

    async def close(self) -> None:
        """Do what was handed in, then end the thread."""
        if not self._closed:
            self._closed = True
            self._hand_over()
            self._queue.put(None)
        await asyncio.to_thread(self._thread.join)

    def _work(self) -> None:
        going = True
        while going:
            batch, going = self._next_batch()
            if batch:
                self._report(self._carry_out(batch))
        self._drop_connection()

    def _next_batch(self) -> tuple[list[Waiting], bool]:
        """All jobs that wait, and whether more may come."""
        batch: list[Waiting] = []
        while True:
            jobs = self._queue.get()
            if jobs is None:
                return batch, False
            batch += jobs
            if len(batch) >= BATCH or self._queue.empty():
                return batch, True

    def _report(self, ends: Sequence[End]) -> None:
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(_tell, ends)

    def _carry_out(self, batch: Sequence[Waiting]) -> Sequence[End]:
        """One transaction; after an error of the database nothing of it is there."""
        try:
            cursor = self._cursor()
            try:
                return _together(cursor, batch)
            except Failed as failed:
                cursor.execute("ROLLBACK")
                if len(batch) == 1:
                    return [(batch[0][1], None, failed.cause)]
                return _apart(cursor, batch)
        except DriverError as error:
            self._drop_connection()
            unavailable = StoreUnavailable(detail=detail_of(error))
            return [(future, None, unavailable) for _, future in batch]

    def _cursor(self) -> Cursor:
        if self._connection is None:
            self._connection = connect_writer(self._path)
        return self._connection.cursor()

    def _drop_connection(self) -> None:
        """After an error the next batch starts with a fresh connection."""
        if self._connection is not None:
            close_quietly(self._connection)
            self._connection = None


def _tell(ends: Sequence[End]) -> None:
    """Wake everybody who still waits."""
    for future, value, error in ends:
        if future.done():
            continue
        if error is None:
            future.set_result(value)
        else:
            future.set_exception(error)


def _together(cursor: Cursor, batch: Sequence[Waiting]) -> list[End]:
    """The usual case: nobody fails, so nobody needs a savepoint."""
    cursor.execute("BEGIN IMMEDIATE")
    with _failing():
        ends: list[End] = [(future, job(cursor), None) for job, future in batch]
    cursor.execute("COMMIT")
    return ends


def _apart(cursor: Cursor, batch: Sequence[Waiting]) -> list[End]:
    """Somebody fails: each job in a savepoint, so that only its own work is taken back."""
    cursor.execute("BEGIN IMMEDIATE")
    ends = [_apart_from_others(cursor, waiting) for waiting in batch]
    cursor.execute("COMMIT")
    return ends


def _apart_from_others(cursor: Cursor, waiting: Waiting) -> End:
    job, future = waiting
    cursor.execute("SAVEPOINT job")
    try:
        with _failing():
            end: End = (future, job(cursor), None)
    except Failed as failed:
        cursor.execute("ROLLBACK TO job")
        end = (future, None, failed.cause)
    cursor.execute("RELEASE job")
    return end


@contextmanager
def _failing() -> Iterator[None]:
    """Tell what is wrong with a job (`Failed`) from what is wrong with the database."""
    try:
        yield
    except UniqueTaken as error:
        raise Failed(Stale(kind=str(error))) from error
    except BadJob as error:
        raise Failed(StoreUnavailable(detail=detail_of(error))) from error
    except DriverError:
        raise
    except Exception as error:  # Stale or a bug: goes to the waiter, the thread must live on
        raise Failed(error) from error
