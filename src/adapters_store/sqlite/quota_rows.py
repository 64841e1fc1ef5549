"""Quota counts as rows: read, counted and written in one transaction."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from attrs import define, field

from adapters_store.private_folder import alone
from adapters_store.sqlite.connection import (
    Connection,
    DriverError,
    connect_counters,
    create_private,
    never_wait,
    speaks_of_damage,
)
from adapters_store.sqlite.statements import Rows
from wfcore.memory.counters import Count, Ledger
from wfcore.ports.counters import Taken, Window
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
    (SELECT subject, kind, begins FROM counts WHERE ends < ? LIMIT ?)"""
ADD = """INSERT INTO counts (subject, kind, begins, ends, admitted, last_at)
    VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (subject, kind, begins)
    DO UPDATE SET admitted = admitted + excluded.admitted,
    last_at = max(last_at, excluded.last_at)"""
SET = Rows(
    "INSERT OR FAIL INTO counts (subject, kind, begins, ends, admitted, last_at) VALUES ",
    "(?, ?, ?, ?, ?, ?)",
    """ ON CONFLICT (subject, kind, begins)
    DO UPDATE SET admitted = excluded.admitted, last_at = excluded.last_at""",
)
MOST_KNOWN = 10_000

Asked = tuple[str, Sequence[Window], EpochMs]
"""Who asks to be counted, in which windows, and when."""

Key = tuple[str, str, int]
"""Subject, kind and begin of a window."""


@define(eq=False)
class Counts:
    """
    The counts of a file, remembered as long as no other process has written to it.

    Every method raises `DriverError`; then nothing was changed.
    """

    connection: Connection
    _known: Ledger = field(factory=Ledger)
    _version: int = -1

    def take_all(self, asked: Sequence[Asked]) -> list[Taken]:
        """Count each of *asked* in every of its windows or in none, in order."""
        with self._writing():
            self._remember(asked)
            taken = [self._known.take(subject, windows) for subject, windows, _ in asked]
            rows = dict(_rows(asked, taken))
            for sql, values in SET.chunks(list(rows.values())):
                self.connection.execute(sql, values)
        return taken

    def look(self, subject: str, windows: Sequence[Window]) -> tuple[int, ...]:
        """What each window has admitted."""
        return tuple(self._read((subject, one.kind, one.start)).admitted for one in windows)

    def add(self, counts: Mapping[Key, Count], used: Mapping[str, EpochMs]) -> None:
        """Add what was counted elsewhere, by subjects that were last admitted as *used* says."""
        rows = [(*key, one.end, one.admitted, used[key[0]]) for key, one in counts.items()]
        with self._writing():
            self._known.counts.clear()
            self.connection.executemany(ADD, rows)

    def last_used(self, subject: str) -> EpochMs | None:
        """When *subject* was last admitted."""
        found = self.connection.execute(LAST_USED, (subject,)).fetchone()[0]
        return None if found is None else EpochMs(found)

    def trim(self, before: EpochMs, limit: int) -> int:
        """Forget up to *limit* windows that ended before *before*; how many went."""
        self._known.trim(before)
        return self.connection.execute(TRIM, (before, limit)).rowcount

    def _remember(self, asked: Sequence[Asked]) -> None:
        """Read what is not known, or may be another by now."""
        version = self.connection.execute("PRAGMA data_version").fetchone()[0]
        known = self._known.counts
        if version != self._version or len(known) > MOST_KNOWN:
            known.clear()
        self._version = version
        for subject, windows, _ in asked:
            for one in windows:
                key = (subject, one.kind, one.start)
                if key not in known:
                    known[key] = self._read(key)

    def _read(self, key: Key) -> Count:
        found = self.connection.execute(LOOK, key).fetchone()
        return Count(0, EpochMs(0)) if found is None else Count(*found)

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """A transaction. Where it fails, what is known may be more than what is stored."""
        self.connection.execute("BEGIN IMMEDIATE")
        try:
            yield
            self.connection.execute("COMMIT")
        except BaseException:
            self._known.counts.clear()
            if self.connection.in_transaction:
                self.connection.execute("ROLLBACK")
            raise


def _rows(
    asked: Sequence[Asked], taken: Sequence[Taken]
) -> Iterator[tuple[Key, tuple[object, ...]]]:
    """The windows that changed, and how each stands as a row; the last one of a window counts."""
    for (subject, windows, now), answer in zip(asked, taken, strict=True):
        if answer.admitted:
            for one, count in zip(windows, answer.counts, strict=True):
                key = (subject, one.kind, one.start)
                yield key, (*key, one.end, count, now)


def open_counts(path: Path) -> tuple[Connection, Path | None]:
    """
    Open *path*, made as needed. A file that is damaged or none of ours is renamed and a new one
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
    """Raises `DriverError` for what may pass, such as a lock."""
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
    """Whether it bears our mark and its schema can be read: counts themselves are not read."""
    owner = connection.execute("PRAGMA application_id").fetchone()[0]
    connection.execute("SELECT 1 FROM sqlite_schema").fetchall()
    return bool(owner == APPLICATION_ID)


def _move_aside(path: Path) -> Path:
    aside = path.with_name(path.name + ".damaged")
    for tail in ("", "-wal", "-shm"):
        with suppress(FileNotFoundError):
            path.with_name(path.name + tail).replace(aside.with_name(aside.name + tail))
    return aside
