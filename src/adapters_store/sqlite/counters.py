"""
Quota counters in a file of their own, exact across processes and restarts.

The counters are not in the store's file: they change with every request, and a power cut may lose
their last changes without harm, while the store's commits must survive a power cut.

The event loop never waits for the file's lock: if another process holds the lock, a thread waits,
and requests that arrive meanwhile are counted together afterwards. While the file cannot be written
(disk full, read-only, locked for long), this process counts in memory on top of the file's counts,
and adds the counts in memory to the file as soon as possible.
"""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from functools import partial
from operator import add
from pathlib import Path
from typing import cast

from attrs import define

from adapters_store.private_folder import alone
from adapters_store.sqlite.batcher import Batcher
from adapters_store.sqlite.connection import (
    Connection,
    DriverError,
    close_quietly,
    connect_counters,
    create_private,
    detail_of,
    is_locked,
    never_wait,
    speaks_of_damage,
)
from wfcore.errors import StoreUnavailable
from wfcore.model.access import Admission, Window
from wfcore.rules.auth.rate_limit import KEPT_LONGER, Count, Ledger, full_of
from wfcore.time import SECOND, EpochMs

TRIMMED_AT_ONCE = 1_000
APPLICATION_ID = 0x77666363
"""`wfcc`: marks a file of counts as ours."""

SCHEMA = """CREATE TABLE IF NOT EXISTS counts (
    subject TEXT NOT NULL,
    kind TEXT NOT NULL,
    begins INTEGER NOT NULL,
    ends INTEGER NOT NULL,
    admitted INTEGER NOT NULL,
    last_at INTEGER NOT NULL,
    PRIMARY KEY (subject, kind, begins)
) WITHOUT ROWID"""
BY_END = "CREATE INDEX IF NOT EXISTS counts_by_end ON counts (ends)"

LAST_USED = "SELECT max(last_at) FROM counts WHERE subject = ?"
LOOK = "SELECT admitted, ends FROM counts WHERE subject = ? AND kind = ? AND begins = ?"
TRIM = """DELETE FROM counts WHERE (subject, kind, begins) IN
    (SELECT subject, kind, begins FROM counts
    WHERE ends < ? AND (kind <> 'day' OR ends < ?) LIMIT ?)"""
ADD = """INSERT INTO counts (subject, kind, begins, ends, admitted, last_at)
    VALUES (?, ?, ?, ?, ?, ?)
    ON CONFLICT (subject, kind, begins) DO UPDATE SET admitted = admitted + excluded.admitted,
    last_at = max(last_at, excluded.last_at) RETURNING admitted"""
CountRequest = tuple[str, Sequence[Window], EpochMs]
"""A request to count: the subject, the windows, and the instant."""

Key = tuple[str, str, int]
"""The subject, kind and begin of a window."""


@define(eq=False)
class Counts:
    """
    The counts in a file. Every method raises `DriverError`; after the error nothing has changed.
    """

    connection: Connection

    def take_all(self, requests: Sequence[CountRequest]) -> list[Admission]:
        """
        Count each request in all of its windows or in none, in order.

        First all requests are counted as if no window were full. If a window then has more than it
        admits, all counts are undone, and each request is counted after a read of its windows.
        """
        with self._writing():
            self.connection.execute("SAVEPOINT added")
            taken = [Admission((), self._add(*request)) for request in requests]
            if any(map(_is_over, requests, taken)):
                self.connection.execute("ROLLBACK TO added")
                taken = [self._take(*request) for request in requests]
        return taken

    def _take(self, subject: str, windows: Sequence[Window], now: EpochMs) -> Admission:
        counts = self.peek_counts(subject, windows)
        full = full_of(windows, counts)
        return Admission(full, counts) if full else Admission((), self._add(subject, windows, now))

    def _add(self, subject: str, windows: Sequence[Window], now: EpochMs) -> tuple[int, ...]:
        """Count one admission in each window; returns the new number of each window."""
        return tuple([self._added(subject, w.kind, w.start, w.end, 1, now) for w in windows])

    def _added(self, *row: str | int) -> int:
        return cast("int", self.connection.execute(ADD, row).fetchone()[0])

    def peek_counts(self, subject: str, windows: Sequence[Window]) -> tuple[int, ...]:
        """The number that each window has admitted."""
        return tuple(self._read((subject, one.kind, one.start)).admitted for one in windows)

    def add(self, counts: Mapping[Key, Count], used: Mapping[str, EpochMs]) -> None:
        """
        Add counts that were kept in memory; *used*: the instant at which each subject was last
        admitted.
        """
        with self._writing():
            for key, one in counts.items():
                self._added(*key, one.end, one.admitted, used[key[0]])

    def last_used(self, subject: str) -> EpochMs | None:
        """The instant at which *subject* was last admitted."""
        found = self.connection.execute(LAST_USED, (subject,)).fetchone()[0]
        return None if found is None else EpochMs(found)

    def trim(self, before: EpochMs, limit: int) -> int:
        """
        Delete up to *limit* windows that ended before *before*; returns the number of deleted
        windows.
        """
        long_before = before - KEPT_LONGER["day"]
        return self.connection.execute(TRIM, (before, long_before, limit)).rowcount

    def _read(self, key: Key) -> Count:
        found = self.connection.execute(LOOK, key).fetchone()
        return Count(0, EpochMs(0)) if found is None else Count(*found)

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """A context that is one transaction."""
        self.connection.execute("BEGIN IMMEDIATE")
        try:
            yield
            self.connection.execute("COMMIT")
        except BaseException:
            if self.connection.in_transaction:
                self.connection.execute("ROLLBACK")
            raise


def _is_over(request: CountRequest, taken: Admission) -> bool:
    """Whether a window now has more than it admits."""
    for window, count in zip(request[1], taken.counts, strict=True):
        if window.limit is not None and count > window.limit:
            return True
    return False


def open_counts(path: Path) -> tuple[Connection, Path | None]:
    """
    Open *path*; a missing file is created. A file that is damaged or not ours is renamed, and a new
    file is created; the second value is the new path of the renamed file. Raises `DriverError`,
    `OSError`.
    """
    with alone(path.parent):
        if not _is_sound(path):
            aside = _move_aside(path)
            return _open(path), aside
        return _open(path), None


def _open(path: Path) -> Connection:
    create_private(path)
    connection = connect_counters(path)
    try:
        if not _is_ours(connection):
            connection.execute("BEGIN IMMEDIATE")
            connection.execute(SCHEMA)
            connection.execute(BY_END)
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            connection.execute("COMMIT")
        return never_wait(connection)
    except DriverError:
        connection.close()
        raise


def _is_sound(path: Path) -> bool:
    """
    Whether *path* is missing, empty, or a file of ours without damage. Raises `DriverError` for a
    temporary condition, such as a lock.
    """
    if not path.exists() or not path.stat().st_size:
        return True
    try:
        with closing(connect_counters(path)) as connection:
            return _is_ours(connection)
    except DriverError as error:
        if not speaks_of_damage(error):
            raise
        return False


def _is_ours(connection: Connection) -> bool:
    """Whether the file has our mark and a readable schema; the counts themselves are not read."""
    owner = connection.execute("PRAGMA application_id").fetchone()[0]
    connection.execute("SELECT 1 FROM sqlite_schema").fetchall()
    return bool(owner == APPLICATION_ID)


def _move_aside(path: Path) -> Path:
    aside = path.with_name(path.name + ".damaged")
    for tail in ("", "-wal", "-shm"):
        with suppress(FileNotFoundError):
            path.with_name(path.name + tail).replace(aside.with_name(aside.name + tail))
    return aside


Waiting = tuple[CountRequest, "asyncio.Future[Admission]"]
"""A request, and the future that waits for its answer."""


class SqliteCounters:
    """
    Implements `wfcore.ports.counters.Counters` on one file. Created by `SqliteCounters.open`.

    `damaged`: the path to which a damaged file was moved at the start; None without a damaged file.
    """

    def __init__(self, path: Path) -> None:
        """Open *path*. Raises `StoreUnavailable`."""
        try:
            connection, aside = open_counts(path)
        except (DriverError, OSError) as error:
            raise StoreUnavailable(detail=detail_of(error)) from error
        self.damaged = None if aside is None else str(aside)
        self._path = path
        self._counts = Counts(connection)
        self._thread: asyncio.Future[list[Admission]] | None = None
        self._later: list[Waiting] = []
        self._aside: dict[Key, Count] = {}
        self._used: dict[str, EpochMs] = {}
        self._failed_at: EpochMs | None = None
        self._gathering = Batcher[Waiting](self._answer, quiet_turns=1)

    @classmethod
    async def open(cls, path: Path) -> "SqliteCounters":
        """Open *path*; a missing file is created. Raises `StoreUnavailable`."""
        return await asyncio.to_thread(cls, path)

    async def take(self, subject: str, windows: tuple[Window, ...], now: EpochMs) -> Admission:
        """
        Count one admission in every window, or in none.

        Requests that arrive at about the same time share one short transaction, in the event loop
        unless the file is locked.
        """
        answer: asyncio.Future[Admission] = asyncio.get_running_loop().create_future()
        self._gathering.add(((subject, windows, now), answer))
        return await answer

    async def peek_counts(self, subject: str, windows: tuple[Window, ...]) -> tuple[int, ...]:
        """The number that each window has admitted. Raises `StoreUnavailable`."""
        try:
            filed = self._counts.peek_counts(subject, windows)
        except DriverError as error:
            raise StoreUnavailable(detail=detail_of(error)) from error
        aside = Ledger(self._aside).peek_counts(subject, windows)
        return tuple(map(add, filed, aside))

    async def last_used(self, subject: str) -> EpochMs | None:
        """The instant at which *subject* was last admitted."""
        aside = self._used.get(subject)
        try:
            filed = self._counts.last_used(subject)
        except DriverError:
            return aside
        return max((at for at in (filed, aside) if at is not None), default=None)

    async def trim(self, before: EpochMs) -> None:
        """Delete windows that ended before *before*. Raises `StoreUnavailable`."""
        if self._thread is None:
            Ledger(self._aside).trim(before)
        try:
            await asyncio.to_thread(self._trim, before)
        except DriverError as error:
            raise StoreUnavailable(detail=detail_of(error)) from error

    def _trim(self, before: EpochMs) -> None:
        """
        Delete windows in a thread, some rows at a time, so that the event loop finds the lock free
        in between.
        """
        gone = TRIMMED_AT_ONCE
        with closing(connect_counters(self._path)) as connection:
            while gone == TRIMMED_AT_ONCE:
                gone = Counts(connection).trim(before, TRIMMED_AT_ONCE)

    async def close(self) -> None:
        """Count all waiting requests, then close the file."""
        self._gathering.flush()
        while self._thread is not None:
            await asyncio.wait((self._thread,))
        close_quietly(self._counts.connection)

    def _answer(self, requests: Sequence[Waiting]) -> None:
        if self._thread is not None:
            self._later += requests
            return
        try:
            taken = self._count(_requests_of(requests), self._counts)
        except Exception as error:
            if is_locked(error):
                self._wait_aside(requests)
            else:
                self._settle(requests, error)
            return
        _resolve(requests, taken)

    def _wait_aside(self, requests: Sequence[Waiting]) -> None:
        """
        Let a thread wait for the lock. Until the thread has ended, this event loop counts nothing.
        """
        loop = asyncio.get_running_loop()
        self._thread = loop.run_in_executor(None, self._count_patiently, _requests_of(requests))
        self._thread.add_done_callback(partial(self._waited, requests))

    def _count_patiently(self, requests: Sequence[CountRequest]) -> list[Admission]:
        with closing(connect_counters(self._path)) as connection:
            return self._count(requests, Counts(connection))

    def _waited(
        self, requests: Sequence[Waiting], thread: "asyncio.Future[list[Admission]]"
    ) -> None:
        self._thread = None
        if (error := thread.exception()) is None:
            _resolve(requests, thread.result())
        else:
            self._settle(requests, error)
        if self._later:
            later, self._later = self._later, []
            self._answer(later)

    def _settle(self, requests: Sequence[Waiting], error: BaseException) -> None:
        """
        Count in memory the requests that the file did not accept; after a defect every waiter gets
        the error.
        """
        if isinstance(error, DriverError):
            self._failed_at = requests[-1][0][2]
            _resolve(requests, [self._take_aside(*one) for one in _requests_of(requests)])
            return
        for _, answer in requests:
            if not answer.done():
                answer.set_exception(error)

    def _count(self, requests: Sequence[CountRequest], counts: Counts) -> list[Admission]:
        """Count in the file, or in memory if the file failed a moment ago. Raises `DriverError`."""
        if self._rests(requests[-1][2]):
            return [self._take_aside(*one) for one in requests]
        self._bring_back(counts)
        return counts.take_all(requests)

    def _rests(self, now: EpochMs) -> bool:
        """
        Whether the file failed a moment ago: a try for each request would block the event loop.
        """
        return self._failed_at is not None and 0 <= now - self._failed_at < SECOND

    def _count_of(self, subject: str, windows: Sequence[Window]) -> tuple[int, ...]:
        """The counts in the file, if it can be read, plus the counts in memory."""
        try:
            filed = self._counts.peek_counts(subject, windows)
        except DriverError:
            filed = (0,) * len(windows)
        return tuple(map(add, filed, Ledger(self._aside).peek_counts(subject, windows)))

    def _take_aside(self, subject: str, windows: Sequence[Window], now: EpochMs) -> Admission:
        counts = self._count_of(subject, windows)
        if full := full_of(windows, counts):
            return Admission(full, counts)
        for window in windows:
            key = (subject, window.kind, window.start)
            known = self._aside.get(key, Count(0, window.end))
            self._aside[key] = Count(known.admitted + 1, window.end)
        self._used[subject] = now
        return Admission((), tuple(count + 1 for count in counts))

    def _bring_back(self, counts: Counts) -> None:
        """Write all counts in memory to the file, in one transaction."""
        if self._aside:
            counts.add(self._aside, self._used)
            self._aside.clear()
            self._used.clear()
        self._failed_at = None


def _requests_of(requests: Sequence[Waiting]) -> list[CountRequest]:
    return [one for one, _ in requests]


def _resolve(requests: Sequence[Waiting], taken: Sequence[Admission]) -> None:
    for (_, answer), one in zip(requests, taken, strict=True):
        if not answer.done():
            answer.set_result(one)
