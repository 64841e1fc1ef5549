"""
Walks over the execution and step machines: every fact that is legal for a record.

The fold is `rules.execution.fold.advance`. The planner decides which step may start next; these
walks do whatever the record itself allows. Inherit from a walk to check more.
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
from wfcore.rules.execution.fold_steps import open_questions, state_of
from wfcore.rules.execution.machine import EXECUTION
from wfcore.rules.execution.step_machine import STEP, StepState
from wfcore.testing import builders
from wfcore.testing.strategies.fitting import OVER, claimable, fitting
from wfcore.testing.strategies.runs import FACTS, WORK
from wfcore.testing.walks.walking import Facts, TimedWalk

_ASKS = builders.step_result(StepStatus.AWAITING_APPROVAL, approval_id="appr_9")
_STARTED = builders.step_result(StepStatus.RUNNING, awaits=Awaits.CHILD, child_id="exec_9")
_MAILED = builders.step_result(StepStatus.RUNNING, awaits=Awaits.MAIL)
WAITING: Mapping[type, Mapping[str, StepResult]] = {
    facts.Approved: {"beside": _ASKS},
    facts.Revised: {"beside": _ASKS},
    facts.BudgetExtended: {"beside": _ASKS},
    facts.Rejected: {"beside": _ASKS},
    facts.ChildCompleted: {"beside": _STARTED},
    facts.ChildFailed: {"beside": _STARTED},
    facts.MailTaken: {"beside": _MAILED},
    facts.MailRefused: {"beside": _MAILED},
}
"""The results that wait beside the interrupted step, by the facts that answer them."""
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
"""Weights that let most walks make progress."""


class ExecutionWalk(TimedWalk):
    """
    A walk of an execution from its acceptance.

    The walk checks more than the table: events are numbered without gaps and report every change of
    status, the terminal status last (EX-20); every step reaches the state that `STEP` names, and an
    ended step never changes (EX-3); an ended execution has no open step, no worker and no due time
    (EX-9), its approvals are withdrawn, its steps stopped and its children cancelled (FL-6).
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
        """
        Claim the execution as `Store.claim` does, with worker and fence, once the execution is due.
        """
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
        for name in {*before.step_results, *after.step_results}:
            reached = state_of(after.step_results.get(name))
            assert reached is step_target(before, name, fact), f"{fact!r} led {name} to {reached}"
        for name, result in before.step_results.items():
            if result.status in OVER:
                assert after.step_results[name] == result, f"{name} had ended, and changed"
        if isinstance(fact, facts.ExecutionAborted):
            self._lets_go(before, fact)
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
        if set(before.in_flight) - {getattr(fact, "step_name", None)}:
            assert StopSteps(after.id) in self.outcome.effects, "a step runs on after the end"

    def _lets_go(self, before: Execution, fact: Any) -> None:
        assert self.outcome is not None
        asked = open_questions(before.step_results).keys() - {getattr(fact, "approval_id", None)}
        withdrawn = [one for one in self.outcome.effects if isinstance(one, WithdrawApprovals)]
        assert {id for one in withdrawn for id in one.approval_ids} == asked, (
            "a question stays open"
        )
        children = tuple(one.open_child for one in before.step_results.values() if one.open_child)
        if children:
            assert CancelChildren(children) in self.outcome.effects, "a child goes on alone"


def step_target(run: Execution, name: str, fact: Any) -> StepState:
    """The state to which *fact* about *run* moves the step named *name*, by `STEP`."""
    state = state_of(run.step_results.get(name))
    kind = _what_reaches(run, name, fact)
    row = None if kind is None else STEP.row(state, kind)
    return state if row is None else row.target


def _what_reaches(run: Execution, name: str, fact: Any) -> type | None:
    """The type of *fact* for the step named *name*; None if the fact does not concern the step."""
    result = run.step_results.get(name)
    match fact:
        case facts.Rejected() | facts.BudgetExtended():
            if result is not None and result.approval_id == fact.approval_id:
                return type(fact)
            return facts.ExecutionAborted if isinstance(fact, facts.Rejected) else None
        case facts.Failed(step_name=named) | facts.Failing(step_name=named) if named == name:
            return facts.StepFailed
        case facts.StepsCancelled(step_names=names):
            return facts.StepsCancelled if name in names else None
        case facts.StepFact():
            return type(fact) if name == fact.step_name else None
    return type(fact)


_KEYS = {"step_name": WORK, "step_names": (WORK,), "child_id": "exec_2", "approval_id": "appr_1"}


def _about_work(fact: Any) -> Any:
    """The same fact about the step, the child and the approval of a `StepWalk`."""
    if isinstance(fact, facts.Failed | facts.Failing):
        return evolve(fact, step_name=None)
    return evolve(fact, **{name: key for name, key in _KEYS.items() if hasattr(fact, name)})


STEP_FACTS: Mapping[type, Facts] = {
    kind: made.map(_about_work)
    for kind, made in FACTS.items()
    if any(issubclass(kind, fact) for fact in STEP.facts)
}
"""The strategy for each type of fact in `STEP`: facts about the step of a `StepWalk`."""


class StepWalk(TimedWalk):
    """
    A walk of one step of a running execution, from before its start. The record is the execution.

    Facts about the execution are included if they end or interrupt the step. A second step awaits
    approval until the execution ends or fails, so a rejection may concern either step.
    """

    machine = STEP
    first = st.builds(
        builders.execution,
        status=st.just(ExecutionStatus.RUNNING),
        worker=st.just("worker_1"),
        step_results=st.just({"beside": _ASKS}),
    )
    facts = STEP_FACTS
    weights = OFTEN

    def state(self, record: Execution) -> StepState:
        return state_of(record.step_results.get(WORK))

    def fold(self, record: Execution, fact: Any) -> Execution:
        return advance(record, fact, self.now).record

    def fitting(self, fact: type) -> Facts | None:
        fails_again = self.record.failing and fact in (facts.Failing, facts.FailingAfterGrace)
        if fails_again or not EXECUTION.allows(self.record.status, fact):
            return None
        if fact is facts.Rejected and self.state(self.record) is not StepState.AWAITING_APPROVAL:
            asks = self.record.step_results["beside"] == _ASKS
            return st.just(facts.Rejected("beside", "appr_9")) if asks else None
        return self.facts[fact]

    def strangers(self) -> list[type]:
        """
        The types of facts about the step without a row. Facts about the execution are left out,
        because a step without a row for such a fact ignores it.
        """
        refused = (facts.StepFact, facts.StepsCancelled)
        return [fact for fact in super().strangers() if issubclass(fact, refused)]

    def prepare(self, fact: type) -> None:
        if issubclass(fact, facts.GraceOver):
            self.record = evolve(self.record, status=ExecutionStatus.INTERRUPTED, worker=None)
        elif self.record.status is ExecutionStatus.INTERRUPTED:
            self.resumed()

    @precondition(lambda self: self.record.status is ExecutionStatus.INTERRUPTED)
    @rule()
    def resumed(self) -> None:
        """Resume the execution as the service does, and let a worker claim it."""
        run = self.fold(self.record, facts.Resumed())
        self.record = self.fold(evolve(run, worker="worker_1"), facts.Claimed())

    @precondition(lambda self: self.record.status is ExecutionStatus.RUNNING)
    @rule()
    def worker_lost(self) -> None:
        """Interrupt the execution: the worker dies while another step is in flight."""
        self.record = evolve(self.record, status=ExecutionStatus.INTERRUPTED, worker=None)
