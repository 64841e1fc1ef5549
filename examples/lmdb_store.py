"""
A store of your own on a database: LMDB, one file that many processes of a machine share.

`wfcore.memory` knows everything that a store must about records, races, claims and queries; what
it lacks is a medium. A medium answers two questions: what rows are in a table, and how are changes
written? This one keeps each row as JSON text in LMDB, and runs each step of a unit (a read, a
commit, a claim) in one transaction of the database. That alone is a complete store. Its queries
read whole tables, so those that a service asks all the time get an index and are replaced: here
`executions.next_due`, which every idle worker asks.

    store = open_store(Path("data"))
"""

import asyncio
import json
import threading
import time
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeVar

import lmdb

from wfcore import Execution, StoreRefused, StoreUnavailable
from wfcore.memory import ROWS, Changes, Executions, MemoryStore, MemoryUnit, waits
from wfcore.ports import decode_record, encode_record
from wfcore.ports.store import queries
from wfcore.time import EpochMs, Now

R = TypeVar("R")
TIME = 8
ROOM = 16 << 30
"""So large may the file become: address space, not memory."""


class IndexedExecutions(Executions):
    """Queries of executions: those of the core, but for one that asks the index."""

    async def next_due(self, able: Collection[str] | None = None) -> EpochMs | None:
        if self.unit.changes or able is not None:  # which the index does not know
            return await super().next_due(able)
        database = self.unit.medium
        assert isinstance(database, Database)
        return await self.unit.ask("execution", "next due", database.next_due)


class LmdbUnit(MemoryUnit):
    executions = queries(IndexedExecutions)


class LmdbStore(MemoryStore):
    """Satisfies `wfcore.Store` over LMDB. Open it with `open_store`."""

    unit_type = LmdbUnit

    def __init__(self, database: "Database", now: Now) -> None:
        super().__init__(database.gate, database, now=now)
        self._database = database

    async def close(self) -> None:
        """Finish what was handed in, then give the file back. Safe to call twice."""
        await asyncio.to_thread(self._database.close)


def wall_clock() -> EpochMs:
    """For a store that nobody gives a clock; a service gives it `Clock.service_now`."""
    return EpochMs(time.time_ns() // 1_000_000)


def open_store(folder: Path, now: Now = wall_clock) -> LmdbStore:
    """The store in *folder*, which is made if there is none; *now* tells its time."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return LmdbStore(Database(folder), now)


class Database:
    """
    A `wfcore.memory.Medium`: tables in LMDB, read and written in the transaction of this thread.

    Readers see the last commit and wait for nobody. LMDB has one writer at a time, among all
    processes: what counts rows and then writes is never interrupted.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder.resolve()
        self._environment = _shared(self._folder)
        self._thread = threading.local()
        self._readers = ThreadPoolExecutor(4, "lmdb-read")
        self._writer = ThreadPoolExecutor(1, "lmdb-write")
        self._closed = False
        with self._environment.begin(write=True) as opening:
            self.due = self._environment.open_db(b"execution by due_at", opening)
            self.tables: Mapping[str, Table] = {
                name: Table(name, self._environment.open_db(name.encode(), opening), self)
                for name in ROWS
            }

    def transaction(self) -> lmdb.Transaction:
        """That of the step which this thread carries out."""
        found: lmdb.Transaction = self._thread.transaction
        return found

    async def gate(
        self, name: str, about: object, apply: Callable[[], R], *, writes: bool = False
    ) -> R:
        """Carry out *apply* in one transaction, in a thread: the event loop goes on."""
        if self._closed:
            raise StoreUnavailable(detail="the store is closed")
        pool = self._writer if writes else self._readers
        return await asyncio.get_running_loop().run_in_executor(pool, self._within, apply, writes)

    def _within(self, apply: Callable[[], R], writes: bool) -> R:
        try:
            with self._environment.begin(write=writes) as self._thread.transaction:
                return apply()
        except lmdb.Error as error:
            raise StoreUnavailable(detail=f"LMDB: {error}") from error

    def settle(self, changes: Changes) -> None:
        """Write *changes* in the transaction; it is flushed when the step is over."""
        for name, rows in changes.items():
            for key, row in rows.items():
                before = self.tables[name].replace(key, row)
                if name == "execution":
                    self._index(before, row)

    def _index(self, before: Execution | None, after: Execution | None) -> None:
        if (old := _due_key(before)) is not None:
            self.transaction().delete(old, db=self.due)
        if (new := _due_key(after)) is not None:
            self.transaction().put(new, b"", db=self.due)

    def next_due(self) -> EpochMs | None:
        """The earliest `due_at` in the index."""
        with closing(self.transaction().cursor(self.due)) as index:
            return EpochMs(int.from_bytes(index.key()[:TIME])) if index.first() else None

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            self._readers.shutdown()
            self._writer.shutdown()
            _give_back(self._folder)


class Table(Mapping[Hashable, Any]):
    """The rows of one table by their key, as the transaction of this thread sees them."""

    def __init__(self, name: str, db: Any, database: Database) -> None:
        self._kind = ROWS[name]
        self._db = db
        self._transaction = database.transaction

    def __getitem__(self, key: Hashable) -> Any:
        stored = self._transaction().get(_address(key), db=self._db)
        if stored is None:
            raise KeyError(key)
        return _decoded(self._kind, stored)[1]

    def __iter__(self) -> Iterator[Hashable]:
        with closing(self._transaction().cursor(self._db)) as rows:
            for _, stored in rows:
                yield _decoded(self._kind, stored)[0]

    def __len__(self) -> int:
        return int(self._transaction().stat(self._db)["entries"])

    def replace(self, key: Hashable, row: Any) -> Any:
        """Store *row*, or delete what is there if it is None; the row before."""
        before = self.get(key)
        if row is None:
            self._transaction().delete(_address(key), db=self._db)
        else:
            text = f"{json.dumps(key)}\n{encode_record(row)}"
            self._transaction().put(_address(key), text.encode(), db=self._db)
        return before


def _address(key: Hashable) -> bytes:
    """Keys of LMDB have 511 bytes at most; ours may be longer."""
    return sha256(json.dumps(key).encode()).digest()


def _decoded(kind: Any, found: bytes | memoryview) -> tuple[Hashable, Any]:
    """Key and row. Rows are frozen, so the same bytes may give the same object."""
    stored = bytes(found)
    return _remembered(kind, stored) if len(stored) <= SMALL else _read(kind, stored)


SMALL = 4_096
"""Bytes of a row that is remembered: all of them together are 40 MB at most."""


@lru_cache(10_000)
def _remembered(kind: Any, stored: bytes) -> tuple[Hashable, Any]:
    return _read(kind, stored)


def _read(kind: Any, stored: bytes) -> tuple[Hashable, Any]:
    key, _, row = stored.decode().partition("\n")
    found = json.loads(key)
    return tuple(found) if isinstance(found, list) else found, decode_record(kind, row)


def _due_key(run: Execution | None) -> bytes | None:
    """Its place among those that wait: big-endian, so that bytes sort as numbers do."""
    if run is None or run.due_at is None or not waits(run):
        return None
    return run.due_at.to_bytes(TIME) + run.id.encode()


_OPEN: dict[Path, tuple[lmdb.Environment, int]] = {}
_OPENING = threading.Lock()
"""LMDB allows each process to open a file once: handles share it."""


def _shared(folder: Path) -> lmdb.Environment:
    with _OPENING:
        found, users = _OPEN.get(folder) or (_opened(folder), 0)
        _OPEN[folder] = found, users + 1
        return found


def _opened(folder: Path) -> lmdb.Environment:
    try:
        return lmdb.open(str(folder), map_size=ROOM, max_dbs=len(ROWS) + 1, mode=0o600)
    except lmdb.Error as error:
        raise StoreRefused(f"{folder} is no database of LMDB that can be used: {error}") from error


def _give_back(folder: Path) -> None:
    with _OPENING:
        found, users = _OPEN[folder]
        _OPEN[folder] = found, users - 1
        if users == 1:
            del _OPEN[folder]
            found.close()
