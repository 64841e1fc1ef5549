"""
The journal: lines of the log for what this process commits, and the facts for metrics and spans.

Lines report ends of executions, and failed and retried steps. An execution ends in many ways: a
worker finishes it, a person cancels or rejects it, a sweep gives it up, a parent ends it. Each end
is a unit of work, so the line is written after the commit of the unit: once, by the process that
committed, and never for a unit that lost its race. If the answer to a commit is lost, the line is
missing; the record says the same.

Lines hold ids, names, reasons, durations and counts. An error is the recorded error, with secrets
masked, and is cut. A warning is for the people responsible for the workflow (a failure); info is
normal progress.

The first write that the store refuses (a full disk, say) has a line, and so has the store's
recovery.

An observer gets the same facts, and the time that each commit took. The maker of spans gets each
traced execution before and after the unit. Decision 208.
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
"""The most characters of an error in a line."""

Line = Mapping[str, object]
R = TypeVar("R")

MOST_DEFINITIONS = 256
"""The most definitions whose kinds of steps are cached."""
UNKNOWN_KIND = "unknown"
REPEAT_S = 60.0
"""The time between two lines on a store that cannot be written."""
CALM_S = 10.0
"""
The time without a failed write that shows the end of a full disk, on which small writes still fit.
After any other failure the first write that succeeds shows its end.
"""


@frozen
class RecordedEvent:
    """An event with its execution in the same unit. `kind`: the kind of the event's step, or ""."""

    event: Event
    run: Execution
    kind: str


@frozen
class CommittedUnit:
    """
    The content of one unit. `seconds`: how long the commit took. `records`: the last version of
    each record. `events`: the events of executions in the unit. `answers`: the statuses that
    webhooks answered.
    """

    seconds: float
    records: Sequence[Any]
    events: Sequence[RecordedEvent]
    answers: Sequence[int]


@frozen
class ExecutionChange:
    """
    The change of an execution by a unit. `before`: the execution before, or None if the execution
    is new. `run`: the execution now. `seconds`: how long the commit took. `definition`: the
    execution's definition, if the unit read it.
    """

    before: Execution | None
    run: Execution
    events: Sequence[Event]
    seconds: float
    definition: Definition | None


ChangeObserver = Callable[[ExecutionChange], None]
"""
Called in the event loop with each committed change of a traced execution; must neither wait nor
raise.
"""


class Observer(Protocol):
    """An observer of commits. Called in the event loop; must neither wait nor raise."""

    def committed(self, unit: CommittedUnit) -> None:
        """Called when *unit* is durable."""

    def collided(self) -> None:
        """Called when a unit has lost its race; the unit will be repeated."""


def journalled(
    store: Store, observer: Observer | None = None, changes: ChangeObserver | None = None
) -> Store:
    """
    *store* with units that write their lines and call *observer* and *changes* after the commit.
    """
    return cast("Store", _JournalStore(store, observer, changes))


class _Writes:
    """Logs when the store ceases to take writes, and when it takes writes again."""

    def __init__(self) -> None:
        self._calm_at: float | None = None
        self._logged_at: float | None = None

    @contextmanager
    def watched(self, writes: bool = True) -> Iterator[None]:
        """
        Watch one access to the store. *writes*: whether the access writes; only a write can show
        that the store takes writes again.
        """
        try:
            yield
        except StoreClosed:
            raise
        except StoreUnavailable as error:
            now = monotonic()
            if self._logged_at is None or now >= self._logged_at + REPEAT_S:
                log.warning("the store cannot write", extra={"detail": error.detail})
                self._logged_at = now
            self._calm_at = now + (CALM_S if error.is_full else 0)
            raise
        if writes and self._calm_at is not None and monotonic() >= self._calm_at:
            self._calm_at = self._logged_at = None
            log.warning("the store writes again")


class _JournalStore:
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
                yield _JournalUnit(made, self._writes)
            else:
                yield _ObservedUnit(made, self._writes, self._observer, self._kinds)


class _JournalUnit:
    """A unit that writes lines for its events after the commit."""

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
            if event.kind in _LINES and (run := self._runs.get(event.execution_id)) is not None:
                level, text, about = _LINES[event.kind]
                log.log(level, text, extra={**_ids_of(run), **about(run, event)})


class _ObservedUnit(_JournalUnit):
    """A journal unit that also gives an observer its records, events and answers."""

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
        events = [
            RecordedEvent(event, run, await self._kind_of(run, event))
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
        self._observer.committed(CommittedUnit(took, records, events, tuple(self._answers)))

    async def _kind_of(self, run: Execution, event: Event) -> str:
        """The kind of the event's step. The unit has read the definition already, in general."""
        key = event.data.get("step")
        if not isinstance(key, str):
            return ""
        known, place = self._kinds, (run.workflow_id, run.revision)
        if place not in known:
            snapshot = await self._unit.get(DefinitionSnapshot, *place)
            if len(known) >= MOST_DEFINITIONS:
                known.pop(next(iter(known)))
            steps = snapshot.definition.walk() if snapshot is not None else ()
            known[place] = {step.name: STEP_KINDS.get(type(step), UNKNOWN_KIND) for step in steps}
        return known[place].get(name_of(key), UNKNOWN_KIND)


class _ComparedUnit:
    """A unit that compares its executions with those that it read before."""

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
                before = self._before.get(run.id)
                self._changes(ExecutionChange(before, run, events, took, definition))


def _ids_of(run: Execution) -> Line:
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
        **({"error": short_error(run, run.error)} if run.error else {}),
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
        "error": short_error(run, str(event.data.get("error") or event.data.get("reason") or "")),
    }


def short_error(run: Execution, error: str) -> str:
    """*error* with the secrets of *run* masked, cut to `MOST_OF_AN_ERROR` characters."""
    return mask_text(error, secret_values(run))[:MOST_OF_AN_ERROR]


_Kinds = dict[tuple[str, int], Mapping[str, str]]
"""The kind of each step, by workflow and revision."""
STEP_KINDS: Mapping[Any, str] = {row.build: kind for kind, row in KINDS.items()}
"""The name of the kind of each class of steps."""
_LineFormat = tuple[int, str, Callable[[Execution, Event], Line]]
_LINES: Mapping[EventKind, _LineFormat] = {
    EventKind.EXECUTION_COMPLETED: (logging.INFO, "an execution ended", _end),
    EventKind.EXECUTION_CANCELLED: (logging.INFO, "an execution ended", _end),
    EventKind.EXECUTION_FAILED: (logging.WARNING, "an execution ended", _end),
    EventKind.EXECUTION_INTERRUPTED: (logging.WARNING, "an execution is interrupted", _interrupted),
    EventKind.STEP_FAILED: (logging.WARNING, "a step failed", _step),
    EventKind.STEP_RETRYING: (logging.INFO, "a step is tried again", _step),
    EventKind.STEP_POSTPONED: (logging.WARNING, "a step could not start", _step),
}
assert all(EventKind(f"execution.{one.lower()}") in _LINES for one in EXECUTION.final)
