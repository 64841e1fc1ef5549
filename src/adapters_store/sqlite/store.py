"""
The embedded store: SQLite with group commit, for any number of processes on one machine.

Writes go to one thread that commits many units with one flush; point reads run in the event loop,
lists in threads of their own. A reader never waits for the writer. A unit of work writes nothing
itself: each of its methods adds statements to what it hands over when it commits.
"""
# ruff: noqa: S608 - only constant text of this package is put together

import asyncio
from collections.abc import Collection, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, TypeVar, cast

from adapters_store.defaults import CACHE_BYTES, wall_clock
from adapters_store.private_folder import alone
from adapters_store.schema import Schema
from adapters_store.sqlite import (
    audit,
    claims,
    concurrency,
    execution_rows,
    large,
    records,
    runs,
    vacuum,
)
from adapters_store.sqlite.connection import copy_database
from adapters_store.sqlite.database_file import size_of
from adapters_store.sqlite.events import Events, Logs
from adapters_store.sqlite.execution_rows import FETCH
from adapters_store.sqlite.kinds import (
    ADD_AUDIT,
    KINDS,
    REPLAYS,
    TABLE_OF,
    Fetch,
    sealed,
    text_of,
)
from adapters_store.sqlite.migrate import prepare
from adapters_store.sqlite.moving import require_here
from adapters_store.sqlite.packing import Pack, ended_next
from adapters_store.sqlite.read_cache import Reads
from adapters_store.sqlite.sealing_keys import (
    Resealing,
    counts,
    forget_unused,
    note_key,
    require_keys,
)
from adapters_store.sqlite.tallies import tally
from adapters_store.sqlite.unit_of_work import UnitOfWork
from adapters_store.sqlite.workers import Workers
from adapters_store.sqlite.writer import DatabaseFile, Writer
from wfcore.errors import StoreUnavailable, Unreadable
from wfcore.model.approval import Approval
from wfcore.model.event import AuditEntry, Event
from wfcore.model.execution import Execution, Replay
from wfcore.model.webhook import Delivery
from wfcore.ports.records import KIND_OF
from wfcore.ports.store import Slots, Trimmed, queries
from wfcore.ports.system import Sealer
from wfcore.rules.auth.access import named
from wfcore.time import DurationMs, EpochMs, Now, later

R = TypeVar("R")


class SqliteUnit:
    """One unit of work; also serves as a view if nobody commits it."""

    __slots__ = ("_unit",)

    def __init__(self, unit: UnitOfWork) -> None:
        self._unit = unit

    async def __aenter__(self) -> "SqliteUnit":
        return self

    async def __aexit__(self, *_: object) -> None:
        """Uncommitted writes were only collected: there is nothing to undo."""

    accounts = queries(records.Accounts)
    keys = queries(records.Keys)
    sessions = queries(records.Sessions)
    workflows = queries(records.Workflows)
    definitions = queries(records.Definitions)
    shares = queries(records.Shares)
    executions = queries(runs.Executions)
    approvals = queries(runs.Approvals)
    artifacts = queries(runs.Artifacts)
    callbacks = queries(runs.Callbacks)
    notices = queries(runs.Notices)
    nodes = queries(records.Nodes)
    webhooks = queries(records.Webhooks)
    groups = queries(concurrency.Groups)
    triggers = queries(records.Triggers)
    timers = queries(records.Timers)
    events = queries(Events)
    logs = queries(Logs)
    audit = queries(audit.Audit)

    _fetch: ClassVar[Fetch[Execution]] = FETCH

    async def get(self, kind: type[R], *key: str | int) -> R | None:
        if kind is Execution:
            return cast("R | None", await large.whole(self._unit, self._fetch, str(key[0])))
        return await self._unit.one(KINDS[kind].one, key)

    async def head(self, id: str) -> Execution | None:
        """The execution; large outputs may be left out."""
        return await large.head(self._unit, self._fetch, id)

    async def filled(self, run: Execution, keys: Collection[str | None] | None = None) -> Execution:
        """*run* with the outputs of these steps, or of all. Raises `Stale`."""
        return await large.filled(self._unit, run, keys)

    async def some(self, kind: type[R], ids: Collection[str]) -> Sequence[R]:
        return await self._unit.among(KINDS[kind], ids)

    def put(self, record: Any) -> None:
        """Compare the version and set."""
        unit = self._unit
        if isinstance(record, Execution):
            execution_rows.put(unit, record)
            return
        kind = KINDS[type(record)]
        unit.put(kind, record)
        if isinstance(record, Approval):
            _name_approvers(unit, record)
        if isinstance(record, Replay) and not record.version:
            [(_, values, stale)] = REPLAYS.put(record, unit.sealer)
            unit.writes[-1] = (records.REPLACE_REPLAY, values, stale)

    def delete(self, record: Any) -> None:
        """Compare the version and delete, with what it owns."""
        unit = self._unit
        kind = KINDS[type(record)]
        unit.delete(kind, kind.key_of(record), kind.drop(record))
        for owned, owner in KIND_OF[type(record)].owns:
            table = TABLE_OF[owned]
            unit.write(table, (f"DELETE FROM {table} WHERE {owner} = ?", (record.id,), None))

    def discard(self, kind: type[Any], *key: str) -> None:
        """Delete it if it exists."""
        unit = self._unit
        table = KINDS[kind]
        unit.delete(table, key, (table.delete, key, None))

    def append(self, entry: Event | AuditEntry, record: str | None = None) -> None:
        """Add an entry to its log."""
        unit = self._unit
        if isinstance(entry, AuditEntry):
            unit.write("audit", (ADD_AUDIT, audit.cells_of(entry, record, unit.sealer), None))
        else:
            execution_rows.add_event(unit, entry)

    def log(self, line: Event) -> None:
        """Add output lines, which have the form of an event, to their own log."""
        execution_rows.add_lines(self._unit, line)

    def tally(self, webhook_id: str, date: str, status: int, at: EpochMs) -> None:
        unit = self._unit
        unit.write("webhook_tallies", (records.ADD_TALLY, (webhook_id, date, status, 1, at), None))

    def deliver(self, record: Delivery) -> None:
        unit = self._unit
        body = text_of(records.write_delivery(record))
        body = sealed(unit.sealer, body, "webhook_deliveries", "body", record.id)
        values = (record.webhook_id, int(record.authenticated), record.id, record.at, body)
        unit.write("webhook_deliveries", (records.ADD_DELIVERY, values, None))

    def purge(self, *ids: str) -> None:
        unit = self._unit
        for sql in runs.PURGE:
            unit.write("executions", (sql, (text_of(ids),), None))
        unit.changed.update(("approvals", "artifacts", "events", "logs", "callbacks", "notices"))
        unit.changed.add("approval_approvers")
        for id in ids:
            unit.pend("executions", (id,), None)

    def require_abandoned(self, record: Execution) -> None:
        unit = self._unit
        ended = bool(record.worker and unit.ended((record.worker,)))
        values = (record.id, record.worker, unit.now(), ended)
        unit.write("executions", (claims.REQUIRE_ABANDONED, values, ("executions", record.id)))

    def limit_group(self, workflow_id: str, at_once: int | None) -> None:
        unit = self._unit
        if at_once is None:
            unit.write("lane_limits", (concurrency.NO_LIMIT, (workflow_id,), None))
        else:
            unit.write("lane_limits", (concurrency.SET_LIMIT, (workflow_id, at_once), None))
        unit.write("lane_checks", (concurrency.MARK_ALL, (workflow_id,), None))

    def require_room(self, group: str, at_once: int) -> None:
        unit = self._unit
        unit.write("pulse", (concurrency.HAS_ROOM, (group, at_once), ("concurrency group", group)))

    async def commit(self) -> None:
        """Store what was collected. Raises `Stale`, `StoreUnavailable`."""
        await self._unit.commit()


def _name_approvers(unit: UnitOfWork, record: Approval) -> None:
    if record.version:
        unit.write("approval_approvers", (runs.FORGET_APPROVERS, (record.id,), None))
    for name in named(record):
        unit.write("approval_approvers", (runs.ADD_APPROVER, (name, record.id), None))


class SqliteStore:
    """Implements `wfcore.ports.store.Store` on one file. Created by `SqliteStore.open`."""

    def __init__(
        self,
        path: Path,
        cache_bytes: int = CACHE_BYTES,
        sealer: Sealer | None = None,
        now: Now = wall_clock,
    ) -> None:
        self.path, self.sealer, self._now = path, sealer, now
        self._file = DatabaseFile(path)
        self._reads = Reads(self._file, cache_bytes, sealer)
        self._writer = Writer(self._file, self._reads.committed)
        self._workers = Workers(path.parent / "workers")
        self._loop = asyncio.get_running_loop()

    @classmethod
    async def open(
        cls,
        path: Path,
        data: Path | None = None,
        cache_bytes: int = CACHE_BYTES,
        sealer: Sealer | None = None,
        now: Now = wall_clock,
        schema: Schema = Schema.NEWEST,
    ) -> "SqliteStore":
        """
        Open *path*, made or migrated as *schema* says. *data*: the folder of what belongs to it;
        None: where *path* is. *cache_bytes*: what decoded records may take up in memory. *sealer*:
        what encrypts contents; None: they are stored in clear. *now* tells its time.

        Raises `StoreRefused` where the file is foreign, damaged or of a newer schema, has lost
        commits, is missing beside other data, or is sealed with another key (all is left
        untouched), `StoreUnavailable` where it cannot be used now.
        """
        await asyncio.to_thread(_prepare_alone, path, data, sealer, schema)
        store = cls(path, cache_bytes, sealer, now)
        try:
            await store._reads.reach()
        except StoreUnavailable:
            await store.close()
            raise
        return store

    def now(self) -> EpochMs:
        """The time of the process: all processes that share the file are on one machine."""
        return self._now()

    def unit(self) -> SqliteUnit:
        """A unit of work. Raises `RuntimeError` in another event loop than the one it opened in."""
        if asyncio.get_running_loop() is not self._loop:
            raise RuntimeError("a store belongs to one event loop; other threads use wfcore.sync")
        return SqliteUnit(UnitOfWork(self._reads, self._writer, self._workers.ended, self._now))

    def view(self) -> SqliteUnit:
        """A read-only look."""
        return self.unit()

    async def enlist(self, worker: str) -> None:
        """Hold the worker's lock until this store is closed or the process ends."""
        await asyncio.to_thread(self._workers.enlist, worker)

    async def claim(
        self,
        worker: str,
        lease_ms: DurationMs,
        slots: Slots,
        limit: int,
        *,
        ids: Collection[str] | None = None,
        able: Collection[str] | None = None,
    ) -> Sequence[Execution]:
        """Claim due executions for *worker*, fairly between accounts."""
        now, cache = self._now(), self._reads.cache
        claim = claims.Claim(worker, now, later(now, lease_ms), slots, limit, ids, able, cache)
        found, aside = list[Execution](), list[str]()
        for one in await self._writer.submit(claim):
            try:
                found.append(one.run or self._reads.decoded(FETCH, (one.id,), one.row))
            except Unreadable:
                aside.append(one.id)
        if aside:
            await self._writer.submit(partial(claims.set_aside, worker=worker, ids=aside))
        return found

    def unreadable(self) -> Mapping[tuple[str, str], str]:
        """What could not be read so far: table and id, and the type of the error."""
        return self._reads.unreadable

    async def extend(
        self, worker: str, ids: Collection[str], lease_ms: DurationMs
    ) -> Mapping[str, EpochMs | None]:
        """Extend the leases that *worker* holds on *ids*; returns those, each with its `due_at`."""
        extend = partial(claims.extend, worker=worker, ids=ids, until=later(self._now(), lease_ms))
        return await self._writer.submit(extend)

    async def elect(self, duty: str, lease_ms: DurationMs) -> bool:
        """All processes are on one machine: who finds a row first takes it."""
        return True

    async def ping(self) -> None:
        """Write something small, durably. Raises `StoreUnavailable`."""
        await self._writer.submit(claims.touch)

    async def trim(
        self,
        audit_before: EpochMs,
        replays_before: EpochMs,
        sessions_before: EpochMs,
        deliveries_before: EpochMs,
        limit: int,
        trimmed: Trimmed | None = None,
    ) -> int:
        """Delete up to *limit* old records, oldest first; returns how many."""
        of_sessions, of_deliveries = [sessions_before] * 3, [deliveries_before] * 2
        before = (audit_before, replays_before, *of_sessions, *of_deliveries)
        job = partial(claims.trim, before=before, limit=limit, trimmed=trimmed, sealer=self.sealer)
        return await self._writer.submit(job)

    async def tally(self, limit: int) -> int:
        """Move the mark of the tallies on by up to *limit* executions, and add as many notes."""
        return await self._writer.submit(partial(tally, now=self._now(), limit=limit))

    async def pack(self, limit: int) -> int:
        """Pack what has ended among the next *limit* executions, those that fit in a cell."""
        found = await self._reads.rows(ended_next(self._now(), limit))
        if found:
            await self._writer.submit(Pack.of(found, self.sealer))
        return len(found)

    async def release(self, limit: int) -> int:
        """
        Return about *limit* unused bytes to the file system; returns how many. After the last of
        them the log is checkpointed, because the file shrinks only then.
        """
        gone, size = await self._writer.submit(partial(vacuum.release, limit=limit))
        if not gone:
            await asyncio.to_thread(vacuum.shrink, self.path, size)
        return gone

    async def gauges(self) -> Mapping[str, float]:
        """For metrics: the size of the file with its log, and what the cache holds."""
        size = await asyncio.to_thread(size_of, self.path)
        return {"wfcore_store_size_bytes": float(size), **self._reads.cache.gauges()}

    async def drop_caches(self) -> None:
        """Give back memory that is only used to be fast. Raises `StoreUnavailable`."""
        self._reads.cache.entries.clear()
        self._reads.cache.filled = 0
        await self._reads.row(vacuum.SHRINK, ())
        await self._writer.submit(lambda cursor: cursor.execute(vacuum.SHRINK))

    async def reseal(self, sealer: Sealer, *, clear: bool = False) -> int:
        """
        Seal with the first key of *sealer* what is sealed with another key, in batches, until a
        pass over everything finds nothing; returns the number of cells. *clear*: what is in clear,
        too.
        """
        work = Resealing(sealer, clear)
        await self._writer.submit(partial(note_key, sealer=sealer))
        return await work.run(
            lambda table, after: self._writer.submit(partial(work.batch, table=table, after=after))
        )

    async def sealed(self) -> Mapping[str | None, int]:
        """How many cells there are, by the id of the key (None: in clear)."""
        return await self._writer.submit(counts)

    async def forget_keys(self, ids: Sequence[str]) -> Sequence[str]:
        """Those of *ids* that nothing is sealed with; a start no longer requires them."""
        return await self._writer.submit(partial(forget_unused, ids=ids))

    async def backup(self, path: str) -> None:
        """Write a consistent copy to *path* while everything continues."""
        self._file.require_in_place()
        await asyncio.to_thread(copy_database, self.path, Path(path))

    async def close(self) -> None:
        """
        Finish what was submitted, then release everything. Safe to call twice.

        The writer is closed last, because only a writer can checkpoint and remove the log.
        """
        await self._reads.close()
        await self._writer.close()
        self._workers.release()


def _prepare_alone(path: Path, data: Path | None, sealer: Sealer | None, schema: Schema) -> None:
    """Prepare the file while no other process does the same."""
    try:
        with alone(path.parent):
            prepare(path, data, schema)
            require_here(path)
            require_keys(path, sealer)
    except OSError as error:
        raise StoreUnavailable(detail=str(error)) from error
