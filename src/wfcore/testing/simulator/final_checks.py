"""The final checks of a world: every promise against the stored records."""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from wfcore.memory.tables import APPROVALS, EVENTS, EXECUTIONS, TIMERS, TRIGGERS
from wfcore.model.approval import Approval
from wfcore.model.event import Event
from wfcore.model.execution import Execution, ExecutionStatus, TriggerSource
from wfcore.model.trigger import Chain, Timer, Trigger
from wfcore.rules.execution.machine import EXECUTION
from wfcore.rules.execution.scope import trigger_of
from wfcore.rules.limits import REQUESTS
from wfcore.rules.triggers.chain import keys_of
from wfcore.testing.simulator.expectations import Expectations
from wfcore.testing.simulator.invariants import Tables
from wfcore.testing.simulator.repair_checks import broken_plans
from wfcore.testing.simulator.restart_checks import forbidden_restarts
from wfcore.testing.simulator.runner import StartedAttempts
from wfcore.testing.simulator.seed_data import PLAN

ENDED = EXECUTION.final
BY_ITSELF = frozenset({TriggerSource.SCHEDULE, TriggerSource.DELAYED_COMPLETION})


def is_at_rest(run: Execution) -> bool:
    """Whether *run* has ended, or waits for a person or another execution."""
    if run.status in ENDED:
        return True
    waits = run.asks or any(result.open_child for result in run.step_results.values())
    return waits and run.worker is None and run.due_at is None


def unfinished(tables: Tables, ledger: StartedAttempts) -> Iterator[str]:
    """The unfinished work, in words."""
    runs: Mapping[Any, Execution] = tables[EXECUTIONS.name]
    stopped = {
        run.concurrency_group
        for run in runs.values()
        if is_at_rest(run) and run.status not in ENDED
    }
    for run in runs.values():
        queues = (
            run.concurrency_group is not None
            and run.fence == 0
            and run.concurrency_group in stopped
        )
        if not is_at_rest(run) and not queues:
            yield f"{run.id} is {run.status} held by {run.worker}"
    yield from pending(tables)
    for attempt in sorted(ledger.running):
        if attempt[0] in runs and is_at_rest(runs[attempt[0]]):
            yield f"{attempt} still runs"


def wrong(tables: Tables, expectations: Expectations, ledger: StartedAttempts) -> Iterator[str]:
    """The broken promises, in words that begin with the kind of the violation."""
    runs: Mapping[Any, Execution] = tables[EXECUTIONS.name]
    yield from _known(runs, expectations)
    yield from _children(runs)
    yield from _decisions(tables[APPROVALS.name], expectations)
    yield from broken_starts(tables)
    yield from broken_plans(runs, expectations)
    yield from _starts(runs, ledger)
    for run in runs.values():
        yield from _history(run, tables[EVENTS.name].get(run.id, ()))
        yield from forbidden_restarts(run, tables)
    for (subject, minute), count in expectations.admitted.items():
        limit = REQUESTS[PLAN][0]
        if count > limit:
            yield f"quota overrun: {count} of {limit} for {subject} in {minute}"


def _known(runs: Mapping[Any, Execution], expectations: Expectations) -> Iterator[str]:
    for execution_id in [*expectations.started.values(), *expectations.redriven]:
        if execution_id not in runs:
            yield f"unknown: {execution_id} was accepted"
    for execution_id in sorted(expectations.cancelled):
        run = runs.get(execution_id)
        if run is None or run.status is not ExecutionStatus.CANCELLED:
            yield f"cancel undone: {execution_id} is {run and run.status}"
    firsts = [run for run in runs.values() if run.redrive_of is None and run.parent_id is None]
    asked = [run for run in firsts if run.trigger_source not in BY_ITSELF]
    for tag, count in Counter(str(run.variables["tag"]) for run in asked).items():
        if count > 1:
            yield f"started twice: {count} executions of {tag}"


def _children(runs: Mapping[Any, Execution]) -> Iterator[str]:
    born = [(run.parent_id, run.parent_step) for run in runs.values() if run.parent_id]
    for (parent_id, step), count in Counter(born).items():
        parent = runs.get(parent_id)
        if parent is None or _attempts(parent, step or "") < count:
            yield f"started twice: {count} executions for {parent_id}/{step}"
    for run in runs.values():
        for result in run.step_results.values():
            if result.open_child is not None and result.open_child not in runs:
                yield f"forgotten: {run.id} waits for {result.open_child}"


def _decisions(stored: Mapping[Any, Approval], expectations: Expectations) -> Iterator[str]:
    for approval_id, status in (*expectations.decided.items(), *expectations.seen.items()):
        approval = stored.get(approval_id)
        if approval is None or approval.status is not status:
            yield f"decision undone: {approval_id} was {status}, is {approval and approval.status}"
    for approval_id, by in sorted(expectations.assents):
        approval = stored.get(approval_id)
        if approval is None or by not in {entry.by for entry in approval.history}:
            yield f"decision undone: {by} said yes to {approval_id}"


def _starts(runs: Mapping[Any, Execution], ledger: StartedAttempts) -> Iterator[str]:
    for attempt in ledger.started:
        execution_id, step, number = attempt
        run = runs.get(execution_id)
        if run is None:
            yield f"ghost: {attempt} ran, and nobody knows it"
        elif _attempts(run, step) < number:
            yield f"not recorded: {attempt}"


def _attempts(run: Execution, step: str) -> int:
    """The number of attempts of the step, over all of its rounds."""
    results = (*run.rounds_of(step), run.step_results.get(step))
    return max((one.attempts for one in results if one is not None), default=0)


def _history(run: Execution, log: tuple[Event, ...]) -> Iterator[str]:
    kinds = [event.kind for event in log]
    if run.status in ENDED and kinds[-1:] != [f"execution.{run.status.lower()}"]:
        yield f"events: {run.id} is {run.status} and ends with {kinds[-1:]}"


def pending(tables: Tables) -> Iterator[str]:
    """The timers that have not fired yet, in words."""
    timers: Mapping[Any, Timer] = tables[TIMERS.name]
    for timer in timers.values():
        yield f"{timer.id} has not fired"


def broken_starts(tables: Tables) -> Iterator[str]:
    """The surplus, missing and wrong starts, in words. CH-1, CH-3, CH-6, SH-1, SH-12."""
    found = Counter(_causes(tables))
    for (trigger_id, cause), times in found.items():
        if times > 1:
            yield f"started twice: {trigger_id} for {cause}"
    triggers: Mapping[Any, Trigger] = tables[TRIGGERS.name]
    yield from _without_inputs(tables, triggers)
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
        followed = run.status in spec.on and trigger.watches in keys_of(run)
        if followed and run.id not in causes and trigger.refusal is None:
            yield f"completion forgotten: {trigger.id} for {run.id}"


def _without_inputs(tables: Tables, triggers: Mapping[Any, Trigger]) -> Iterator[str]:
    """The executions that a trigger started without one of its inputs, which name the trigger."""
    runs: Mapping[Any, Execution] = tables[EXECUTIONS.name]
    for run in runs.values():
        trigger = triggers.get(run.trigger_id)
        if trigger is not None and run.redrive_of is None:
            of = trigger_of(run)
            expected = of["executionId"] or of["kind"]
            for name in trigger.spec.inputs:
                if run.variables.get(name) != expected:
                    yield f"started without its inputs: {run.id} by {trigger.id}"


def _causes(tables: Tables) -> Iterator[tuple[str, object]]:
    """Each trigger that started something, with the cause: a completed execution or an instant."""
    logs: Mapping[Any, tuple[Event, ...]] = tables[EVENTS.name]
    for log in logs.values():
        told = log[0].data
        if "triggerId" in told:
            cause = told.get("completedExecutionId") or told.get("scheduledFor")
            yield str(told["triggerId"]), cause
