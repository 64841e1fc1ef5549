"""
Walks over our execution machine: facts as they can happen to an execution, whatever its steps.

The fold is `rules.execution.advance`. Which step may start next is the planner's business and
not this walk's: here everything happens that the record itself allows. Inherit to hold more.
"""

from collections.abc import Iterable
from typing import Any

from attrs import evolve
from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from wfcore.effects import Outcome, StopSteps, WithdrawApprovals
from wfcore.model.artifact import RefusedFile
from wfcore.model.event import EventKind
from wfcore.model.execution import Execution, ExecutionStatus, StepStatus, TriggerSource
from wfcore.model.usage import Usage
from wfcore.rules import execution_machine as facts
from wfcore.rules.execution import advance
from wfcore.rules.execution_machine import EXECUTION
from wfcore.testing import builders
from wfcore.testing.builders import NOW
from wfcore.testing.strategies import instants, json_values, texts
from wfcore.testing.strategies_runs import FACTS
from wfcore.testing.values import values_of
from wfcore.testing.walks import Facts, TimedWalk

STEPS = ("one", "two", "three")
OVER = frozenset({StepStatus.COMPLETED, StepStatus.SKIPPED, StepStatus.FAILED})
"""Step states that stay: no fact changes such a result any more."""

_REFUSED = st.lists(values_of(RefusedFile), min_size=1, max_size=2).map(tuple)
_FINISHED = st.builds(facts.Finished, json_values())


class ExecutionWalk(TimedWalk):
    """
    An execution from its acceptance on.

    Beyond the table it holds: events are numbered without gaps and tell every change of
    status, the terminal one last (EX-20); what has ended never changes (EX-3); the end leaves
    nothing open, no worker, nothing due (EX-9), and withdraws approvals and stops steps.
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


def fitting(run: Execution, fact: type) -> Facts | None:
    """Facts of that type that can happen to *run* as it is; None: there is none."""
    flying, waiting = run.in_flight, awaiting(run)
    fresh = [name for name in STEPS if name not in run.step_results]
    held = run.worker is not None
    ended = not flying and not waiting and not again(run)
    named: dict[type, tuple[bool, Facts | None]] = {
        facts.Claimed: (held and not flying, st.builds(facts.Claimed)),
        facts.StepBegun: (held, _of(fresh + again(run), facts.StepBegun)),
        facts.StepSkipped: (held, _of(fresh, facts.StepSkipped)),
        facts.StepDone: (held, _of(flying, facts.StepDone, json_values())),
        facts.Refused: (held, _of(flying, facts.Refused, st.just((RefusedFile("l", "a link"),)))),
        facts.Spent: (held, _of(flying, facts.Spent, values_of(Usage))),
        facts.Refused: (held, _of(flying, facts.Refused, _REFUSED)),
        facts.StepRetrying: (held, _of(flying, facts.StepRetrying, texts(1), instants(NOW))),
        facts.StepFailed: (held, _of((*flying, *fresh), facts.StepFailed, texts(1))),
        facts.Broke: (held, _broke((*flying, *fresh), ended)),
        facts.Rested: (held and not flying, st.builds(facts.Rested, instants(NOW))),
        facts.ApprovalOpened: (held, _opened(run, fresh, facts.ApprovalOpened)),
        facts.BudgetReached: (held, _opened(run, fresh + again(run), facts.BudgetReached)),
        facts.Paused: (held and not flying, _asked(run, facts.Paused, swap=True)),
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
    open = run.status in (ExecutionStatus.PENDING, ExecutionStatus.RUNNING)
    return open and run.due_at is not None and run.worker is None


def awaiting(run: Execution) -> list[str]:
    """Names of the steps that wait for people."""
    results = run.step_results.items()
    return [name for name, one in results if one.status is StepStatus.AWAITING_APPROVAL]


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
