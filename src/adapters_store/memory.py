"""
A store in memory: honest about races, versions and visibility, gone with its process.

For tests, simulations and trials. Every read is a point where others run; `commit` first lets
others run and then applies everything in one step.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Hashable, Sequence
from contextlib import asynccontextmanager

from attrs import evolve

from adapters_store import memory_records, memory_runs
from adapters_store.memory_counters import MemoryCounters
from adapters_store.memory_runs import waits
from adapters_store.memory_tables import AUDIT, EXECUTIONS, LEASES, LOGINS, REPLAYS, SESSIONS, Desk
from adapters_store.overlay import Overlay, Tables
from wfcore.errors import StoreUnavailable
from wfcore.instants import EpochMs
from wfcore.model.execution import Execution
from wfcore.ports.store import Slots

__all__ = ["MemoryCounters", "MemoryStore"]


class MemoryUnit:
    """One unit of work; also serves as a view when nobody commits it."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self._desk = desk = Desk(Overlay(tables))
        self.accounts = memory_records.Accounts(desk)
        self.keys = memory_records.Keys(desk)
        self.sessions = memory_records.Sessions(desk)
        self.logins = memory_records.Logins(desk)
        self.workflows = memory_records.Workflows(desk)
        self.definitions = memory_records.Definitions(desk)
        self.shares = memory_records.Shares(desk)
        self.executions = memory_runs.Executions(desk)
        self.approvals = memory_runs.Approvals(desk)
        self.artifacts = memory_runs.Artifacts(desk)
        self.callbacks = memory_runs.Callbacks(desk)
        self.webhooks = memory_records.Webhooks(desk)
        self.replays = memory_records.Replays(desk)
        self.events = memory_runs.Events(desk)
        self.audit = memory_records.Audit(desk)

    async def commit(self) -> None:
        """Apply everything that was collected, or raise `Stale` and apply nothing."""
        await asyncio.sleep(0)
        settled = Overlay(self._tables, strict=True)
        for change in self._desk.changes:
            change(settled)
        self._desk.changes.clear()
        settled.settle()


class MemoryStore:
    """Satisfies `wfcore.ports.store.Store` over dicts."""

    def __init__(self) -> None:
        self._tables: Tables = {}

    @asynccontextmanager
    async def unit(self) -> AsyncIterator[MemoryUnit]:
        """A unit of work."""
        yield MemoryUnit(self._tables)

    @asynccontextmanager
    async def view(self) -> AsyncIterator[MemoryUnit]:
        """A read-only look."""
        yield MemoryUnit(self._tables)

    async def enlist(self, worker: str) -> None:
        """Nothing to do: a worker that lives here dies with the store."""

    async def claim(
        self, worker: str, now: EpochMs, until: EpochMs, slots: Slots, limit: int
    ) -> Sequence[Execution]:
        """Take due executions for *worker*, fairly between accounts."""
        await asyncio.sleep(0)
        overlay = Overlay(self._tables)
        runs = list(overlay.all(EXECUTIONS))
        held = Counter(run.owner_id for run in runs if run.worker == worker)
        due = sorted(
            (run for run in runs if waits(run) and (run.due_at or 0) <= now),
            key=lambda run: (run.due_at, run.id),
        )
        taken: list[Execution] = []
        while due and len(taken) < limit:
            free = slots.places - held.total()
            best = min(due, key=lambda run: (held[run.owner_id], run.due_at, run.id))
            if free <= 0 or held[best.owner_id] >= slots.share * free:
                break
            due.remove(best)
            held[best.owner_id] += 1
            taken.append(
                evolve(
                    best,
                    worker=worker,
                    fence=best.fence + 1,
                    version=best.version + 1,
                    due_at=None,
                )
            )
        for run in taken:
            overlay.set(EXECUTIONS, run.id, run)
            overlay.set(LEASES, run.id, until)
        overlay.settle()
        return taken

    async def extend(self, worker: str, until: EpochMs) -> frozenset[str]:
        """Extend every lease of *worker*; the ids of those executions."""
        await asyncio.sleep(0)
        overlay = Overlay(self._tables)
        ids = frozenset(run.id for run in overlay.all(EXECUTIONS) if run.worker == worker)
        for id in ids:
            overlay.set(LEASES, id, until)
        overlay.settle()
        return ids

    async def ping(self) -> None:
        """Always reachable."""

    async def trim(
        self, audit_before: EpochMs, replays_before: EpochMs, sessions_before: EpochMs, limit: int
    ) -> int:
        """Delete up to *limit* old records; how many went."""
        await asyncio.sleep(0)
        overlay = Overlay(self._tables)
        old: list[tuple[str, Hashable]] = [
            *((AUDIT.name, one.id) for one in overlay.all(AUDIT) if one.at < audit_before),
            *(
                (REPLAYS.name, (one.scope, one.key))
                for one in overlay.all(REPLAYS)
                if one.created_at < replays_before
            ),
            *(
                (SESSIONS.name, one.id)
                for one in overlay.all(SESSIONS)
                if one.created_at < sessions_before
            ),
            *(
                (LOGINS.name, one.id)
                for one in overlay.all(LOGINS)
                if one.last_failure_at < sessions_before
            ),
        ]
        for table, key in old[:limit]:
            del self._tables[table][key]
        return len(old[:limit])

    async def backup(self, path: str) -> None:
        """A store in memory has no copy to give. Raises `StoreUnavailable`."""
        raise StoreUnavailable(detail="a store in memory cannot be backed up")

    async def close(self) -> None:
        """Nothing to release; what is stored stays readable for tests."""
