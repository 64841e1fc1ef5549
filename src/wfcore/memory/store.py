"""
A store in memory: races, versions and visibility as in a real store; lost with its process.

Every read and every commit passes a gate, as one step; between steps other tasks run. The maker of
the gate decides which operation passes, and when.
"""

from collections import Counter
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

from wfcore.memory import records, runs, writes
from wfcore.memory.disk import Changes, Disk, Medium, SchedulingPoint
from wfcore.memory.overlay import Overlay
from wfcore.memory.runs import can_run, waiting_in_groups, waits
from wfcore.memory.tables import (
    AUDIT,
    DELIVERIES,
    EXECUTIONS,
    LEASES,
    LIMITS,
    LOGIN_LINKS,
    LOGINS,
    LOGS,
    NOTICES,
    REPLAYS,
    SERVED,
    SESSIONS,
    UnitOfWork,
    by_id,
    table_of,
)
from wfcore.model.event import AuditEntry, Event
from wfcore.model.execution import Execution, evolve
from wfcore.model.webhook import Delivery
from wfcore.ports.store import Slots, Trimmed, queries
from wfcore.time import DurationMs, EpochMs, Now, later

R = TypeVar("R")


class MemoryUnit:
    """
    One unit of work, which is also a view as long as it is not committed.

    The queries of each subject read every row of a table: correct, but slow for large tables. A
    subclass replaces the queries that must be fast on its medium, for example `executions =
    queries(Mine)`.
    """

    __slots__ = ("_unit",)

    def __init__(self, unit: UnitOfWork) -> None:
        self._unit = unit

    async def __aenter__(self) -> "MemoryUnit":
        return self

    async def __aexit__(self, *raised: object) -> None:
        """Drop all changes that were not committed."""

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
    webhooks = queries(records.Webhooks)
    groups = queries(runs.Groups)
    triggers = queries(records.Triggers)
    timers = queries(records.Timers)
    notices = queries(runs.Notices)
    nodes = queries(records.Nodes)
    events = queries(runs.Events)
    logs = queries(partial(runs.Events, table=LOGS))
    audit = queries(records.Audit)

    async def get(self, kind: type[R], *key: str | int) -> R | None:
        return await self._unit.one(table_of(kind), key if key[1:] else key[0])

    async def some(self, kind: type[R], ids: Collection[str]) -> Sequence[R]:
        return by_id(await self._unit.select(table_of(kind), lambda one: one.id in ids))  # type: ignore[attr-defined]

    def put(self, record: Any) -> None:
        self._unit.collect(writes.put(record))

    def delete(self, record: Any) -> None:
        self._unit.collect(writes.delete(record))

    def discard(self, kind: type[Any], *key: str) -> None:
        self._unit.collect(writes.discard(kind, key))

    def append(self, entry: Event | AuditEntry, record: str | None = None) -> None:
        if isinstance(entry, Event):
            self._unit.collect(writes.log_event(entry))
        else:
            self._unit.collect(writes.log_audit(entry, record))

    def log(self, line: Event) -> None:
        self._unit.collect(writes.log_event(line, LOGS))

    def tally(self, webhook_id: str, date: str, status: int, at: EpochMs) -> None:
        self._unit.collect(writes.tally(webhook_id, date, status, at))

    def deliver(self, record: Delivery) -> None:
        self._unit.collect(writes.deliver(record))

    def purge(self, *ids: str) -> None:
        self._unit.collect(writes.purge(ids))

    def require_abandoned(self, record: Execution) -> None:
        self._unit.collect(writes.require_abandoned(record, self._unit.now, self._unit.ended))

    def limit_group(self, workflow_id: str, at_once: int | None) -> None:
        self._unit.collect(writes.limit_group(workflow_id, at_once))

    def require_room(self, group: str, at_once: int) -> None:
        self._unit.collect(writes.require_room(group, at_once))

    async def commit(self) -> None:
        """Apply all collected changes, or raise `Stale` and apply no change."""
        await self._unit.commit()


class MemoryStore:
    """
    Implements `wfcore.ports.store.Store` over a disk of its own or a shared disk, or over another
    medium. `unit_type`: the class of the units; a subclass of `MemoryUnit` that replaces some
    queries. *now* tells the store's time: `Clock.service_now` of the process. `ended`: workers
    whose process is known to have died; handles on one disk may share the set.
    """

    unit_type: type[MemoryUnit] = MemoryUnit

    def __init__(
        self,
        gate: SchedulingPoint,
        disk: Medium | None = None,
        *,
        now: Now,
        ended: set[str] | None = None,
    ) -> None:
        self.disk: Medium = Disk() if disk is None else disk
        self.ended = set[str]() if ended is None else ended
        self._gate = gate
        self._now = now

    def now(self) -> EpochMs:
        """The time of the clock that the store was made with."""
        return self._now()

    def unit(self) -> MemoryUnit:
        """A unit of work."""
        return self.unit_type(UnitOfWork(self.disk, self._gate, self._now, self.ended))

    def view(self) -> MemoryUnit:
        """A read-only view of the store."""
        return self.unit()

    async def enlist(self, worker: str) -> None:
        """Does nothing: a worker here dies with the store, or is in `ended`."""

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
        """
        Claim due executions for *worker*, fairly between accounts. The lease begins with the call,
        not with the call's turn at the gate.
        """
        now = self._now()

        def wanted(run: Execution) -> bool:
            return can_run(able, run) and (ids is None or run.id in ids)

        def claim() -> Sequence[Execution]:
            return self._claim(worker, now, lease_ms, slots, limit, wanted)

        return await self._gate("claim", worker, claim, writes=True)

    def _claim(
        self,
        worker: str,
        now: EpochMs,
        lease_ms: DurationMs,
        slots: Slots,
        limit: int,
        wanted: Callable[[Execution], bool],
    ) -> Sequence[Execution]:
        everything = list(Overlay(self.disk).all(EXECUTIONS))
        held = Counter(run.owner_id for run in everything if run.worker == worker)
        late = waiting_in_groups(everything, self.disk.tables[LIMITS.name])
        due = [run for run in everything if waits(run) and (run.due_at or 0) <= now]
        due = [run for run in due if run.id not in late and wanted(run)]
        served: dict[Hashable, EpochMs] = dict(self.disk.tables[SERVED.name])
        lately = {owner for owner, at in served.items() if at > now - slots.lately_ms}
        taken: list[Execution] = []
        while due and len(taken) < limit:
            best = min(due, key=lambda run: _turn(run, held, served))
            owner, free = best.owner_id, slots.places - held.total()
            others = not (lately | held.keys()) <= {owner}
            if not slots.admits(held[owner], free, others_lately=others):
                break
            due.remove(best)
            held[owner] += 1
            served[owner] = now
            taken.append(_taken(best, worker))
        if taken:
            self.disk.settle(_leased(taken, now, later(now, lease_ms)))
        return taken

    async def extend(
        self, worker: str, ids: Collection[str], lease_ms: DurationMs
    ) -> Mapping[str, EpochMs | None]:
        """
        Extend the leases that *worker* holds on *ids*; returns the held executions, each with its
        `due_at`.
        """
        until = later(self._now(), lease_ms)

        def extend() -> Mapping[str, EpochMs | None]:
            runs = Overlay(self.disk).all(EXECUTIONS)
            held = {run.id: run.due_at for run in runs if run.worker == worker and run.id in ids}
            if held:
                self.disk.settle({LEASES.name: dict.fromkeys(held, until)})
            return held

        return await self._gate("extend", worker, extend, writes=True)

    async def elect(self, duty: str, lease_ms: DurationMs) -> bool:
        """Returns True: all handles on a disk belong to one machine."""
        return True

    async def ping(self) -> None:
        """Pass the scheduling point once, which raises if the medium is unreachable."""
        await self._gate("ping", "", lambda: None)

    async def trim(
        self,
        audit_before: EpochMs,
        replays_before: EpochMs,
        sessions_before: EpochMs,
        deliveries_before: EpochMs,
        limit: int,
        trimmed: Trimmed | None = None,
    ) -> int:
        """Delete up to *limit* old records; returns the number of deleted records."""
        ages = (
            (REPLAYS.name, "created_at", replays_before),
            (SESSIONS.name, "created_at", sessions_before),
            (LOGINS.name, "last_failure_at", sessions_before),
            (LOGIN_LINKS.name, "created_at", sessions_before),
            (DELIVERIES.name, "at", deliveries_before),
            (NOTICES.name, "created_at", deliveries_before),
        )

        def trim() -> int:
            gone = writes.over_time(self.disk, audit_before, limit, trimmed)
            audit = sum(one is None for one in gone.get(AUDIT.name, {}).values())
            old = [
                (name, key)
                for name, at, before in ages
                for key, record in sorted(
                    self.disk.tables[name].items(), key=lambda kept: getattr(kept[1], at)
                )
                if getattr(record, at) < before and getattr(record, "due_at", None) is None
            ][: limit - audit]
            for name, key in old:
                gone.setdefault(name, {})[key] = None
            self.disk.settle(gone)
            return audit + len(old)

        return await self._gate("trim", limit, trim, writes=True)

    async def tally(self, limit: int) -> int:
        """Returns 0: lists count their rows."""
        return 0

    async def pack(self, limit: int) -> int:
        """Returns 0: records are stored unpacked."""
        return 0

    async def release(self, limit: int) -> int:
        """Returns 0: memory is released by itself."""
        return 0

    async def close(self) -> None:
        """Does nothing: there is nothing to release, and the records stay readable for tests."""


def _taken(run: Execution, worker: str) -> Execution:
    return evolve(run, worker=worker, fence=run.fence + 1, version=run.version + 1, due_at=None)


def _turn(
    run: Execution, held: Mapping[str, int], served: Mapping[Hashable, EpochMs]
) -> tuple[int, EpochMs, EpochMs, str, str]:
    """The sort key of a claim: the execution with the smallest key comes first."""
    owner, due_at = run.owner_id, run.due_at or EpochMs(0)
    return held[owner], served.get(owner, EpochMs(0)), due_at, owner, run.id


def _leased(taken: Sequence[Execution], now: EpochMs, until: EpochMs) -> Changes:
    return {
        EXECUTIONS.name: {run.id: run for run in taken},
        SERVED.name: {run.owner_id: now for run in taken},
        LEASES.name: {run.id: until for run in taken},
    }
