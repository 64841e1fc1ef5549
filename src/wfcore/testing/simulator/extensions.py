"""Extensions of simulated worlds: your own invariant, your own store."""

from collections.abc import Callable, Hashable, Mapping
from typing import Any, Protocol, TypeVar

from wfcore.memory import Disk, MemoryStore
from wfcore.memory.disk import Changes, Rows, SchedulingPoint, Watch
from wfcore.memory.tables import table_of
from wfcore.ports.store import Store
from wfcore.testing.simulator.scheduler import Violation
from wfcore.time import EpochMs

R = TypeVar("R")


class Tables:
    """
    All stored records as they will be after the change. `tables[Execution]` contains all executions
    by id; records with several keys are found by the tuple of these keys.
    """

    def __init__(self, tables: Mapping[str, Rows], changes: Changes) -> None:
        self._tables = tables
        self._changes = changes

    def __getitem__(self, kind: type[R]) -> Mapping[Hashable, R]:
        name = table_of(kind).name
        merged: dict[Hashable, Any] = {**self._tables[name], **self._changes.get(name, {})}
        return {key: record for key, record in merged.items() if record is not None}


Invariant = Callable[[Tables], None]
"""
A function called before every change of the store. Raises `AssertionError` for a wrong change.
"""


def no_invariant(tables: Tables) -> None:
    """An invariant that adds nothing to the promises of the service."""


class NewStore(Protocol):
    """A function that makes a store for simulated worlds."""

    def __call__(
        self, gate: SchedulingPoint, disk: Disk, *, now: Callable[[], EpochMs], ended: set[str]
    ) -> Store:
        """
        Return a handle on the one store, for one process.

        Every read and every commit passes *gate* and awaits nothing else, so that other tasks run
        in between and faults occur. The stored rows lie on *disk*. A store that keeps its rows
        elsewhere passes each commit to `disk.settle` in the step of the commit, so that the commit
        can be judged. *now* is the time of that process; *ended* contains the workers that are
        known to be dead, for all handles.
        """


in_memory: NewStore = MemoryStore


def with_invariant(judge: Watch, watch: Invariant) -> Watch:
    """A `Watch` that calls *judge* and then *watch*."""
    if watch is no_invariant:
        return judge

    def both(tables: Mapping[str, Rows], changes: Changes) -> None:
        judge(tables, changes)
        try:
            watch(Tables(tables, changes))
        except AssertionError as broken:
            name = getattr(watch, "__name__", type(watch).__name__)
            raise Violation(f"invariant: {name}: {broken}") from broken

    return both
