"""
Strategies for facts that are legal for an execution in its current state.

The state table names the legal types of fact; the record decides for which step they are legal.
"""

from collections.abc import Callable, Iterable, Mapping

from hypothesis import strategies as st

from wfcore.model.execution import (
    Awaits,
    Execution,
    ExecutionStatus,
    RefusedFile,
    StepStatus,
    Usage,
)
from wfcore.rules.execution import machine as facts
from wfcore.rules.execution.machine import EXECUTION, Fact
from wfcore.testing.builders import NOW
from wfcore.testing.strategies.records import values_of
from wfcore.testing.strategies.runs import FACTS, items
from wfcore.testing.strategies.values import instants, json_values, texts

Facts = st.SearchStrategy[Fact]

STEPS = ("one", "two", "three")
"""The names of all steps of any kind."""
OVER = frozenset({StepStatus.COMPLETED, StepStatus.SKIPPED, StepStatus.FAILED})
"""The final step states. No fact changes a result in such a state."""

_AWAITING = StepStatus.AWAITING_APPROVAL
_CLOSED = {*OVER, StepStatus.CANCELLED, StepStatus.REJECTED, StepStatus.INTERRUPTED}
_CASES = st.none() | st.integers(0, 2)
_TEXTS, _OUTPUTS, _TIMES = texts(1), json_values(), instants(NOW)
_USAGES = values_of(Usage)
_REFUSED = st.lists(values_of(RefusedFile), min_size=1, max_size=2).map(tuple)
_FINISHED = st.builds(facts.Finished, _OUTPUTS)


class Look:
    """The steps of an execution, grouped by the facts that may come next."""

    def __init__(self, run: Execution) -> None:
        self.run = run
        results = run.step_results
        self.held = run.worker is not None
        self.flying = [*run.in_flight]
        self.fresh = [name for name in STEPS if name not in results]
        self.awaiting = [n for n, one in results.items() if one.status is _AWAITING]
        self.children = [name for name, one in results.items() if one.open_child]
        self.mails = [name for name, one in results.items() if one.awaits is Awaits.MAIL]
        self.again = [
            name
            for name, one in results.items()
            if one.status is StepStatus.INTERRUPTED or one.retry_at is not None
        ]
        self.open = [name for name, one in results.items() if one.status not in _CLOSED]
        known = {*self.flying, *self.awaiting, *self.children, *self.mails, *self.again}
        self.waits = [name for name in self.open if name not in known]
        self.running = [*self.flying, *self.waits, *self.children, *self.mails]
        self.ended = not self.open and not self.again


def fitting(run: Execution, fact: type) -> Facts | None:
    """Facts of type *fact* that are legal for *run* now; None if there are none."""
    look = Look(run)
    if fact in _ANYHOW:
        return _ANYHOW[fact](look)
    if not look.held:
        return None
    return _HELD[fact](look) if fact in _HELD else FACTS[fact]


def claimable(run: Execution) -> bool:
    """Whether a worker may claim *run*, now or later."""
    open = run.status not in (*EXECUTION.final, ExecutionStatus.INTERRUPTED)
    return open and run.due_at is not None and run.worker is None


def _of(names: Iterable[str], fact: type, *more: st.SearchStrategy[object]) -> Facts | None:
    wanted = list(names)
    return st.builds(fact, st.sampled_from(wanted), *more) if wanted else None


def _unless(hindrance: object, fact: type) -> Facts | None:
    return None if hindrance else FACTS[fact]


def _claimed(look: Look) -> Facts | None:
    """
    Facts that a worker has claimed the execution: just now, or earlier without starting a step.
    """
    taken = look.held and look.run.status is not ExecutionStatus.RUNNING
    return FACTS[facts.Claimed] if claimable(look.run) or taken else None


def _child_ended(look: Look, fact: type, more: st.SearchStrategy[object]) -> Facts | None:
    if not look.children:
        return None
    results = look.run.step_results
    pairs = [(name, results[name].open_child or "") for name in look.children]
    ends = st.tuples(st.sampled_from(pairs), more)
    return ends.map(lambda drawn: fact(*drawn[0], drawn[1]))


def _mail_ended(look: Look, fact: type, more: st.SearchStrategy[object]) -> Facts | None:
    if not look.mails:
        return None
    results = look.run.step_results
    pairs = [(name, results[name].attempts) for name in look.mails]
    ends = st.tuples(st.sampled_from(pairs), more)
    return ends.map(lambda drawn: fact(*drawn[0], drawn[1]))


def _stopped(look: Look) -> Facts | None:
    if not look.open:
        return None
    some = st.lists(st.sampled_from(look.open), min_size=1, unique=True).map(tuple)
    return st.builds(facts.StepsCancelled, some, _TEXTS)


def _broke(look: Look, fact: type) -> Facts | None:
    """Facts that a step failed or, once all steps have ended, that the output template failed."""
    where = [*look.running, *look.fresh, *([None] if look.ended else [])]
    if not where:
        return None
    return st.builds(fact, _TEXTS, st.sampled_from(where), st.booleans())


def _handled(look: Look) -> Facts | None:
    """The fact that the `onFailure` steps have ended; None if the execution is not failing."""
    failing = look.run.failing
    return None if failing is None else st.just(facts.FailureHandled(failing))


def _opened(look: Look, names: list[str], fact: type) -> Facts | None:
    return _of(names, fact, st.just(f"appr_{look.run.events}"))


def _asked(
    look: Look, fact: type, *more: st.SearchStrategy[object], swap: bool = False
) -> Facts | None:
    """Facts about a waiting step and its approval; None if no step waits for one."""
    pairs = [(name, look.run.step_results[name].approval_id) for name in look.awaiting]
    if not pairs:
        return None
    ordered = [(id, name) if swap else (name, id) for name, id in pairs]
    return st.tuples(st.sampled_from(ordered), *more).map(lambda drawn: fact(*drawn[0], *drawn[1:]))


_Fits = Callable[[Look], Facts | None]
_ANYHOW: Mapping[type, _Fits] = {
    facts.Claimed: _claimed,
    facts.Approved: lambda look: _asked(look, facts.Approved, _OUTPUTS),
    facts.Revised: lambda look: _asked(look, facts.Revised, _OUTPUTS, st.just(())),
    facts.BudgetExtended: lambda look: _asked(look, facts.BudgetExtended),
    facts.Rejected: lambda look: _asked(look, facts.Rejected, st.booleans()),
    facts.ChildCompleted: lambda look: _child_ended(look, facts.ChildCompleted, _OUTPUTS),
    facts.ChildFailed: lambda look: _child_ended(look, facts.ChildFailed, _TEXTS),
    facts.MailTaken: lambda look: _mail_ended(look, facts.MailTaken, _OUTPUTS),
    facts.MailRefused: lambda look: _mail_ended(look, facts.MailRefused, _TEXTS),
    facts.WorkerLost: lambda look: FACTS[facts.WorkerLost] if look.flying else None,
    facts.CancelAsked: lambda look: FACTS[facts.CancelAsked],
    facts.ParentEnded: lambda look: FACTS[facts.ParentEnded],
    facts.Resumed: lambda look: FACTS[facts.Resumed],
    facts.GraceOver: lambda look: FACTS[facts.GraceOver],
    facts.FailingAfterGrace: lambda look: _unless(look.run.failing, facts.FailingAfterGrace),
}
"""The strategies for facts that happen whether or not a worker holds the execution."""
_HELD: Mapping[type, _Fits] = {
    facts.StepBegun: lambda look: _of(look.fresh + look.again, facts.StepBegun),
    facts.ContainerStarted: lambda look: _of(
        look.fresh,
        facts.ContainerStarted,
        st.none() | _TIMES,
        items(),
        _CASES,
    ),
    facts.DataGiven: lambda look: _of(look.fresh, facts.DataGiven, _OUTPUTS),
    facts.DelayBegun: lambda look: _of(look.fresh, facts.DelayBegun, _TIMES),
    facts.ChildStarted: lambda look: _of(look.fresh, facts.ChildStarted, st.just("exec_2")),
    facts.MailQueued: lambda look: _of(look.fresh, facts.MailQueued, _TIMES),
    facts.StepSkipped: lambda look: _of(look.fresh, facts.StepSkipped),
    facts.StepDone: lambda look: _of(look.flying + look.waits, facts.StepDone, _OUTPUTS),
    facts.UsageRecorded: lambda look: _of(look.flying, facts.UsageRecorded, _USAGES),
    facts.FilesRefused: lambda look: _of(look.flying, facts.FilesRefused, _REFUSED),
    facts.StepRetrying: lambda look: _of(
        look.flying + look.children, facts.StepRetrying, _TEXTS, _TIMES
    ),
    facts.StepPostponed: lambda look: _of(look.flying, facts.StepPostponed, _TEXTS, _TIMES),
    facts.StepFailed: lambda look: _of(look.running + look.fresh, facts.StepFailed, _TEXTS),
    facts.StepsCancelled: _stopped,
    facts.Failed: lambda look: _broke(look, facts.Failed),
    facts.Failing: lambda look: None if look.run.failing else _broke(look, facts.Failing),
    facts.FailureHandled: _handled,
    facts.WakeAt: lambda look: _unless(not look.flying, facts.WakeAt),
    facts.Suspended: lambda look: _unless(look.flying, facts.Suspended),
    facts.ApprovalOpened: lambda look: _opened(look, look.fresh, facts.ApprovalOpened),
    facts.BudgetReached: lambda look: _opened(look, look.fresh + look.again, facts.BudgetReached),
    facts.AwaitingApproval: lambda look: (
        None if look.flying else _asked(look, facts.AwaitingApproval, _TIMES, swap=True)
    ),
    facts.Finished: lambda look: _FINISHED if look.ended else None,
    facts.LeaseReturned: lambda look: _unless(look.flying, facts.LeaseReturned),
}
"""The strategies for facts that only the worker brings. Other facts need only a worker."""
