"""
What a store contains, as plain dicts: the model that `StoreComparison` compares with.

There is no caching and no cleverness: a state is a dict of dicts, a change is a function that says
whether it is allowed, and a query is a function of a state.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from copy import copy
from typing import Any, TypeVar

from attrs import evolve, frozen

from wfcore.model.approval import Approval
from wfcore.model.event import Event
from wfcore.model.execution import Artifact, Callback, Execution, ExecutionStatus, Replay
from wfcore.model.notice import Notice
from wfcore.model.page import Page, PageCursor, PageRequest
from wfcore.model.webhook import Tally
from wfcore.model.workflow import Workflow
from wfcore.ports.records import KIND_OF
from wfcore.ports.store import Slots
from wfcore.time import DAY, EpochMs, Now

R = TypeVar("R")
Key = tuple[Any, ...]

_LOGGED: dict[type, tuple[str, ...]] = {
    Event: ("execution_id", "number"),
    Tally: ("webhook_id", "date", "status"),
}
"""The fields that identify what is no record of `RECORDS`, where it is not `id`."""

DUE = (
    ExecutionStatus.PENDING,
    ExecutionStatus.RUNNING,
    ExecutionStatus.AWAITING_APPROVAL,
)
OVER = (ExecutionStatus.COMPLETED, ExecutionStatus.FAILED, ExecutionStatus.CANCELLED)


def key_of(record: Any) -> Key:
    kind = KIND_OF.get(type(record))
    names = kind.key if kind else _LOGGED.get(type(record), ("id",))
    return tuple(getattr(record, name) for name in names)


class State:
    """Every record by class and key, and the end of every lease. `now` tells the store's time."""

    def __init__(self, now: Now) -> None:
        self.now = now
        self.tables: dict[type, dict[Key, Any]] = {}
        self.leases: dict[str, int] = {}
        self.served: dict[str, int] = {}

    def __copy__(self) -> "State":
        other = State(self.now)
        other.tables = {kind: dict(rows) for kind, rows in self.tables.items()}
        other.leases = dict(self.leases)
        other.served = dict(self.served)
        return other

    def get(self, kind: type[R], *key: Any) -> R | None:
        return self.tables.get(kind, {}).get(key)

    def all(self, kind: type[R]) -> list[R]:
        return list(self.tables.get(kind, {}).values())

    def set(self, record: Any) -> None:
        self.tables.setdefault(type(record), {})[key_of(record)] = record

    def drop(self, kind: type, holds: Callable[[Any], bool]) -> None:
        records: list[Any] = self.all(kind)
        for record in records:
            if holds(record):
                del self.tables[kind][key_of(record)]


@frozen
class Put:
    """A record passed to `put` or `append`."""

    record: Any

    def __str__(self) -> str:
        version = getattr(self.record, "version", "none")
        return f"put {type(self.record).__name__} {key_of(self.record)} from version {version}"

    def __call__(self, state: State) -> bool:
        record = self.record
        stored = state.get(type(record), *key_of(record))
        free = not any(_takes_the_place(other, record) for other in state.all(type(record)))
        if not hasattr(record, "version"):
            state.set(record)
            return stored is None
        known = stored.version if stored is not None else 0
        fits = record.version == known or _replaces(stored, record)
        if isinstance(record, Execution) and not _keeps_lease(stored, record):
            state.leases.pop(record.id, None)
        state.set(evolve(record, version=record.version + 1))
        return fits and free


@frozen
class Delete:
    """A record to delete. Without *version*, whichever version is stored."""

    kind: type
    key: Key
    version: int | None = None

    def __call__(self, state: State) -> bool:
        stored: Any = state.get(self.kind, *self.key)
        fits = self.version is None or (stored is not None and stored.version == self.version)
        state.drop(self.kind, lambda record: key_of(record) == self.key)
        for owned, owner in KIND_OF[self.kind].owns:
            state.drop(owned, self._is_owner(owner))
        return fits

    def _is_owner(self, field: str) -> Callable[[Any], bool]:
        return lambda record: (getattr(record, field),) == self.key


@frozen
class Purge:
    """An execution with all that belongs to it."""

    id: str

    def __call__(self, state: State) -> bool:
        state.drop(Execution, lambda run: run.id == self.id)
        state.leases.pop(self.id, None)
        state.drop(Callback, lambda owed: owed.id == self.id)
        state.drop(Notice, lambda told: told.execution_id == self.id)
        for kind in (Event, Approval, Artifact):
            state.drop(kind, lambda record: record.execution_id == self.id)
        return True


@frozen
class Count:
    """One answer of a webhook to count."""

    webhook_id: str
    date: str
    status: int
    at: EpochMs

    def __call__(self, state: State) -> bool:
        key = (self.webhook_id, self.date, self.status)
        old = state.get(Tally, *key)
        count, last = (old.count, old.last_at) if old else (0, self.at)
        state.set(Tally(*key, count + 1, max(last, self.at)))
        return True


Change = Put | Delete | Purge | Count


def _takes_the_place(other: Any, record: Any) -> bool:
    """Whether another record already has a value that must be unique."""
    kind = KIND_OF.get(type(record))
    if kind is None or not kind.unique or key_of(other) == key_of(record):
        return False
    return all(getattr(other, name) == getattr(record, name) for name in kind.unique)


def _replaces(stored: Any, record: Any) -> bool:
    """
    Whether the record is old enough to be replaced: after a day an idempotency key may be reused.
    """
    if not isinstance(record, Replay) or stored is None:
        return False
    return record.version == 0 and record.created_at - stored.created_at >= DAY


def _keeps_lease(stored: Execution | None, record: Execution) -> bool:
    return stored is not None and record.worker is not None and stored.worker == record.worker


def after(state: State, changes: Sequence[Change]) -> tuple[State, bool]:
    """The state with *changes* applied, and whether all of them were allowed."""
    state, fits = copy(state), True
    for change in changes:
        fits = change(state) and fits
    return state, fits


def waiting(
    state: State, now: EpochMs, ids: Collection[str] | None, able: Collection[str] | None
) -> Iterator[Execution]:
    """What a worker may claim of *ids*, given what it is *able* to run."""
    for run in state.all(Execution):
        free = run.status in DUE and run.worker is None
        due = run.due_at is not None and run.due_at <= now
        wanted = ids is None or run.id in ids
        if free and due and wanted and (able is None or {*run.capabilities} <= {*able}):
            yield run


def claimed(
    state: State,
    worker: str,
    now: EpochMs,
    until: EpochMs,
    slots: Slots,
    limit: int,
    got: Any,
    ids: Collection[str] | None = None,
    able: Collection[str] | None = None,
) -> None:
    """
    Whether *got* is a possible result of a claim; the state includes it afterwards.

    Among accounts with equally few slots that were served at the same time, the store may choose.
    """
    due = list(waiting(state, now, ids, able))
    held = Counter(run.owner_id for run in state.all(Execution) if run.worker == worker)
    lately = {owner for owner, at in state.served.items() if at > now - slots.lately_ms}
    for run in got:
        assert _may_go_on(due, held, slots, lately), f"{run.id} took a place kept for others"
        fewest = min(held[one.owner_id] for one in due)
        few = {one.owner_id for one in due if held[one.owner_id] == fewest}
        longest = min(state.served.get(owner, 0) for owner in few)
        of_account = [one for one in due if one.owner_id == run.owner_id]
        stored = next((one for one in of_account if one.id == run.id), None)
        assert stored is not None, f"{run.id} was not due, or held"
        assert held[run.owner_id] == fewest, f"{run.id} came before an account with fewer places"
        turn = state.served.get(run.owner_id, 0) == longest
        assert turn, f"{run.id} came before an account that was served longer ago"
        first = min((one.due_at or 0) for one in of_account)
        assert stored.due_at == first, f"{run.id} came before an earlier one of its account"
        taken = evolve(
            stored,
            worker=worker,
            fence=stored.fence + 1,
            version=stored.version + 1,
            due_at=None,
        )
        assert run == taken, f"{run} was given, {taken} expected"
        due.remove(stored)
        held[run.owner_id] += 1
        state.set(taken)
        state.leases[run.id] = until
        state.served[run.owner_id] = now
    over = len(got) >= limit or not _may_go_on(due, held, slots, lately)
    assert over, f"more could have been taken: {[run.id for run in due]}"


def _may_go_on(
    due: Sequence[Execution], held: Counter[str], slots: Slots, lately: Collection[str]
) -> bool:
    free = slots.places - held.total()
    fewest = min((held[one.owner_id] for one in due), default=0)
    if not due or free <= 0 or fewest == 0 or free > 1:
        return bool(due) and free > 0
    return len({*lately, *(owner for owner, count in held.items() if count)}) == 1


def newest(records: Sequence[Any], at: str = "created_at") -> list[Any]:
    return sorted(records, key=lambda record: (getattr(record, at), record.id), reverse=True)


def by_name(records: Sequence[Workflow]) -> list[Workflow]:
    return sorted(records, key=lambda record: (record.name, record.id))


def cut(
    records: Sequence[Any], page: PageRequest, key: str = "created_at", ascending: bool = False
) -> Page[Any]:
    def place(one: Any) -> tuple[Any, str]:
        return getattr(one, key), one.id

    total, after = len(records), page.after
    if after is not None:
        edge = after.key, after.id
        records = [r for r in records if (place(r) > edge if ascending else place(r) < edge)]
    rows = tuple(records[page.offset : page.offset + page.size])
    next = PageCursor(*place(rows[-1])) if len(records) > page.offset + page.size else None
    return Page(rows, None if after else total, page.page, page.size, next)


def only(first: Sequence[Any]) -> Any:
    return first[0] if first else None
