"""
Walks over our execution machine: facts as they can happen to an execution, whatever its steps.

The fold is `rules.execution.fold.advance`. Which step may start next is the planner's business and
not this walk's: here everything happens that the record itself allows. Inherit to hold more.
"""

from collections.abc import Mapping
from typing import Any

from attrs import evolve
from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from wfcore.effects import CancelChildren, Outcome, StopSteps, WithdrawApprovals
from wfcore.model.event import EventKind
from wfcore.model.execution import (
    Awaits,
    Execution,
    ExecutionStatus,
    StepResult,
    StepStatus,
    TriggerSource,
)
from wfcore.rules.execution import machine as facts
from wfcore.rules.execution.fold import advance
from wfcore.rules.execution.machine import EXECUTION
from wfcore.testing import builders
from wfcore.testing.strategies.fitting import OVER, claimable, fitting
from wfcore.testing.strategies.runs import FACTS
from wfcore.testing.walks.walking import Facts, TimedWalk

_ASKS = builders.step_result(StepStatus.AWAITING_APPROVAL, approval_id="appr_9")
_STARTED = builders.step_result(StepStatus.RUNNING, awaits=Awaits.CHILD, child_id="exec_9")
WAITING: Mapping[type, Mapping[str, StepResult]] = {
    facts.Approved: {"beside": _ASKS},
    facts.Rejected: {"beside": _ASKS},
    facts.ChildEnded: {"beside": _STARTED},
}
"""What waited beside the step of which the worker died, for the facts that answer it."""
OFTEN = {
    facts.Claimed: 6,
    facts.StepBegun: 6,
    facts.StepDone: 6,
    facts.ApprovalOpened: 4,
    facts.AwaitingApproval: 4,
    facts.Finished: 8,
    facts.CancelAsked: 2,
    facts.WorkerLost: 2,
}
"""Most executions get on; else walks would only ever turn back."""


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
    weights = OFTEN

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

    def follow(self, fact: Any) -> None:
        if isinstance(fact, facts.Claimed) and claimable(self.record):
            self.leased()
        super().follow(fact)

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
