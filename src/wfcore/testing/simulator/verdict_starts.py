"""The verdict on automatic starts: each completion and each instant counts once."""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from wfcore.memory.tables import EVENTS, EXECUTIONS, TIMERS, TRIGGERS
from wfcore.model.event import Event
from wfcore.model.execution import Execution, ExecutionStatus
from wfcore.model.trigger import Chain, Timer, Trigger
from wfcore.rules.triggers.chain import keys_of
from wfcore.testing.simulator.judge import Tables


def pending(tables: Tables) -> Iterator[str]:
    """Timers that have not fired yet."""
    timers: Mapping[Any, Timer] = tables[TIMERS.name]
    for timer in timers.values():
        yield f"{timer.id} has not fired"


def wrong_starts(tables: Tables) -> Iterator[str]:
    """Surplus and missing starts. CH-1, CH-3, SH-1."""
    found = Counter(_causes(tables))
    for (trigger_id, cause), times in found.items():
        if times > 1:
            yield f"started twice: {trigger_id} for {cause}"
    triggers: Mapping[Any, Trigger] = tables[TRIGGERS.name]
    for trigger in triggers.values():
        if isinstance(trigger.spec, Chain):
            causes = [cause for id, cause in found if id == trigger.id]
            yield from _wrong_chain(tables, trigger, trigger.spec, causes)


def _wrong_chain(
    tables: Tables, trigger: Trigger, spec: Chain, causes: list[object]
) -> Iterator[str]:
    most = spec.max_runs
    if most is not None and len(causes) > most:
        yield f"too many runs: {trigger.id} started {len(causes)} of {most}"
    if most is not None and len(causes) >= most:
        return
    runs: Mapping[Any, Execution] = tables[EXECUTIONS.name]
    for run in runs.values():
        completed = run.status is ExecutionStatus.COMPLETED and trigger.watches in keys_of(run)
        if completed and run.id not in causes and trigger.refusal is None:
            yield f"completion forgotten: {trigger.id} for {run.id}"


def _causes(tables: Tables) -> Iterator[tuple[str, object]]:
    """By trigger: the completed executions and the instants that started something."""
    logs: Mapping[Any, tuple[Event, ...]] = tables[EVENTS.name]
    for log in logs.values():
        told = log[0].data
        if "triggerId" in told:
            cause = told.get("completedExecutionId") or told.get("scheduledFor")
            yield str(told["triggerId"]), cause
