"""
A store of your own on a database server, which many machines share across a network.

`wfcore.memory` brings records, races, claims and queries; a medium brings the rows. This one keeps
each row as JSON text in one table of PostgreSQL. A read is a transaction with one snapshot. A write
first locks the only row of the table `turn`: the writers of all machines take turns. Round trips
cost most, so one query loads a table of which all rows are wanted, and two write all changes.

    store = await open_store("postgresql://user@host/name")
"""

import asyncio
import json
import threading
import time
from collections.abc import Callable, Hashable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from hashlib import sha256
from typing import Any, TypeVar

import asyncpg

from wfcore import EpochMs, StoreUnavailable
from wfcore.memory import ROWS, Changes, MemoryStore
from wfcore.ports import decode_record, encode_record

R = TypeVar("R")
SCHEMA = """SELECT pg_advisory_xact_lock(20231114);
CREATE TABLE IF NOT EXISTS store_rows (
    kind text COLLATE "C", address text COLLATE "C", key text NOT NULL, row text NOT NULL,
    PRIMARY KEY (kind, address));
CREATE TABLE IF NOT EXISTS turn (id int PRIMARY KEY);
INSERT INTO turn VALUES (1) ON CONFLICT DO NOTHING
"""
READ = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
WRITE = "BEGIN ISOLATION LEVEL READ COMMITTED"
LOCK = "SELECT id FROM turn FOR UPDATE"
CLOCK = "SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint"
CLOCKS: dict[str, list[float]] = {}  # by server: how far ahead of ours its clock is, and last told
ONE = "SELECT key, row FROM store_rows WHERE kind = $1 AND address = $2"
ALL = "SELECT key, row FROM store_rows WHERE kind = $1"
DELETE = """DELETE FROM store_rows
WHERE (kind, address) IN (SELECT * FROM unnest($1::text[], $2::text[]))"""
PUT = """INSERT INTO store_rows SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::text[])
ON CONFLICT (kind, address) DO UPDATE SET row = excluded.row
"""
FAILURES = (asyncpg.PostgresError, asyncpg.InterfaceError, OSError)


class NetworkStore(MemoryStore):
    """Satisfies `wfcore.Store` over a `Database`. Open it with `open_store`."""

    def __init__(self, database: "Database") -> None:
        super().__init__(database.gate, database, now=database.now)
        self._database = database

    async def close(self) -> None:
        """Finish the steps that have begun, then close the connections. Safe to call twice."""
        await asyncio.to_thread(self._database.close)


async def open_store(url: str) -> NetworkStore:
    """The store in the database at *url*, whose tables are made if there are none."""
    try:
        connection = await asyncpg.connect(url)
        await connection.execute(SCHEMA)
        await connection.close()
    except FAILURES as error:
        raise StoreUnavailable(detail=f"database: {error!r}") from error
    database = Database(url)
    await database.gate("open", url, lambda: None, writes=True)
    return NetworkStore(database)


class Session:
    """A connection, the thread that waits for its answers, and the rows that a step has read."""

    def __init__(self, url: str) -> None:
        self.thread = ThreadPoolExecutor(1, "database")
        self.loaded: dict[str, dict[Hashable, Any]] = {}
        self._url = url
        self._loop = asyncio.new_event_loop()
        self._connection: Any = None

    def begin(self, sql: str) -> None:
        """Begin a step. Only here a connection is made: inside a step it would lose the lock."""
        self.loaded = {}
        if self._connection is None or self._connection.is_closed():
            connecting = asyncpg.connect(self._url, timeout=10)
            self._connection = self._loop.run_until_complete(connecting)
        self(sql)

    def __call__(self, sql: str, *values: Any) -> list[Any]:
        """The rows of one statement."""
        rows: list[Any] = self._loop.run_until_complete(self._connection.fetch(sql, *values))
        return rows

    def drop(self) -> None:
        """End the connection; the next step makes another."""
        if self._connection is not None:
            self._connection.terminate()
            self._connection = self._loop.run_until_complete(asyncio.sleep(0))

    def close(self) -> None:
        self.drop()
        self._loop.close()


class Database:
    """A `wfcore.memory.Medium` on a server, whose clock tells the time of all machines' leases."""

    def __init__(self, url: str) -> None:
        self._reader, self._writer = Session(url), Session(url)
        self._step = threading.local()
        self._clock = CLOCKS.setdefault(url, [0, 0])
        self._closed = False
        self.tables: Mapping[str, Table] = {name: Table(name, self.session) for name in ROWS}

    def session(self) -> Session:
        """The session of the step that this thread carries out."""
        found: Session = self._step.session
        return found

    def now(self) -> EpochMs:
        """The server's time in ms: as measured last, and never less than before."""
        ahead, latest = self._clock
        self._clock[1] = max(latest, int(ahead + time.monotonic() * 1000))
        return EpochMs(int(self._clock[1]))

    async def gate(
        self, name: str, about: object, apply: Callable[[], R], *, writes: bool = False
    ) -> R:
        """
        Carry out *apply* in one transaction, in a thread: the event loop goes on. After a failure
        never again: half of it may be collected, or stored although the answer was lost.
        """
        if self._closed:
            raise StoreUnavailable(detail="the store is closed")
        session, loop = self._writer if writes else self._reader, asyncio.get_running_loop()
        return await loop.run_in_executor(session.thread, self._within, session, apply)

    def _within(self, session: Session, apply: Callable[[], R]) -> R:
        self._step.session = session
        try:
            session.begin(WRITE if session is self._writer else READ)
            if session is self._writer:
                session(LOCK)
                self._clock[0] = session(CLOCK)[0][0] - time.monotonic() * 1000
            result = apply()
            session("COMMIT")
        except FAILURES as error:
            session.drop()
            raise StoreUnavailable(detail=f"database: {error!r}") from error
        except BaseException:  # also what `apply` refuses with
            with suppress(*FAILURES):
                session("ROLLBACK")
            raise
        return result

    def settle(self, changes: Changes) -> None:
        """Write *changes* in the transaction: what is deleted, then what is stored."""
        gone: list[tuple[str, str]] = []
        kept: list[tuple[str, str, str, str]] = []
        for kind, rows in changes.items():
            for key, row in rows.items():
                if row is None:
                    gone.append((kind, _address(key)))
                else:
                    kept.append((kind, _address(key), json.dumps(key), encode_record(row)))
        if gone:
            self.session()(DELETE, *map(list, zip(*gone, strict=True)))
        if kept:
            self.session()(PUT, *map(list, zip(*kept, strict=True)))

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            for session in (self._reader, self._writer):
                session.thread.submit(session.close)
                session.thread.shutdown()


class Table(Mapping[Hashable, Any]):
    """The rows of one table, as the step of this thread sees them. Units keep it between steps."""

    def __init__(self, name: str, session: Callable[[], Session]) -> None:
        self._name = name
        self._session = session

    def __getitem__(self, key: Hashable) -> Any:
        loaded = self._session().loaded.get(self._name)
        if loaded is not None:
            return loaded[key]
        for found in self._session()(ONE, self._name, _address(key)):
            return decode_record(ROWS[self._name], found["row"])
        raise KeyError(key)

    def __iter__(self) -> Iterator[Hashable]:
        return iter(self._all())

    def __len__(self) -> int:
        return len(self._all())

    def _all(self) -> dict[Hashable, Any]:
        loaded = self._session().loaded
        if self._name not in loaded:
            kind, rows = ROWS[self._name], self._session()(ALL, self._name)
            loaded[self._name] = {_key(r["key"]): decode_record(kind, r["row"]) for r in rows}
        return loaded[self._name]


def _address(key: Hashable) -> str:
    """The key as the index holds it: an index of a database takes short keys alone."""
    return sha256(json.dumps(key).encode()).hexdigest()


def _key(text: str) -> Hashable:
    found = json.loads(text)
    return tuple(found) if isinstance(found, list) else found
