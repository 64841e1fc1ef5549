"""
The file of quota counters: its schema, its statements, and how it is opened. Decision 6.

Small transactions, each of which counts all of its requests or none.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from attrs import define

from adapters_store.private_folder import alone
from adapters_store.sqlite.connection import (
    Connection,
    DriverError,
    connect_counters,
    create_private,
    never_wait,
    speaks_of_damage,
)
from adapters_store.sqlite.statements import Rows, Values
from wfcore.ports.counters import Taken, Window
from wfcore.rules.auth.rate_limit import KEPT_LONGER, Count, Ledger
from wfcore.time import EpochMs

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
_ROW = (
    "INSERT OR FAIL INTO counts (subject, kind, begins, ends, admitted, last_at) VALUES ",
    "(?, ?, ?, ?, ?, ?)",
)
ADD = Rows(
    *_ROW,
    """ ON CONFLICT (subject, kind, begins) DO UPDATE SET admitted = admitted + excluded.admitted,
    last_at = max(last_at, excluded.last_at) RETURNING subject, kind, begins, admitted""",
)
SET = Rows(
    *_ROW,
    """ ON CONFLICT (subject, kind, begins)
    DO UPDATE SET admitted = excluded.admitted, last_at = excluded.last_at""",
)

Asked = tuple[str, Sequence[Window], EpochMs]
"""Who asks to be counted, in which windows, and when."""

Key = tuple[str, str, int]
"""Subject, kind and begin of a window."""


class _Full(Exception):
    """Some window admits no more."""


@define(eq=False)
class Counts:
    """The counts in a file. Every method raises `DriverError`; then nothing was changed."""

    connection: Connection

    def take_all(self, asked: Sequence[Asked]) -> list[Taken]:
        """
        Count each of *asked* in all of its windows or in none, in order.

        All are added first, by one statement that says what there is now; if that is more than some
        window admits, it is undone, and what there was is read.
        """
        try:
            with self._writing():
                return self._added(asked)
        except _Full:
            return self._weighed(asked)

    def _added(self, asked: Sequence[Asked]) -> list[Taken]:
        """Raises `_Full`."""
        rows: dict[Key, Values] = {}
        for subject, windows, now in asked:
            for one in windows:
                key = (subject, one.kind, one.start)
                known = rows.get(key)
                rows[key] = (*key, one.end, known[4] + 1 if known else 1, now)
        counts: dict[Key, Count] = {}
        for sql, values in ADD.chunks(list(rows.values())):
            for *found, admitted in self.connection.execute(sql, values).fetchall():
                _, _, _, end, more, _ = rows[key := (found[0], found[1], found[2])]
                counts[key] = Count(admitted - more, end)
        ledger = Ledger(counts)
        taken = [ledger.take(subject, windows) for subject, windows, _ in asked]
        if any(answer.full for answer in taken):
            raise _Full
        return taken

    def _weighed(self, asked: Sequence[Asked]) -> list[Taken]:
        with self._writing():
            ledger = self._ledger(asked)
            taken = [ledger.take(subject, windows) for subject, windows, _ in asked]
            rows = dict(_rows(asked, taken))
            for sql, values in SET.chunks(list(rows.values())):
                self.connection.execute(sql, values)
        return taken

    def look(self, subject: str, windows: Sequence[Window]) -> tuple[int, ...]:
        """What each window has admitted."""
        return tuple(self._read((subject, one.kind, one.start)).admitted for one in windows)

    def add(self, counts: Mapping[Key, Count], used: Mapping[str, EpochMs]) -> None:
        """Add what was counted elsewhere; *used* says when each subject was last admitted."""
        rows = [(*key, one.end, one.admitted, used[key[0]]) for key, one in counts.items()]
        with self._writing():
            for sql, values in ADD.chunks(rows):
                self.connection.execute(sql, values).fetchall()

    def last_used(self, subject: str) -> EpochMs | None:
        """When *subject* was last admitted."""
        found = self.connection.execute(LAST_USED, (subject,)).fetchone()[0]
        return None if found is None else EpochMs(found)

    def trim(self, before: EpochMs, limit: int) -> int:
        """Delete up to *limit* windows that ended before *before*; returns how many."""
        long_before = before - KEPT_LONGER["day"]
        return self.connection.execute(TRIM, (before, long_before, limit)).rowcount

    def _ledger(self, asked: Sequence[Asked]) -> Ledger:
        """What the windows of *asked* have admitted so far."""
        keys = {(subject, one.kind, one.start) for subject, windows, _ in asked for one in windows}
        return Ledger({key: self._read(key) for key in keys})

    def _read(self, key: Key) -> Count:
        found = self.connection.execute(LOOK, key).fetchone()
        return Count(0, EpochMs(0)) if found is None else Count(*found)

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """A transaction."""
        self.connection.execute("BEGIN IMMEDIATE")
        try:
            yield
            self.connection.execute("COMMIT")
        except BaseException:
            if self.connection.in_transaction:
                self.connection.execute("ROLLBACK")
            raise


def _rows(
    asked: Sequence[Asked], taken: Sequence[Taken]
) -> Iterator[tuple[Key, tuple[object, ...]]]:
    """The changed windows as rows; the last change of a window counts."""
    for (subject, windows, now), answer in zip(asked, taken, strict=True):
        if not answer.full:
            for one, count in zip(windows, answer.counts, strict=True):
                key = (subject, one.kind, one.start)
                yield key, (*key, one.end, count, now)


def open_counts(path: Path) -> tuple[Connection, Path | None]:
    """
    Open *path*, created if needed. A file that is damaged or not ours is renamed and a new one
    begun; the second value says where it went. Raises `DriverError`, `OSError`.
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
    """Raises `DriverError` for a temporary condition, such as a lock."""
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
    """Whether it has our mark and a readable schema; the counts themselves are not read."""
    owner = connection.execute("PRAGMA application_id").fetchone()[0]
    connection.execute("SELECT 1 FROM sqlite_schema").fetchall()
    return bool(owner == APPLICATION_ID)


def _move_aside(path: Path) -> Path:
    aside = path.with_name(path.name + ".damaged")
    for tail in ("", "-wal", "-shm"):
        with suppress(FileNotFoundError):
            path.with_name(path.name + tail).replace(aside.with_name(aside.name + tail))
    return aside
