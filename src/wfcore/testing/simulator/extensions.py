"""Extensions of simulated worlds: an invariant of your own, a store of your own."""

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
    Everything stored, as it will be when the change is made: `tables[Execution]` are all
    executions by id; of records with several keys, by the tuple of them.
    """

    def __init__(self, tables: Mapping[str, Rows], changes: Changes) -> None:
        self._tables = tables
        self._changes = changes

    def __getitem__(self, kind: type[R]) -> Mapping[Hashable, R]:
        name = table_of(kind).name
        merged: dict[Hashable, Any] = {**self._tables[name], **self._changes.get(name, {})}
        return {key: record for key, record in merged.items() if record is not None}


Invariant = Callable[[Tables], None]
"""Called before every change of the store. Raises `AssertionError` where something is wrong."""


def no_invariant(tables: Tables) -> None:
    """No invariant beyond the promises of the service."""


class NewStore(Protocol):
    """Makes a store for simulated worlds."""

    def __call__(
        self, gate: SchedulingPoint, disk: Disk, *, now: Callable[[], EpochMs], ended: set[str]
    ) -> Store:
        """
        A handle on the one store, for one process.

        Every read and every commit passes *gate* and awaits nothing else: so others run in
        between, and things go wrong. What is stored lies on *disk*, or is told to it by
        `settle` in the step of the commit, so that it can be judged. *now* is the time of that
        process; *ended*: workers that are known to be dead, for all handles.
        """


in_memory: NewStore = MemoryStore


def with_invariant(judge: Watch, watch: Invariant) -> Watch:
    """A `Watch` of the judge, and of *watch*."""
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
