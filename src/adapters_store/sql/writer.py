"""
The one thread that writes: group commit.

A job is a function of a cursor. The thread takes all jobs that wait, runs them in one
transaction and flushes the disk once for all of them. A job that fails leaves no trace and
does not harm the others. A waiter that goes away changes nothing: its job is done or not done.
"""

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any, TypeVar

from attrs import field, frozen

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


@frozen(eq=False)
class Waiting:
    """A job and the future that waits for it."""

    job: Job[Any]
    future: asyncio.Future[Any]


@frozen(eq=False)
class End:
    """How a job ended: with *value*, or with *error*."""

    waiting: Waiting
    value: Any = None
    error: BaseException | None = None

    def tell(self) -> None:
        """Wake the waiter, if it still waits."""
        if self.waiting.future.done():
            return
        if self.error is None:
            self.waiting.future.set_result(self.value)
        else:
            self.waiting.future.set_exception(self.error)


@frozen(eq=False)
class Failed(Exception):
    """A job failed among others: run each of them apart."""

    cause: BaseException = field()


class Writer:
    """Group commit on one database file. Belongs to the event loop that started it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._loop = asyncio.get_running_loop()
        self._queue: SimpleQueue[Waiting | None] = SimpleQueue()
        self._connection: Connection | None = None
        self._closed = False
        self._thread = Thread(target=self._work, name="wfcore-writer", daemon=True)
        self._thread.start()

    def submit(self, job: Job[T]) -> asyncio.Future[T]:
        """Hand in *job*; the future resolves when its effect is durable."""
        future: asyncio.Future[T] = self._loop.create_future()
        if self._closed:
            future.set_exception(StoreUnavailable(detail="the store is closed"))
        else:
            self._queue.put(Waiting(job, future))
        return future

    async def close(self) -> None:
        """Do what was handed in, then end the thread."""
        if not self._closed:
            self._closed = True
            self._queue.put(None)
        await asyncio.to_thread(self._thread.join)

    def _work(self) -> None:
        going = True
        while going:
            batch = self._next_batch()
            going = None not in batch
            waiting = [item for item in batch if item is not None]
            if waiting:
                self._report(self._carry_out(waiting))
        self._drop_connection()

    def _next_batch(self) -> list[Waiting | None]:
        batch = [self._queue.get()]
        try:
            while len(batch) < BATCH:
                batch.append(self._queue.get_nowait())
        except Empty:
            pass
        return batch

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
                    return [End(batch[0], error=failed.cause)]
                return _apart(cursor, batch)
        except DriverError as error:
            self._drop_connection()
            unavailable = StoreUnavailable(detail=detail_of(error))
            return [End(waiting, error=unavailable) for waiting in batch]

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
    for end in ends:
        end.tell()


def _together(cursor: Cursor, batch: Sequence[Waiting]) -> list[End]:
    """The usual case: nobody fails, so nobody needs a savepoint."""
    cursor.execute("BEGIN IMMEDIATE")
    ends = [End(waiting, _run(cursor, waiting.job)) for waiting in batch]
    cursor.execute("COMMIT")
    return ends


def _apart(cursor: Cursor, batch: Sequence[Waiting]) -> list[End]:
    """Somebody fails: each job in a savepoint, so that only its own work is taken back."""
    cursor.execute("BEGIN IMMEDIATE")
    ends = [_apart_from_others(cursor, waiting) for waiting in batch]
    cursor.execute("COMMIT")
    return ends


def _apart_from_others(cursor: Cursor, waiting: Waiting) -> End:
    cursor.execute("SAVEPOINT job")
    try:
        end = End(waiting, _run(cursor, waiting.job))
    except Failed as failed:
        cursor.execute("ROLLBACK TO job")
        end = End(waiting, error=failed.cause)
    cursor.execute("RELEASE job")
    return end


def _run(cursor: Cursor, job: Job[T]) -> T:
    try:
        return job(cursor)
    except UniqueTaken as error:
        raise Failed(Stale(kind=str(error))) from error
    except BadJob as error:
        raise Failed(StoreUnavailable(detail=detail_of(error))) from error
    except DriverError:
        raise
    except Exception as error:  # Stale or a bug: goes to the waiter, the thread must live on
        raise Failed(error) from error
