"""
Walks over our execution machine: facts as they can happen to an execution, whatever its steps.

The fold is `rules.execution.advance`. Which step may start next is the planner's business and
not this walk's: here everything happens that the record itself allows. Inherit to hold more.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from attrs import evolve
from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from wfcore.effects import CancelChildren, Outcome, StopSteps, WithdrawApprovals
from wfcore.model.artifact import RefusedFile
from wfcore.model.event import EventKind
from wfcore.model.execution import (
    Awaits,
    Execution,
    ExecutionStatus,
    StepResult,
    StepStatus,
    TriggerSource,
)
from wfcore.model.usage import Usage
from wfcore.rules import execution_machine as facts
from wfcore.rules.execution import advance
from wfcore.rules.execution_machine import EXECUTION
from wfcore.testing import builders
from wfcore.testing.builders import NOW
from wfcore.testing.strategies import instants, json_values, texts
from wfcore.testing.strategies_runs import FACTS, items
from wfcore.testing.values import values_of
from wfcore.testing.walks import Facts, TimedWalk

STEPS = ("one", "two", "three")
OVER = frozenset({StepStatus.COMPLETED, StepStatus.SKIPPED, StepStatus.FAILED})
"""Step states that stay: no fact changes such a result any more."""

_REFUSED = st.lists(values_of(RefusedFile), min_size=1, max_size=2).map(tuple)
_ASKS = builders.step_result(StepStatus.AWAITING_APPROVAL, approval_id="appr_9")
_STARTED = builders.step_result(StepStatus.RUNNING, awaits=Awaits.CHILD, child_id="exec_9")
WAITING: Mapping[type, Mapping[str, StepResult]] = {
    facts.Approved: {"beside": _ASKS},
    facts.Rejected: {"beside": _ASKS},
    facts.ChildEnded: {"beside": _STARTED},
}
"""What waited beside the step of which the worker died, for the facts that answer it."""
_FINISHED = st.builds(facts.Finished, json_values())


class ExecutionWalk(TimedWalk):
    """
    An execution from its acceptance on.

    Beyond the table it holds: events are numbered without gaps and tell every change of
    status, the terminal one last (EX-20); what has ended never changes (EX-3); the end leaves
    nothing open, no worker, nothing due (EX-9), withdraws approvals, stops steps, and cancels
    children (FL-6).
    """

    machine = EXECUTION
    first = st.builds(builders.execution, trigger_source=st.sampled_from(TriggerSource))
    facts = FACTS

    def __init__(self) -> None:
        super().__init__()
        self.outcome: Outcome[Execution] | None = None

    def fold(self, record: Execution, fact: Any) -> Execution:
        self.outcome = advance(record, fact, self.now)
        return self.outcome.record

    def fitting(self, fact: type) -> Facts | None:
        return fitting(self.record, fact)

    @precondition(lambda self: hasattr(self, "record") and claimable(self.record))
    @rule()
    def leased(self) -> None:
        """What `Store.claim` does: worker and fence, once it is due."""
        run = self.record
        self.at(run.due_at)
        self.record = evolve(run, worker="worker_1", fence=run.fence + 1, due_at=None)

    def prepare(self, fact: type) -> None:
        if claimable(self.record):
            self.leased()
        if self.record.status is ExecutionStatus.INTERRUPTED and fact in WAITING:
            waited = {**WAITING[fact], **self.record.step_results}
            self.record = evolve(self.record, step_results=waited)

    def check(self, before: Execution, fact: Any, after: Execution) -> None:
        assert self.outcome is not None
        told = [event.kind for event in self.outcome.events]
        self._events_follow(before, after)
        status_told = EventKind(f"execution.{after.status.lower()}")
        if after.status is before.status:
            assert not any(kind.startswith("execution.") for kind in told)
        else:
            assert [kind for kind in told if kind.startswith("execution.")] == [status_told]
            assert told[-1] is status_told, "a change of status is told last"
        for name, result in before.step_results.items():
            if result.status in OVER:
                assert after.step_results[name] == result, f"{name} had ended, and changed"
        if after.status in EXECUTION.final:
            self._is_over(before, fact, after)
        else:
            assert after.completed_at is None
            assert after.error is None
            assert after.output is None

    def _events_follow(self, before: Execution, after: Execution) -> None:
        assert self.outcome is not None
        numbers = [event.number for event in self.outcome.events]
        assert numbers == list(range(before.events + 1, after.events + 1)), "a gap in the log"
        assert all(event.at == self.now for event in self.outcome.events)
        assert {event.execution_id for event in self.outcome.events} <= {after.id}

    def _is_over(self, before: Execution, fact: Any, after: Execution) -> None:
        assert self.outcome is not None
        assert after.completed_at == self.now
        assert (after.worker, after.due_at, after.in_flight) == (None, None, ())
        assert all(result.completed_at is not None for result in after.step_results.values())
        assert (after.error is not None) == (after.status is ExecutionStatus.FAILED)
        assert WithdrawApprovals(after.id) in self.outcome.effects
        if set(before.in_flight) - {getattr(fact, "step_name", None)}:
            assert StopSteps(after.id) in self.outcome.effects, "a step runs on after the end"
        children = tuple(one.open_child for one in before.step_results.values() if one.open_child)
        if children:
            assert CancelChildren(children) in self.outcome.effects, "a child goes on alone"


def fitting(run: Execution, fact: type) -> Facts | None:
    """Facts of that type that can happen to *run* as it is; None: there is none."""
    flying, waiting = run.in_flight, awaiting(run)
    fresh = [name for name in STEPS if name not in run.step_results]
    held = run.worker is not None
    open, children = unended(run), with_child(run)
    waits = [name for name in open if name not in (*flying, *waiting, *children, *again(run))]
    running = [*flying, *waits, *children]
    ended = not open and not again(run)
    named: dict[type, tuple[bool, Facts | None]] = {
        facts.Claimed: (held and not flying, st.builds(facts.Claimed)),
        facts.StepBegun: (held, _of(fresh + again(run), facts.StepBegun)),
        facts.Entered: (held, _of(fresh, facts.Entered, st.none() | instants(NOW), items())),
        facts.DelayBegun: (held, _of(fresh, facts.DelayBegun, instants(NOW))),
        facts.ChildStarted: (held, _of(fresh, facts.ChildStarted, st.just("exec_2"))),
        facts.ChildEnded: (bool(children), _child_ended(run, children)),
        facts.StepSkipped: (held, _of(fresh, facts.StepSkipped)),
        facts.StepDone: (held, _of([*flying, *waits], facts.StepDone, json_values())),
        facts.Spent: (held, _of(flying, facts.Spent, values_of(Usage))),
        facts.Refused: (held, _of(flying, facts.Refused, _REFUSED)),
        facts.StepRetrying: (
            held,
            _of([*flying, *children], facts.StepRetrying, texts(1), instants(NOW)),
        ),
        facts.StepFailed: (held, _of([*running, *fresh], facts.StepFailed, texts(1))),
        facts.Stopped: (held and bool(open), _stopped(open)),
        facts.Broke: (held, _broke((*running, *fresh), ended)),
        facts.Waited: (held and bool(flying), st.builds(facts.Waited, instants(NOW))),
        facts.Rested: (held and not flying, st.builds(facts.Rested, instants(NOW))),
        facts.ApprovalOpened: (held, _opened(run, fresh, facts.ApprovalOpened)),
        facts.BudgetReached: (held, _opened(run, fresh + again(run), facts.BudgetReached)),
        facts.Paused: (held and not flying, _asked(run, facts.Paused, instants(NOW), swap=True)),
        facts.Approved: (bool(waiting), _asked(run, facts.Approved, json_values(), st.booleans())),
        facts.Rejected: (bool(waiting), _asked(run, facts.Rejected, st.booleans())),
        facts.Finished: (held and ended, _FINISHED),
        facts.LeaseReturned: (held and not flying, st.builds(facts.LeaseReturned)),
        facts.WorkerLost: (bool(flying), st.builds(facts.WorkerLost, instants(NOW))),
    }
    possible, strategy = named.get(fact, (True, FACTS.get(fact)))
    return strategy if possible else None


def claimable(run: Execution) -> bool:
    """Whether a worker may take it, now or later."""
    open = run.status not in (*EXECUTION.final, ExecutionStatus.INTERRUPTED)
    return open and run.due_at is not None and run.worker is None


def awaiting(run: Execution) -> list[str]:
    """Names of the steps that wait for people."""
    results = run.step_results.items()
    return [name for name, one in results if one.status is StepStatus.AWAITING_APPROVAL]


def unended(run: Execution) -> list[str]:
    """Names of the steps that have begun and not ended."""
    over = {*OVER, StepStatus.CANCELLED, StepStatus.REJECTED, StepStatus.INTERRUPTED}
    return [name for name, one in run.step_results.items() if one.status not in over]


def with_child(run: Execution) -> list[str]:
    """Names of the steps that wait for an execution."""
    return [name for name, one in run.step_results.items() if one.open_child]


def again(run: Execution) -> list[str]:
    """Names of the steps that may begin once more: a retry is due, or they were interrupted."""
    return [
        name
        for name, one in run.step_results.items()
        if one.status is StepStatus.INTERRUPTED or one.retry_at is not None
    ]


def _of(names: Iterable[str], fact: type, *more: Facts) -> Facts | None:
    wanted = list(names)
    return st.builds(fact, st.sampled_from(wanted), *more) if wanted else None


def _child_ended(run: Execution, steps: list[str]) -> Facts | None:
    if not steps:
        return None
    pairs = [(name, run.step_results[name].open_child or "") for name in steps]
    ends = st.tuples(st.sampled_from(pairs), json_values(), st.none() | texts(1))
    return ends.map(lambda drawn: facts.ChildEnded(*drawn[0], *drawn[1:]))


def _stopped(open: list[str]) -> Facts | None:
    if not open:
        return None
    some = st.lists(st.sampled_from(open), min_size=1, unique=True).map(tuple)
    return st.builds(facts.Stopped, some, texts(1))


def _broke(names: tuple[str, ...], all_ended: bool) -> Facts | None:
    """A step broke, or, once all have ended, the output."""
    where = (*names, None) if all_ended else names
    if not where:
        return None
    return st.builds(facts.Broke, texts(1), st.sampled_from(where), st.booleans())


def _opened(run: Execution, names: list[str], fact: type) -> Facts | None:
    return _of(names, fact, st.just(f"appr_{run.events}"))


def _asked(run: Execution, fact: type, *more: Facts, swap: bool = False) -> Facts | None:
    """Facts about a step that waits, and about its approval."""
    pairs = [(name, run.step_results[name].approval_id) for name in awaiting(run)]
    if not pairs:
        return None
    ordered = [(id, name) if swap else (name, id) for name, id in pairs]
    return st.tuples(st.sampled_from(ordered), *more).map(lambda drawn: fact(*drawn[0], *drawn[1:]))
