"""
The simulated store: the `Store` port over a `Disk`, with every passage through a gate.

The gate decides when a read or a commit happens and whether its answer arrives. With a gate
that only lets others run first, the store passes the shipped contract under asyncio.
"""

from collections import Counter
from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import asynccontextmanager

from attrs import evolve

from wfcore.errors import StoreUnavailable
from wfcore.instants import EpochMs
from wfcore.model.execution import Execution
from wfcore.ports.store import Slots
from wfcore.testing.simulator import store_records, store_runs
from wfcore.testing.simulator.asks import Gate
from wfcore.testing.simulator.desk import Desk
from wfcore.testing.simulator.store_runs import waits
from wfcore.testing.simulator.tables import (
    AUDIT,
    EXECUTIONS,
    LEASES,
    LOGINS,
    REPLAYS,
    SESSIONS,
    Changes,
    Disk,
)


class SimUnit:
    """One unit of work; also serves as a view when nobody commits it."""

    __slots__ = ("_desk", "_ended")

    def __init__(self, desk: Desk, ended: Collection[str]) -> None:
        self._desk = desk
        self._ended = ended

    @property
    def accounts(self) -> store_records.Accounts:
        return store_records.Accounts(self._desk)

    @property
    def keys(self) -> store_records.Keys:
        return store_records.Keys(self._desk)

    @property
    def sessions(self) -> store_records.Sessions:
        return store_records.Sessions(self._desk)

    @property
    def logins(self) -> store_records.Logins:
        return store_records.Logins(self._desk)

    @property
    def workflows(self) -> store_records.Workflows:
        return store_records.Workflows(self._desk)

    @property
    def definitions(self) -> store_records.Definitions:
        return store_records.Definitions(self._desk)

    @property
    def shares(self) -> store_records.Shares:
        return store_records.Shares(self._desk)

    @property
    def executions(self) -> store_runs.Executions:
        return store_runs.Executions(self._desk, self._ended)

    @property
    def approvals(self) -> store_runs.Approvals:
        return store_runs.Approvals(self._desk)

    @property
    def artifacts(self) -> store_runs.Artifacts:
        return store_runs.Artifacts(self._desk)

    @property
    def webhooks(self) -> store_records.Webhooks:
        return store_records.Webhooks(self._desk)

    @property
    def replays(self) -> store_records.Replays:
        return store_records.Replays(self._desk)

    @property
    def events(self) -> store_runs.Events:
        return store_runs.Events(self._desk)

    @property
    def audit(self) -> store_records.Audit:
        return store_records.Audit(self._desk)

    async def commit(self) -> None:
        """Carry out everything that was collected, or raise `Stale` and change nothing."""
        await self._desk.commit()


class SimStore:
    """Satisfies `wfcore.ports.store.Store`. `ended`: workers known to have died (by their lock)."""

    def __init__(self, gate: Gate, disk: Disk | None = None) -> None:
        self.disk = disk or Disk()
        self.ended: set[str] = set()
        self._gate = gate

    @asynccontextmanager
    async def unit(self) -> AsyncIterator[SimUnit]:
        """A unit of work."""
        yield SimUnit(Desk(self.disk, self._gate), self.ended)

    @asynccontextmanager
    async def view(self) -> AsyncIterator[SimUnit]:
        """A read-only look."""
        yield SimUnit(Desk(self.disk, self._gate), self.ended)

    async def enlist(self, worker: str) -> None:
        """Nothing to do: who runs the simulation says when a worker has `ended`."""

    async def claim(
        self, worker: str, now: EpochMs, until: EpochMs, slots: Slots, limit: int
    ) -> Sequence[Execution]:
        """Take due executions for *worker*, fairly between accounts."""
        return await self._gate(
            "claim", worker, lambda: self._claim(worker, now, until, slots, limit), writes=True
        )

    def _claim(
        self, worker: str, now: EpochMs, until: EpochMs, slots: Slots, limit: int
    ) -> Sequence[Execution]:
        runs: list[Execution] = list(self.disk.tables[EXECUTIONS.name].values())
        held = Counter(run.owner_id for run in runs if run.worker == worker)
        due = [run for run in runs if waits(run) and (run.due_at or 0) <= now]
        taken: list[Execution] = []
        while due and len(taken) < limit:
            best = min(due, key=lambda run: (held[run.owner_id], run.due_at, run.id))
            free = slots.places - held.total()
            if free <= 0 or held[best.owner_id] >= slots.share * free:
                break
            due.remove(best)
            held[best.owner_id] += 1
            taken.append(_taken(best, worker))
        if taken:
            self.disk.settle(_leased(taken, until))
        return taken

    async def extend(self, worker: str, until: EpochMs) -> frozenset[str]:
        """Extend every lease of *worker*; the ids of those executions."""
        return await self._gate("extend", worker, lambda: self._extend(worker, until), writes=True)

    def _extend(self, worker: str, until: EpochMs) -> frozenset[str]:
        runs: Collection[Execution] = self.disk.tables[EXECUTIONS.name].values()
        ids = [run.id for run in runs if run.worker == worker]
        if ids:
            self.disk.settle({LEASES.name: dict.fromkeys(ids, until)})
        return frozenset(ids)

    async def ping(self) -> None:
        """Raises `StoreUnavailable` where the gate lets nobody through."""
        await self._gate("ping", "", lambda: None)

    async def trim(
        self, audit_before: EpochMs, replays_before: EpochMs, sessions_before: EpochMs, limit: int
    ) -> int:
        """Delete up to *limit* old records; how many went."""
        ages = (
            (AUDIT.name, "at", audit_before),
            (REPLAYS.name, "created_at", replays_before),
            (SESSIONS.name, "created_at", sessions_before),
            (LOGINS.name, "last_failure_at", sessions_before),
        )

        def trimmed() -> int:
            old = [
                (name, key)
                for name, at, before in ages
                for key, record in self.disk.tables[name].items()
                if getattr(record, at) < before
            ][:limit]
            gone: Changes = {}
            for name, key in old:
                gone.setdefault(name, {})[key] = None
            self.disk.settle(gone)
            return len(old)

        return await self._gate("trim", limit, trimmed, writes=True)

    async def backup(self, path: str) -> None:
        """There is no file to copy. Raises `StoreUnavailable`."""
        raise StoreUnavailable(detail="a simulated store cannot be backed up")

    async def close(self) -> None:
        """Nothing to release."""


def _taken(run: Execution, worker: str) -> Execution:
    return evolve(run, worker=worker, fence=run.fence + 1, version=run.version + 1, due_at=None)


def _leased(taken: Sequence[Execution], until: EpochMs) -> Changes:
    return {
        EXECUTIONS.name: {run.id: run for run in taken},
        LEASES.name: {run.id: until for run in taken},
    }
