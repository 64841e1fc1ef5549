"""
What this process commits: lines of its log (ends of executions, failed and retried steps), what
an observer counts, and what spans are made of.

An execution ends in many places: a worker finishes it, somebody cancels or rejects, a sweep gives
it up, a parent takes it along. All of them are units of work, so the line is written where a unit
commits: once, by the process that did it, and never for a unit that lost its race. If the answer to
a commit is lost, so is the line; the record says the same.

Lines hold ids, names, reasons, durations and counts. An error is the recorded one, in which secrets
are masked, and is cut. Levels: a warning is for whoever answers for the workflow (a failure), info
is the course of things.

The first write that the store refuses (a full disk, say) is a line, too, and so is its recovery.

An observer gets the same facts, and the time that each commit took. Whoever makes spans gets the
executions that are traced, as they were and as they are. Decision 208.
"""

import logging
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from time import monotonic, perf_counter
from typing import Any, Protocol, TypeVar, cast

from attrs import frozen

from wfcore.errors import Stale, StoreClosed, StoreUnavailable
from wfcore.model.event import Event, EventKind
from wfcore.model.execution import Execution, ExecutionStatus
from wfcore.model.workflow import Definition, DefinitionSnapshot
from wfcore.ports.store import Store, head_of
from wfcore.rules.definition.steps import KINDS
from wfcore.rules.execution.budget import total
from wfcore.rules.execution.machine import EXECUTION
from wfcore.rules.execution.scope import name_of
from wfcore.rules.masking import mask_text, secret_values
from wfcore.time import EpochMs

log = logging.getLogger("wfcore.executions")

MOST_OF_AN_ERROR = 500
"""Characters of an error in a line."""

Line = Mapping[str, object]
R = TypeVar("R")

MOST_DEFINITIONS = 256
"""Definitions that are remembered for the kinds of their steps."""
UNKNOWN_KIND = "unknown"
SAID_S = 60.0
"""A store that cannot be written is one line a minute."""
CALM_S = 10.0
"""Without a failed write, after the disk was full: some still fit and do not show that it is over.
After any other failure the first write that succeeds shows it."""


@frozen
class Happened:
    """An event with its execution as it was stored with it; `kind`: of its step, if it has one."""

    event: Event
    run: Execution
    kind: str


@frozen
class Committed:
    """
    What one unit stored: its records, each as it was put last; the events of its executions; the
    statuses that webhooks answered. `seconds`: how long the commit took.
    """

    seconds: float
    records: Sequence[Any]
    happened: Sequence[Happened]
    answers: Sequence[int]


@frozen
class Changed:
    """
    What a unit changed in an execution: how it stood before (None: it is new), and stands now.
    `seconds`: how long the commit took. `definition`: its own, if the unit read it.
    """

    before: Execution | None
    run: Execution
    events: Sequence[Event]
    seconds: float
    definition: Definition | None


ChangeObserver = Callable[[Changed], None]
"""Told of committed changes of traced executions. Called in the event loop; never raises."""


class Observer(Protocol):
    """What is told of commits. Called in the event loop; must neither wait nor raise."""

    def committed(self, unit: Committed) -> None:
        """A unit is durable."""

    def collided(self) -> None:
        """A unit lost its race, and will be repeated."""


def journalled(
    store: Store, observer: Observer | None = None, changes: ChangeObserver | None = None
) -> Store:
    """
    *store*, of which every unit writes its lines, and tells *observer* and *changes* once it has
    committed.
    """
    return cast("Store", _Store(store, observer, changes))


class _Writes:
    """Whether the store takes writes: said when it ceases to, and when it does again."""

    def __init__(self) -> None:
        self._calm_at: float | None = None
        self._said_at: float | None = None

    @contextmanager
    def watched(self, writes: bool = True) -> Iterator[None]:
        """*writes*: whether something is written, which alone shows that the store takes it."""
        try:
            yield
        except StoreClosed:
            raise
        except StoreUnavailable as error:
            now = monotonic()
            if self._said_at is None or now >= self._said_at + SAID_S:
                log.warning("the store cannot write", extra={"detail": error.detail})
                self._said_at = now
            self._calm_at = now + (CALM_S if error.is_full else 0)
            raise
        if writes and self._calm_at is not None and monotonic() >= self._calm_at:
            self._calm_at = self._said_at = None
            log.warning("the store writes again")


class _Store:
    def __init__(
        self, store: Store, observer: Observer | None, changes: ChangeObserver | None
    ) -> None:
        self._store = store
        self._observer = observer
        self._changes = changes
        self._kinds: _Kinds = {}
        self._writes = _Writes()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def ping(self) -> None:
        with self._writes.watched():
            await self._store.ping()

    @asynccontextmanager
    async def unit(self) -> AsyncIterator[Any]:
        async with self._store.unit() as unit:
            made = unit
            if self._changes is not None:
                made = _ComparedUnit(made, self._changes)
            if self._observer is None:
                yield _Unit(made, self._writes)
            else:
                yield _ObservedUnit(made, self._writes, self._observer, self._kinds)


class _Unit:
    """A unit that remembers what of it is told."""

    def __init__(self, unit: Any, writes: _Writes) -> None:
        self._unit = unit
        self._writes = writes
        self._runs: dict[str, Execution] = {}
        self._events: list[Event] = []
        self._stores = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._unit, name)

    def put(self, record: Any) -> None:
        self._stores = True
        if isinstance(record, Execution):
            self._runs[record.id] = record
        self._unit.put(record)

    def append(self, entry: Any, record: str | None = None) -> None:
        self._stores = True
        if isinstance(entry, Event) and entry.kind is not EventKind.STEP_LOG:
            self._events.append(entry)
        self._unit.append(entry, record)

    async def commit(self) -> None:
        with self._writes.watched(self._stores):
            await self._unit.commit()
        for event in self._events:
            if event.kind in _TOLD and (run := self._runs.get(event.execution_id)) is not None:
                level, says, about = _TOLD[event.kind]
                log.log(level, says, extra={**_who(run), **about(run, event)})


class _ObservedUnit(_Unit):
    """It also remembers what is counted."""

    def __init__(self, unit: Any, writes: _Writes, observer: Observer, kinds: "_Kinds") -> None:
        super().__init__(unit, writes)
        self._observer = observer
        self._kinds = kinds
        self._records: dict[tuple[type[Any], str], Any] = {}
        self._answers: list[int] = []

    def put(self, record: Any) -> None:
        if (id := getattr(record, "id", None)) is not None:
            self._records[type(record), id] = record
        super().put(record)

    def tally(self, webhook_id: str, date: str, status: int, at: EpochMs) -> None:
        self._answers.append(status)
        self._unit.tally(webhook_id, date, status, at)

    async def commit(self) -> None:
        happened = [
            Happened(event, run, await self._kind_of(run, event))
            for event in self._events
            if (run := self._runs.get(event.execution_id)) is not None
        ]
        began = perf_counter()
        try:
            await super().commit()
        except Stale:
            self._observer.collided()
            raise
        took = perf_counter() - began
        records = tuple(self._records.values())
        self._observer.committed(Committed(took, records, happened, tuple(self._answers)))

    async def _kind_of(self, run: Execution, event: Event) -> str:
        """The kind of the event's step, by the definition, which whoever moved it has just read."""
        key = event.data.get("step")
        if not isinstance(key, str):
            return ""
        known, place = self._kinds, (run.workflow_id, run.revision)
        if place not in known:
            snapshot = await self._unit.get(DefinitionSnapshot, *place)
            if len(known) >= MOST_DEFINITIONS:
                known.pop(next(iter(known)))
            steps = snapshot.definition.walk() if snapshot is not None else ()
            known[place] = {step.name: _KINDS.get(type(step), UNKNOWN_KIND) for step in steps}
        return known[place].get(name_of(key), UNKNOWN_KIND)


class _ComparedUnit:
    """It remembers how executions stood before."""

    def __init__(self, unit: Any, changes: ChangeObserver) -> None:
        self._unit = unit
        self._changes = changes
        self._before: dict[str, Execution] = {}
        self._definitions: dict[tuple[Any, ...], Definition] = {}
        self._runs: dict[str, Execution] = {}
        self._events: list[Event] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._unit, name)

    async def get(self, kind: type[Any], *key: Any) -> Any:
        found = await self._unit.get(kind, *key)
        if kind is Execution and found is not None and found.id not in self._runs:
            self._before[found.id] = found
        elif kind is DefinitionSnapshot and found is not None:
            self._definitions[key] = found.definition
        return found

    async def head(self, id: str) -> Any:
        found = await head_of(self._unit, id)
        if found is not None and id not in self._runs:
            self._before[id] = found
        return found

    def put(self, record: Any) -> None:
        if isinstance(record, Execution):
            self._runs[record.id] = record
        self._unit.put(record)

    def append(self, entry: Any, record: str | None = None) -> None:
        if isinstance(entry, Event):
            self._events.append(entry)
        self._unit.append(entry, record)

    async def commit(self) -> None:
        began = perf_counter()
        await self._unit.commit()
        took = perf_counter() - began
        for run in self._runs.values():
            if run.trace is not None and run.trace.recorded:
                events = [event for event in self._events if event.execution_id == run.id]
                definition = self._definitions.get((run.workflow_id, run.revision))
                self._changes(Changed(self._before.get(run.id), run, events, took, definition))


def _who(run: Execution) -> Line:
    about = {
        "execution_id": run.id,
        "workflow_id": run.workflow_id,
        "workflow": run.workflow_name,
        "request_id": run.request_id,
        "trigger_id": run.trigger_id,
        "parent_id": run.parent_id,
        "trace_id": run.trace.id if run.trace else None,
    }
    return {name: value for name, value in about.items() if value is not None}


def _end(run: Execution, event: Event) -> Line:
    spent, reason = total(run.every_result), run.status_reason
    return {
        "status": run.status.value,
        "reason": reason.code.value if reason else None,
        "step": reason.step_name if reason else None,
        "started_by": run.trigger_source.value,
        "duration_ms": (run.completed_at or event.at) - run.accepted_at,
        "steps": len(run.step_results),
        "input_tokens": spent.input_tokens,
        "output_tokens": spent.output_tokens,
        "cost_usd": spent.cost_usd,
        **({"error": _short(run, run.error)} if run.error else {}),
    }


def _interrupted(run: Execution, event: Event) -> Line:
    return {"status": ExecutionStatus.INTERRUPTED.value, "step": event.data.get("step")}


def _step(run: Execution, event: Event) -> Line:
    key = str(event.data["step"])
    result = run.step_results.get(key)
    return {
        "step": key,
        "attempt": result.attempts if result else None,
        "duration_ms": result.duration_ms if result else None,
        "retry_at": event.data.get("retryAt"),
        "error": _short(run, str(event.data.get("error") or event.data.get("reason") or "")),
    }


def _short(run: Execution, error: str) -> str:
    return mask_text(error, secret_values(run))[:MOST_OF_AN_ERROR]


_Kinds = dict[tuple[str, int], Mapping[str, str]]
"""By workflow and revision: the kind of each step."""
_KINDS: Mapping[Any, str] = {row.build: kind for kind, row in KINDS.items()}
_Told = tuple[int, str, Callable[[Execution, Event], Line]]
_TOLD: Mapping[EventKind, _Told] = {
    EventKind.EXECUTION_COMPLETED: (logging.INFO, "an execution ended", _end),
    EventKind.EXECUTION_CANCELLED: (logging.INFO, "an execution ended", _end),
    EventKind.EXECUTION_FAILED: (logging.WARNING, "an execution ended", _end),
    EventKind.EXECUTION_INTERRUPTED: (logging.WARNING, "an execution is interrupted", _interrupted),
    EventKind.STEP_FAILED: (logging.WARNING, "a step failed", _step),
    EventKind.STEP_RETRYING: (logging.INFO, "a step is tried again", _step),
    EventKind.STEP_POSTPONED: (logging.WARNING, "a step could not start", _step),
}
assert all(EventKind(f"execution.{one.lower()}") in _TOLD for one in EXECUTION.final)
