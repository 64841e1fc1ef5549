"""
The checks of steps and children that began again after a worker had died, against the promise of
each execution.

The checks read the logs and follow the parents, and use no rule of the core. EX-12, EX-14, EX-24,
EX-25, EX-26.
"""

from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

from wfcore.memory.tables import DEFINITIONS, EVENTS, EXECUTIONS
from wfcore.model.event import Event, EventKind
from wfcore.model.execution import Execution, ReasonCode, TriggerSource
from wfcore.model.workflow import Definition, DefinitionSnapshot, OnInterrupt, walk
from wfcore.testing.simulator.invariants import Tables

ONCE = frozenset({TriggerSource.OPEN_API, TriggerSource.WEBHOOK})
MOST = 3
"""How often the service may resume one execution."""


def forbidden_restarts(run: Execution, tables: Tables) -> Iterator[str]:
    """The steps and children of *run* that began again against the promise of *run*, in words."""
    log: tuple[Event, ...] = tables[EVENTS.name].get(run.id, ())
    snapshot: DefinitionSnapshot = tables[DEFINITIONS.name][run.workflow_id, run.revision]
    log = tuple(_without_last_words(log, snapshot.definition))
    kinds = [event.kind for event in log]
    runs: Mapping[Any, Execution] = tables[EXECUTIONS.name]
    if EventKind.EXECUTION_INTERRUPTED in kinds:
        later = kinds[kinds.index(EventKind.EXECUTION_INTERRUPTED) :]
        if (root := _root(run, runs)) in ONCE and EventKind.STEP_STARTED in later:
            yield f"began again: {run.id} came by {root}"
        if _resumed(later) > MOST:
            yield f"began again: {run.id} more than {MOST} times"
    for key in _restarted(log):
        step = snapshot.definition.step(key.rpartition(".")[2])
        own = getattr(step, "on_interrupt", None)
        if (own or snapshot.definition.on_interrupt) is OnInterrupt.FAIL:
            yield f"began again: {run.id}/{key} says onInterrupt: fail"
    yield from _children_again(run, tables)


def _without_last_words(log: tuple[Event, ...], definition: Definition) -> Iterator[Event]:
    """The log without the first start of each `onFailure` step, which is no restart. EX-31."""
    first = {step.name for _, step in walk(definition.on_failure)}
    for event in log:
        if event.kind is EventKind.STEP_STARTED and (name := event.data["step"]) in first:
            first.discard(str(name))
            continue
        yield event


def _root(run: Execution, runs: Mapping[Any, Execution]) -> TriggerSource:
    while run.parent_id is not None:
        run = runs[run.parent_id]
    return run.trigger_source


def _resumed(kinds: list[EventKind]) -> int:
    """
    The number of times RUNNING came right after INTERRUPTED, without `onFailure` between them.
    """
    told = [kind for kind in kinds if kind.startswith(("execution.", "failure."))]
    back = (EventKind.EXECUTION_INTERRUPTED, EventKind.EXECUTION_RUNNING)
    return sum(pair == back for pair in pairwise(told))


def _restarted(log: tuple[Event, ...]) -> Iterator[str]:
    """The steps that were in flight at an interruption and started again after it."""
    flying: set[str] = set()
    lost: set[str] = set()
    for event in log:
        step = str(event.data.get("step"))
        if event.kind is EventKind.APPROVAL_REVISED:
            lost = set()  # what follows is a new round, in which they begin by design
        elif event.kind is EventKind.EXECUTION_INTERRUPTED:
            lost, flying = lost | flying, set()
        elif event.kind is EventKind.STEP_STARTED:
            flying.add(step)
            if step in lost:
                yield step
        elif event.kind.startswith("step.") and event.kind is not EventKind.STEP_LOG:
            flying.discard(step)


def _children_again(run: Execution, tables: Tables) -> Iterator[str]:
    """
    The steps that started another child although a worker's death had ended the child before, or
    although the child before was cancelled during its own interruption or that of an execution
    below.
    """
    runs: Mapping[Any, Execution] = tables[EXECUTIONS.name]
    for child in runs.values():
        if child.parent_id == run.id and (_is_given_up(child) or _is_taken_back(child, tables)):
            step = child.parent_step or ""
            results = (*run.rounds_of(step), *filter(None, [run.step_results.get(step)]))
            if child.id not in {result.child_id for result in results}:
                yield f"began again: {run.id}/{child.parent_step} after {child.id}"


def _is_given_up(run: Execution) -> bool:
    reason = run.status_reason
    over = run.completed_at is not None and run.error == "Execution interrupted"
    return over and reason is not None and reason.code is ReasonCode.INTERRUPTED


def _is_taken_back(run: Execution, tables: Tables) -> bool:
    """Whether the parent cancelled *run* while *run*, or an execution below it, was interrupted."""
    reason = run.status_reason
    if reason is None or reason.code is not ReasonCode.PARENT_CANCELLED:
        return False
    log: tuple[Event, ...] = tables[EVENTS.name].get(run.id, ())
    told = [event.kind for event in log if event.kind.startswith("execution.")]
    children = (one for one in tables[EXECUTIONS.name].values() if one.parent_id == run.id)
    return told[-2:-1] == [EventKind.EXECUTION_INTERRUPTED] or any(
        _is_taken_back(child, tables) for child in children
    )
