"""What each fact about a step changes: its result, its events, what follows; nothing else."""

from collections.abc import Mapping
from typing import Any

import pytest
from attrs import evolve, field, frozen

from wfcore.effects import CancelChildren, Effect, Outcome, Reload, WakeRunner, WithdrawApprovals
from wfcore.model.event import Event, EventKind
from wfcore.model.execution import (
    Awaits,
    ExecutionStatus,
    ReasonCode,
    RefusedFile,
    StepResult,
    StepStatus,
    Usage,
)
from wfcore.rules.execution import machine as facts
from wfcore.rules.execution.fold import advance
from wfcore.rules.execution.fold_steps import held_by
from wfcore.rules.limits import MAX_ERROR
from wfcore.testing import builders
from wfcore.testing.builders import NOW
from wfcore.time import later

THEN = later(NOW, 5_000)
SOON = later(NOW, 60_000)
FILES = (RefusedFile("big.bin", "too large"),)
LOOK = (Reload("exec_1"),)
DUE = {"due_at": THEN}
OTHER = builders.step_result(output="kept")

RUNNING = builders.step_result(StepStatus.RUNNING, attempts=2, usage=Usage(1, 2, "0.5"))
AGAIN = evolve(RUNNING, error="no luck", refused=FILES, retry_at=THEN)
FULL = evolve(RUNNING, awaits=Awaits.STEPS, until=SOON, items=["a"])
DELAY = builders.step_result(StepStatus.RUNNING, awaits=Awaits.TIME, until=SOON)
CHILD = evolve(RUNNING, awaits=Awaits.CHILD, until=SOON, child_id="exec_2")
LOST = evolve(RUNNING, status=StepStatus.INTERRUPTED, completed_at=NOW, error="The worker stopped")
ASKS = builders.step_result(StepStatus.AWAITING_APPROVAL, approval_id="appr_1")
STRANDED = evolve(ASKS, attempts=0, error="no luck", usage=Usage(1, 2, "0.5"))

K = EventKind


@frozen
class Case:
    """*fact* makes *after* of *before*; *events* and *effects* with it, and *changes* beside it."""

    fact: Any
    before: StepResult | None
    after: StepResult
    events: tuple[tuple[EventKind, dict[str, Any]], ...] = ()
    effects: tuple[Effect, ...] = ()
    changes: Mapping[str, Any] = field(factory=dict)


def started(attempt: int = 1, **more: object):
    return (K.STEP_STARTED, {"step": "work", "attempt": attempt, **more})


def event(kind: EventKind, **more: object):
    return (kind, {"step": "work", **more})


def ended(before: StepResult, status: StepStatus, error: str | None = None, **more) -> StepResult:
    """*before* as it is when it has ended."""
    nothing = {"retry_at": None, "awaits": None, "until": None}
    return evolve(before, status=status, completed_at=THEN, error=error, **nothing, **more)


FRESH = StepResult(StepStatus.RUNNING, THEN)
SPENT = Usage(10, 20, "1.5")
SUM = Usage(11, 22, "2")

CASES = {
    "a first attempt": Case(facts.StepBegun("work"), None, FRESH, (started(),)),
    "the next attempt": Case(
        facts.StepBegun("work"),
        AGAIN,
        evolve(RUNNING, attempts=3, attempt_at=THEN),
        (started(3),),
    ),
    "an attempt after an interruption": Case(
        facts.StepBegun("work"), LOST, evolve(RUNNING, attempts=3, attempt_at=THEN), (started(3),)
    ),
    "a first attempt after people were asked": Case(
        facts.StepBegun("work"),
        builders.step_result(StepStatus.RUNNING, attempts=0, retry_at=NOW),
        FRESH,
        (started(),),
    ),
    "a loop": Case(
        facts.ContainerStarted("work", SOON, ["a", "b"]),
        None,
        evolve(FRESH, awaits=Awaits.STEPS, until=SOON, items=["a", "b"], rounds=2),
        (started(rounds=2),),
    ),
    "branches": Case(
        facts.ContainerStarted("work"), None, evolve(FRESH, awaits=Awaits.STEPS), (started(),)
    ),
    "a switch": Case(
        facts.ContainerStarted("work", SOON, case=1),
        None,
        evolve(FRESH, awaits=Awaits.STEPS, until=SOON, case=1),
        (started(),),
    ),
    "a value": Case(
        facts.DataGiven("work", [7]),
        None,
        ended(FRESH, StepStatus.COMPLETED, output=[7]),
        (started(), event(K.STEP_COMPLETED, duration=0)),
    ),
    "a delay": Case(
        facts.DelayBegun("work", SOON),
        None,
        evolve(FRESH, awaits=Awaits.TIME, until=SOON),
        (started(),),
    ),
    "a child": Case(
        facts.ChildStarted("work", "exec_3", SOON),
        None,
        evolve(FRESH, awaits=Awaits.CHILD, until=SOON, child_id="exec_3"),
        (started(executionId="exec_3"),),
    ),
    "the next child": Case(
        facts.ChildStarted("work", "exec_3"),
        evolve(AGAIN, child_id="exec_2"),
        evolve(RUNNING, attempts=3, attempt_at=THEN, awaits=Awaits.CHILD, child_id="exec_3"),
        (started(3, executionId="exec_3"),),
    ),
    "a child that ended well": Case(
        facts.ChildCompleted("work", "exec_2", {"rows": 1}, SPENT),
        CHILD,
        ended(CHILD, StepStatus.COMPLETED, output={"rows": 1}, usage=SUM),
        (event(K.STEP_COMPLETED, duration=5_000),),
        LOOK,
        DUE,
    ),
    "a child that asked no model": Case(
        facts.ChildCompleted("work", "exec_2", 1),
        CHILD,
        ended(CHILD, StepStatus.COMPLETED, output=1),
        (event(K.STEP_COMPLETED, duration=5_000),),
        LOOK,
        DUE,
    ),
    "a child that ended badly": Case(
        facts.ChildFailed("work", "exec_2", "it failed", SPENT),
        evolve(CHILD, usage=None),
        evolve(CHILD, usage=SPENT, error="it failed"),
        (),
        LOOK,
        DUE,
    ),
    "a child that a worker's death ended": Case(
        facts.ChildFailed("work", "exec_2", "it failed", interrupted=True),
        CHILD,
        evolve(CHILD, error="it failed", reason=ReasonCode.INTERRUPTED),
        (),
        LOOK,
        DUE,
    ),
    "a final failure after such a child": Case(
        facts.StepFailed("work", "it failed", timed_out=True),
        evolve(CHILD, error="it failed", reason=ReasonCode.INTERRUPTED),
        ended(CHILD, StepStatus.FAILED, "it failed", reason=ReasonCode.INTERRUPTED),
        (event(K.STEP_FAILED, error="it failed"),),
    ),
    "a skipped step": Case(
        facts.StepSkipped("work", 4),
        None,
        StepResult(StepStatus.SKIPPED, THEN, THEN, attempts=0, steps=4),
        (event(K.STEP_SKIPPED),),
    ),
    "a good end": Case(
        facts.StepDone("work", {"rows": 1}, 3),
        evolve(FULL, error="an earlier one"),
        ended(FULL, StepStatus.COMPLETED, output={"rows": 1}, items=None, steps=3),
        (event(K.STEP_COMPLETED, duration=5_000),),
    ),
    "a good end of an attempt that had been postponed": Case(
        facts.StepDone("work", 1),
        evolve(RUNNING, postponed=4),
        ended(RUNNING, StepStatus.COMPLETED, output=1),
        (event(K.STEP_COMPLETED, duration=5_000),),
    ),
    "a first consumption": Case(
        facts.UsageRecorded("work", SPENT),
        evolve(RUNNING, usage=None),
        evolve(RUNNING, usage=SPENT),
    ),
    "more consumption": Case(
        facts.UsageRecorded("work", SPENT), RUNNING, evolve(RUNNING, usage=SUM)
    ),
    "refused files": Case(
        facts.FilesRefused("work", FILES), RUNNING, evolve(RUNNING, refused=FILES)
    ),
    "a failed attempt": Case(
        facts.StepRetrying("work", "no luck", SOON),
        RUNNING,
        evolve(RUNNING, error="no luck", retry_at=SOON),
        (event(K.STEP_RETRYING, error="no luck", retryAt=SOON),),
    ),
    "an attempt that could not begin": Case(
        facts.StepPostponed("work", "no room", SOON),
        evolve(RUNNING, postponed=3),
        evolve(RUNNING, attempts=1, error="no room", retry_at=SOON, postponed=4),
        (event(K.STEP_POSTPONED, attempt=2, reason="no room", retryAt=SOON),),
    ),
    "a first attempt that could not begin": Case(
        facts.StepPostponed("work", "no room", SOON),
        builders.step_result(StepStatus.RUNNING),
        builders.step_result(
            StepStatus.RUNNING, attempts=0, error="no room", retry_at=SOON, postponed=1
        ),
        (event(K.STEP_POSTPONED, attempt=1, reason="no room", retryAt=SOON),),
    ),
    "an attempt that was postponed": Case(
        facts.StepBegun("work"),
        evolve(RUNNING, attempts=1, error="no room", retry_at=SOON, postponed=4),
        evolve(RUNNING, postponed=4, attempt_at=THEN),
        (started(2),),
    ),
    "a failed attempt that had been postponed": Case(
        facts.StepRetrying("work", "no luck", SOON),
        evolve(RUNNING, postponed=4),
        evolve(RUNNING, error="no luck", retry_at=SOON),
        (event(K.STEP_RETRYING, error="no luck", retryAt=SOON),),
    ),
    "a child that took too long": Case(
        facts.StepRetrying("work", "too long", SOON),
        CHILD,
        evolve(CHILD, error="too long", retry_at=SOON, awaits=None, until=None),
        (event(K.STEP_RETRYING, error="too long", retryAt=SOON),),
        (CancelChildren(("exec_2",)),),
    ),
    "a final failure": Case(
        facts.StepFailed("work", "no luck"),
        evolve(FULL, retry_at=SOON),
        ended(FULL, StepStatus.FAILED, "no luck", reason=ReasonCode.STEP_FAILED),
        (event(K.STEP_FAILED, error="no luck"),),
    ),
    "a final failure of a child in time": Case(
        facts.StepFailed("work", "too long", True, 3),
        CHILD,
        ended(CHILD, StepStatus.FAILED, "too long", reason=ReasonCode.TIMEOUT, steps=3),
        (event(K.STEP_FAILED, error="too long"),),
        (CancelChildren(("exec_2",)),),
    ),
    "a failure before it began": Case(
        facts.StepFailed("work", "when: boom", steps=0),
        None,
        StepResult(
            StepStatus.FAILED,
            THEN,
            THEN,
            error="when: boom",
            attempts=0,
            reason=ReasonCode.STEP_FAILED,
            steps=0,
        ),
        (event(K.STEP_FAILED, error="when: boom"),),
    ),
    "a failure of what was interrupted": Case(
        facts.StepFailed("work", "no luck"),
        LOST,
        ended(LOST, StepStatus.FAILED, "no luck", reason=ReasonCode.STEP_FAILED),
        (event(K.STEP_FAILED, error="no luck"),),
    ),
    "a stopped question": Case(
        facts.StepsCancelled(("work",), "Step 'x' failed"),
        ASKS,
        ended(ASKS, StepStatus.CANCELLED, "Step 'x' failed"),
        (event(K.APPROVAL_CANCELLED, approvalId="appr_1"),),
        (WithdrawApprovals(("appr_1",)),),
    ),
    "a stopped child": Case(
        facts.StepsCancelled(("work",), "Step 'x' failed"),
        CHILD,
        ended(CHILD, StepStatus.CANCELLED, "Step 'x' failed"),
        (),
        (CancelChildren(("exec_2",)),),
    ),
    "a question": Case(
        facts.ApprovalOpened("work", "appr_1"),
        None,
        StepResult(StepStatus.AWAITING_APPROVAL, THEN, approval_id="appr_1"),
        (started(), event(K.APPROVAL_CREATED, approvalId="appr_1")),
    ),
    "a budget that is spent before the first attempt": Case(
        facts.BudgetReached("work", "appr_1"),
        None,
        StepResult(StepStatus.AWAITING_APPROVAL, THEN, attempts=0, approval_id="appr_1"),
        (event(K.APPROVAL_CREATED, approvalId="appr_1"),),
    ),
    "a budget that is spent before the next one": Case(
        facts.BudgetReached("work", "appr_1"),
        AGAIN,
        evolve(AGAIN, status=StepStatus.AWAITING_APPROVAL, retry_at=None, approval_id="appr_1"),
        (event(K.APPROVAL_CREATED, approvalId="appr_1"),),
    ),
    "a budget that is spent after an interruption": Case(
        facts.BudgetReached("work", "appr_1"),
        LOST,
        evolve(LOST, status=StepStatus.AWAITING_APPROVAL, completed_at=None, approval_id="appr_1"),
        (event(K.APPROVAL_CREATED, approvalId="appr_1"),),
    ),
    "a yes": Case(
        facts.Approved("work", "appr_1", {"rows": 1}),
        ASKS,
        ended(ASKS, StepStatus.COMPLETED, output={"rows": 1}),
        (
            event(K.APPROVAL_APPROVED, approvalId="appr_1"),
            event(K.STEP_COMPLETED, duration=5_000),
        ),
        LOOK,
        DUE,
    ),
    "a wish for changes": Case(
        facts.Revised("work", "appr_1", {"comment": "shorter"}, ()),
        ASKS,
        ended(ASKS, StepStatus.COMPLETED, output={"comment": "shorter"}),
        (
            event(K.APPROVAL_REVISED, approvalId="appr_1"),
            event(K.STEP_COMPLETED, duration=5_000),
        ),
        LOOK,
        {**DUE, "put_aside": {}},
    ),
    "a yes to more budget": Case(
        facts.BudgetExtended("work", "appr_1"),
        STRANDED,
        evolve(STRANDED, status=StepStatus.RUNNING, error=None, retry_at=THEN, approval_id=None),
        (event(K.APPROVAL_APPROVED, approvalId="appr_1"),),
        LOOK,
        {**DUE, "granted": Usage(1, 2, "0.5")},
    ),
}


def of(before: StepResult | None, **fields: Any):
    """A running execution in which *before* is what is known of `work`."""
    known = {} if before is None else {"work": before}
    ready = {"status": ExecutionStatus.RUNNING, "worker": "worker_1", "due_at": None, "events": 7}
    return builders.execution(**{"step_results": {"other": OTHER, **known}, **ready, **fields})


@pytest.mark.parametrize("name", CASES)
def test_a_fact_changes_this_and_nothing_else(name: str) -> None:
    """EX-3, EX-20: the result, the events and what follows are exactly these."""
    case = CASES[name]
    run = of(case.before)
    results = {"other": OTHER, "work": case.after}
    events = tuple(Event("exec_1", 8 + n, THEN, *one) for n, one in enumerate(case.events))
    repeats = case.before is not None and case.before.awaits is Awaits.STEPS  # as FL-14 says
    held = held_by(case.after, 0 if repeats else None) - held_by(case.before)
    changes = {"step_results": results, "events": 7 + len(events), "outputs_size": held}
    record = evolve(run, **changes, **case.changes)
    assert advance(run, case.fact, THEN) == Outcome(record, events, case.effects)


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.effects == LOOK])
def test_what_goes_on_is_taken_by_whoever_may(name: str) -> None:
    """FL-10: without a worker anybody may take it; an interrupted one waits for its resumption."""
    case = CASES[name]
    free = advance(of(case.before, worker=None), case.fact, THEN)
    assert (free.record.due_at, free.effects) == (THEN, (WakeRunner(),))
    lost = of(case.before, worker=None, status=ExecutionStatus.INTERRUPTED, due_at=SOON)
    outcome = advance(lost, case.fact, THEN)
    assert (outcome.record.due_at, outcome.effects) == (SOON, ())
    assert outcome.record.step_results["work"] == case.after


def test_what_is_stopped_is_stopped_together() -> None:
    """FL-4: each step ends as it would alone; the questions are withdrawn in one."""
    ask = evolve(ASKS, approval_id="appr_2")
    run = of(ASKS, step_results={"a": ASKS, "b": CHILD, "c": RUNNING, "d": ask, "e": DELAY})
    stopped = advance(run, facts.StepsCancelled(("a", "b", "c", "d"), "why"), THEN)
    for name, was in list(run.step_results.items())[:4]:
        assert stopped.record.step_results[name] == ended(was, StepStatus.CANCELLED, "why")
    assert stopped.record.step_results["e"] == DELAY
    withdrawn = WithdrawApprovals(("appr_1", "appr_2"))
    assert stopped.effects == (withdrawn, CancelChildren(("exec_2",)))


def test_who_joins_an_open_question_opens_none() -> None:
    """BU-4: it waits for the same answer, and the log tells of one question."""
    joined = advance(of(None, step_results={"a": ASKS}), facts.BudgetReached("b", "appr_1"), THEN)
    assert joined.record.step_results["b"].status is StepStatus.AWAITING_APPROVAL
    assert joined.events == ()


@pytest.mark.parametrize(
    "failure",
    [
        facts.StepFailed("work", "x" * 3_000_000),
        facts.StepRetrying("work", "x" * 3_000_000, SOON),
        facts.StepPostponed("work", "x" * 3_000_000, SOON),
        facts.Failed("x" * 3_000_000, "work"),
    ],
)
def test_an_error_of_any_length_is_cut_to_a_bound(failure: Any) -> None:
    """A step that fails with megabytes of text leaves 4,000 in results and events. EX-39."""
    run = builders.execution(status=ExecutionStatus.RUNNING, step_results={"work": RUNNING})
    outcome = advance(run, failure, THEN)
    after = outcome.record
    errors = [after.error, *(one.error for one in after.step_results.values())]
    assert all(len(one) < MAX_ERROR + 50 for one in errors if one)
    assert len(str(outcome.effects)) < 10 * MAX_ERROR
