"""The store in memory after each commit of a script: the answers that the other store must give."""

from collections import Counter
from collections.abc import Callable, Collection, Coroutine, Mapping, Sequence
from typing import Any, TypeVar

from attrs import evolve, frozen

from wfcore.errors import Stale
from wfcore.memory import Disk, MemoryStore
from wfcore.memory.runs import can_run, waits
from wfcore.memory.store import MemoryUnit
from wfcore.memory.tables import EXECUTIONS, LEASES, SERVED, table_of
from wfcore.model.event import Event
from wfcore.model.execution import Execution
from wfcore.ports.records import KIND_OF
from wfcore.ports.store import Slots
from wfcore.time import DurationMs, EpochMs, Now, later

R = TypeVar("R")


def key_of(record: Any) -> tuple[Any, ...]:
    """The values that identify *record*, which may be an entry of a log."""
    if isinstance(record, Event):
        return record.execution_id, record.number
    kind = KIND_OF.get(type(record))
    return kind.key_of(record) if kind else (record.id,)


@frozen
class CollectedWrite:
    """A write that a unit collects, and its description."""

    words: str
    collect: Callable[[Any], None]

    def __str__(self) -> str:
        return self.words


class Reference:
    """
    The rows of a store after a commit. The rows never change: the next commit makes a new
    `Reference`.
    """

    def __init__(self, now: Now, disk: Disk | None = None) -> None:
        self._now = now
        self._disk = disk or Disk()

    @property
    def rows(self) -> Mapping[str, Mapping[Any, Any]]:
        """The rows by table and key, without empty tables."""
        return {name: rows for name, rows in self._disk.tables.items() if rows}

    def all(self, kind: type[R]) -> list[R]:
        """Every record of that kind."""
        return list(self._disk.tables[table_of(kind).name].values())

    def read(self, query: Callable[[Any], Any], changes: Sequence[CollectedWrite] = ()) -> Any:
        """The answer to *query* in a unit that has collected *changes*."""
        return _run(query(_collected(self._store(self._disk), changes)))

    def after(self, changes: Sequence[CollectedWrite]) -> "Reference | None":
        """The rows after a commit of *changes*; None if the commit is refused as stale."""
        disk = self._copy()
        try:
            _run(_collected(self._store(disk), changes).commit())
        except Stale:
            return None
        return Reference(self._now, disk)

    def extended(
        self, worker: str, ids: Collection[str], lease_ms: DurationMs
    ) -> "tuple[Reference, Mapping[str, EpochMs | None]]":
        """The rows after *worker* has extended its leases, and the result of `extend`."""
        disk = self._copy()
        held = _run(self._store(disk).extend(worker, ids, lease_ms))
        return Reference(self._now, disk), held

    def claimed(self, claim: "ClaimCall", got: Sequence[Execution]) -> "Reference":
        """
        The rows after *claim* returned *got*. Raises `AssertionError` if *claim* cannot return
        *got*.

        Among accounts that hold equally few places and were served at the same time, a store may
        choose.
        """
        due = [run for run in self.all(Execution) if waits(run) and (run.due_at or 0) <= claim.now]
        due = [run for run in due if claim.wants(run)]
        held = Counter(run.owner_id for run in self.all(Execution) if run.worker == claim.worker)
        served: dict[Any, EpochMs] = dict(self._disk.tables[SERVED.name])
        lately = {owner for owner, at in served.items() if at > claim.now - claim.slots.lately_ms}
        for run in got:
            assert claim.goes_on(due, held, lately), f"{run.id} took a place kept for others"
            stored = _next_of(due, held, served, run)
            expected = evolve(
                stored,
                worker=claim.worker,
                fence=stored.fence + 1,
                version=stored.version + 1,
                due_at=None,
            )
            assert run == expected, f"{run} was given, {expected} expected"
            due.remove(stored)
            held[run.owner_id] += 1
            served[run.owner_id] = claim.now
        over = len(got) >= claim.limit or not claim.goes_on(due, held, lately)
        assert over, f"more could have been taken: {[run.id for run in due]}"
        disk = self._copy()
        disk.settle(
            {
                EXECUTIONS.name: {run.id: run for run in got},
                SERVED.name: {run.owner_id: claim.now for run in got},
                LEASES.name: dict.fromkeys(
                    (run.id for run in got), later(claim.now, claim.lease_ms)
                ),
            }
        )
        return Reference(self._now, disk)

    def _store(self, disk: Disk) -> MemoryStore:
        return MemoryStore(_at_once, disk, now=self._now)

    def _copy(self) -> Disk:
        disk = Disk()
        disk.tables.update({name: dict(rows) for name, rows in self._disk.tables.items()})
        return disk


@frozen
class ClaimCall:
    """A call of `Store.claim` at the time *now* of the store."""

    worker: str
    now: EpochMs
    lease_ms: DurationMs
    slots: Slots
    limit: int
    ids: Collection[str] | None = None
    able: Collection[str] | None = None

    def wants(self, run: Execution) -> bool:
        """Whether the claim may return *run*."""
        return can_run(self.able, run) and (self.ids is None or run.id in self.ids)

    def goes_on(
        self, due: Sequence[Execution], held: Counter[str], lately: Collection[str]
    ) -> bool:
        """Whether one more of *due* must be taken. The last free place is kept for others."""
        free = self.slots.places - held.total()
        fewest = min((held[one.owner_id] for one in due), default=0)
        if not due or free <= 0 or fewest == 0 or free > 1:
            return bool(due) and free > 0
        return len({*lately, *(owner for owner, count in held.items() if count)}) == 1


def _next_of(
    due: Sequence[Execution], held: Counter[str], served: Mapping[Any, EpochMs], run: Execution
) -> Execution:
    """
    The stored record of *run*. Raises `AssertionError` if the turn of another execution is earlier.
    """
    of_account = [one for one in due if one.owner_id == run.owner_id]
    stored = next((one for one in of_account if one.id == run.id), None)
    assert stored is not None, f"{run.id} was not due, or held"
    fewest = min(held[one.owner_id] for one in due)
    assert held[run.owner_id] == fewest, f"{run.id} came before an account with fewer places"
    longest = min(served.get(one.owner_id, 0) for one in due if held[one.owner_id] == fewest)
    turn = served.get(run.owner_id, 0) == longest
    assert turn, f"{run.id} came before an account that was served longer ago"
    first = min((one.due_at or 0) for one in of_account)
    assert stored.due_at == first, f"{run.id} came before an earlier one of its account"
    return stored


def _collected(store: MemoryStore, changes: Sequence[CollectedWrite]) -> MemoryUnit:
    unit = store.unit()
    for change in changes:
        change.collect(unit)
    return unit


async def _at_once(name: str, about: object, apply: Callable[[], R], *, writes: bool = False) -> R:
    """A `SchedulingPoint` without other tasks."""
    return apply()


def _run(work: Coroutine[Any, Any, R]) -> R:
    """The result of *work*, which never waits."""
    try:
        work.send(None)
    except StopIteration as end:
        result: R = end.value
        return result
    raise AssertionError("the reference never waits")
