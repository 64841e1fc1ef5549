"""The step machine: what is known of a step says what can still happen to it."""

from collections.abc import Mapping
from itertools import product
from typing import Any

import pytest
from attrs import evolve
from hypothesis import given

from wfcore.errors import IllegalMove
from wfcore.model.execution import (
    Awaits,
    ExecutionStatus,
    RefusedFile,
    StepResult,
    StepStatus,
    TriggerSource,
    Usage,
)
from wfcore.rules.execution import machine as facts
from wfcore.rules.execution.fold import advance
from wfcore.rules.execution.fold_steps import state_of
from wfcore.rules.execution.machine import Fact
from wfcore.rules.execution.step_machine import STEP, StepState
from wfcore.testing import builders
from wfcore.testing.builders import NOW
from wfcore.testing.strategies.trees import trees
from wfcore.testing.walks.execution import step_target
from wfcore.time import later

from .walker import LOSSES, Walk, walks

THEN = later(NOW, 5_000)
SOON = later(NOW, 60_000)
S = StepState
RUNNING = builders.step_result(StepStatus.RUNNING, attempts=2, usage=Usage(1, 2, "0.5"))
CHILD = evolve(RUNNING, awaits=Awaits.CHILD, until=SOON, child_id="exec_2")
ASKS = builders.step_result(StepStatus.AWAITING_APPROVAL, approval_id="appr_1")
KNOWN: Mapping[StepState, StepResult | None] = {
    S.NOT_STARTED: None,
    S.RUNNING: RUNNING,
    S.WAITING_FOR_STEPS: evolve(RUNNING, awaits=Awaits.STEPS, until=SOON, items=["a"]),
    S.DELAYED: builders.step_result(StepStatus.RUNNING, awaits=Awaits.TIME, until=SOON),
    S.WAITING_FOR_CHILD: CHILD,
    S.CHILD_FAILED: evolve(CHILD, error="it failed"),
    S.WAITING_FOR_MAIL: evolve(RUNNING, awaits=Awaits.MAIL, until=SOON),
    S.WAITING_FOR_RETRY: evolve(RUNNING, error="no luck", retry_at=THEN),
    S.AWAITING_APPROVAL: ASKS,
    S.INTERRUPTED: evolve(RUNNING, status=StepStatus.INTERRUPTED, completed_at=NOW),
    S.COMPLETED: builders.step_result(),
    S.SKIPPED: builders.step_result(StepStatus.SKIPPED),
    S.FAILED: builders.step_result(StepStatus.FAILED),
    S.REJECTED: builders.step_result(StepStatus.REJECTED),
    S.CANCELLED: builders.step_result(StepStatus.CANCELLED),
}
FIRST = {S.NOT_STARTED}
NEXT = {S.WAITING_FOR_RETRY, S.INTERRUPTED}
CHILDREN = {S.WAITING_FOR_CHILD, S.CHILD_FAILED}
UNDER_WAY = {S.RUNNING, S.WAITING_FOR_STEPS, S.DELAYED, *CHILDREN}
MAILED = {S.WAITING_FOR_MAIL}
ASKING = {S.AWAITING_APPROVAL}
OPEN = NEXT | UNDER_WAY | MAILED | ASKING
POSSIBLE: tuple[tuple[Any, set[StepState]], ...] = (
    (facts.StepBegun("work"), FIRST | NEXT),
    (facts.ContainerStarted("work"), FIRST),
    (facts.DelayBegun("work", SOON), FIRST),
    (facts.DataGiven("work", 7), FIRST),
    (facts.ChildStarted("work", "exec_3"), FIRST | NEXT),
    (facts.ChildCompleted("work", "exec_2"), {S.WAITING_FOR_CHILD}),
    (facts.ChildFailed("work", "exec_2", "no"), {S.WAITING_FOR_CHILD}),
    (facts.MailQueued("work", SOON), FIRST),
    (facts.MailTaken("work", 2, {}), MAILED),
    (facts.MailRefused("work", 2, "no"), MAILED),
    (facts.StepSkipped("work"), FIRST),
    (facts.StepDone("work"), UNDER_WAY),
    (facts.UsageRecorded("work", Usage(10, 20, "1.5")), UNDER_WAY),
    (facts.FilesRefused("work", (RefusedFile("big.bin", "too large"),)), UNDER_WAY),
    (facts.StepRetrying("work", "no", SOON), UNDER_WAY),
    (facts.StepPostponed("work", "no room", SOON), {S.RUNNING}),
    (facts.StepFailed("work", "no"), FIRST | UNDER_WAY | MAILED | NEXT),
    (facts.StepsCancelled(("work",), "why"), OPEN),
    (facts.ApprovalOpened("work", "appr_1"), FIRST),
    (facts.BudgetReached("work", "appr_1"), FIRST | NEXT),
    (facts.Approved("work", "appr_1", None), ASKING),
    (facts.Revised("work", "appr_1", None, ()), ASKING),
    (facts.BudgetExtended("work", "appr_1"), ASKING),
    (facts.Rejected("work", "appr_1"), ASKING),
)
ANOTHER = (
    (facts.ChildCompleted("work", "exec_3"), S.WAITING_FOR_CHILD),
    (facts.ChildFailed("work", "exec_3", "no"), S.WAITING_FOR_CHILD),
    (facts.MailTaken("work", 1, {}), S.WAITING_FOR_MAIL),
    (facts.MailRefused("work", 1, "no"), S.WAITING_FOR_MAIL),
    (facts.Approved("work", "appr_2", None), S.AWAITING_APPROVAL),
    (facts.Revised("work", "appr_2", None, ()), S.AWAITING_APPROVAL),
    (facts.BudgetExtended("work", "appr_2"), S.AWAITING_APPROVAL),
    (facts.Rejected("work", "appr_2"), S.AWAITING_APPROVAL),
)
"""Facts that the table permits, about another child, mail or approval than the step's."""


def of(state: StepState, **others: StepResult):
    """A running execution whose step `work` is in *state*."""
    before = KNOWN[state]
    known = {} if before is None else {"work": before}
    ready = {"status": ExecutionStatus.RUNNING, "worker": "worker_1", "due_at": None, "events": 7}
    return builders.execution(step_results={**known, **others}, **ready)


def refused(state: StepState, fact: Any, run) -> str:
    """What *run* says when it refuses *fact*, which must be of its step in *state*."""
    with pytest.raises(IllegalMove) as found:
        advance(run, fact, THEN)
    assert (found.value.machine, found.value.state) == ("step", state)
    assert found.value.fact == type(fact).__name__
    return str(found.value)


@pytest.mark.parametrize("state", StepState)
def test_what_is_known_of_a_step_is_its_state(state: StepState) -> None:
    """Its status, and for a RUNNING one what it waits for; no result: it has not started."""
    assert state_of(KNOWN[state]) is state


def test_every_fact_about_steps_is_tried() -> None:
    """The list of what is possible knows every fact that only a step can refuse."""
    about_the_execution = {facts.ExecutionAborted, facts.GraceOver, facts.WorkerLost}
    tried = {type(fact) for fact, _ in POSSIBLE}
    assert tried == set(STEP.facts) - about_the_execution


@pytest.mark.parametrize(("fact", "possible"), POSSIBLE, ids=lambda one: type(one).__name__)
def test_a_fact_is_possible_only_in_these_states(fact: Any, possible: set[StepState]) -> None:
    """EX-3: what is reported twice, or too late, changes nothing, and says where the step is."""
    for state in StepState:
        assert STEP.allows(state, type(fact)) is (
            state in possible or (type(fact) is facts.Rejected and state in OPEN)
        ), state
        if state in possible:
            assert advance(of(state), fact, THEN).record != of(state), state
        else:
            message = refused(state, fact, of(state))
            assert message.startswith(f"step 'work' is {state}: ")


@pytest.mark.parametrize(("fact", "state"), ANOTHER, ids=lambda one: type(one).__name__)
def test_a_fact_about_another_child_or_approval_is_refused(fact: Any, state: StepState) -> None:
    """FL-6, EX-5: a step is answered by its own child and its own approval alone."""
    assert refused(state, fact, of(state)).startswith(f"step 'work' is {state}: ")


def test_an_approval_is_no_answer_for_another_step() -> None:
    """EX-5: a step that does not wait for it is refused, though another one does."""
    run = of(S.RUNNING, other=ASKS)
    for fact, name in (
        (facts.Approved("work", "appr_1", 1), "approved"),
        (facts.Revised("work", "appr_1", 1, ()), "revised"),
    ):
        message = refused(S.RUNNING, fact, run)
        assert message == f"step 'work' is RUNNING: {name} is not possible"


ENDS: tuple[Fact, ...] = (facts.CancelAsked(), facts.ParentEnded(), facts.Failed("no"))


@pytest.mark.parametrize(("end", "state"), list(product(ENDS, StepState)), ids=str)
def test_an_abort_ends_every_open_step(end: Fact, state: StepState) -> None:
    """EX-29: whatever ends the execution; what has ended, or never started, stays as it is."""
    after = advance(of(state), end, THEN).record.step_results.get("work")
    if state not in OPEN:
        assert after == KNOWN[state]
        return
    assert after is not None
    assert (state_of(after), after.completed_at) == (S.CANCELLED, THEN)


@pytest.mark.parametrize("state", StepState)
def test_the_end_of_the_grace_keeps_what_was_interrupted(state: StepState) -> None:
    """EX-29, EX-13: nobody knows how far it came, so it is not said to be cancelled."""
    run = evolve(of(state), status=ExecutionStatus.INTERRUPTED, worker=None)
    after = advance(run, facts.GraceOver(), THEN).record.step_results.get("work")
    aborted = state in OPEN - {S.INTERRUPTED}
    assert state_of(after) is (S.CANCELLED if aborted else state)
    assert aborted or after == KNOWN[state]


@pytest.mark.parametrize("state", StepState)
def test_a_lost_worker_interrupts_only_what_it_ran(state: StepState) -> None:
    """EX-11: what had a process is INTERRUPTED; what waited waits on."""
    after = advance(of(state), facts.WorkerLost(SOON), THEN).record.step_results.get("work")
    assert state_of(after) is (S.INTERRUPTED if state is S.RUNNING else state)
    assert state is S.RUNNING or after == KNOWN[state]


@pytest.mark.parametrize("state", StepState)
def test_a_rejection_of_another_step_aborts_this_one(state: StepState) -> None:
    """EX-29, EX-6: also one that waits for people itself; that approval is withdrawn."""
    asks = evolve(ASKS, approval_id="appr_2")
    run = advance(of(state, other=asks), facts.Rejected("other", "appr_2"), THEN).record
    assert state_of(run.step_results["other"]) is S.REJECTED
    reached = state_of(run.step_results.get("work"))
    assert reached is (S.CANCELLED if state in OPEN else state)


@pytest.mark.parametrize("state", StepState)
def test_a_failure_of_the_execution_fails_the_step_that_it_names(state: StepState) -> None:
    """EX-10: unless that one has failed already. One that ended otherwise is no reason to fail."""
    fact = facts.Failed("no", "work")
    if state is not S.FAILED and not STEP.allows(state, facts.StepFailed):
        with pytest.raises(IllegalMove):
            advance(of(state), fact, THEN)
        return
    run = advance(of(state), fact, THEN).record
    assert state_of(run.step_results["work"]) is S.FAILED


def test_steps_that_have_ended_are_not_cancelled() -> None:
    """EX-3: one of them is enough for the whole fact to be refused."""
    run = of(S.RUNNING, other=builders.step_result())
    with pytest.raises(IllegalMove, match="step 'other' is COMPLETED"):
        advance(run, facts.StepsCancelled(("work", "other"), "why"), THEN)
    with pytest.raises(IllegalMove, match="step 'new' is NOT_STARTED"):
        advance(run, facts.StepsCancelled(("new",), "why"), THEN)


CHANCES = walks() | walks(definitions=trees()) | walks([TriggerSource.MANUAL], [LOSSES])


@given(CHANCES)
def test_every_fold_leads_each_step_where_its_table_says(walk: Walk) -> None:
    """EX-3: whatever happens, step by step, also to the steps that the fact is not about."""
    for before, fact, after in walk.folds:
        for name in {*before.step_results, *after.step_results}:
            reached = state_of(after.step_results.get(name))
            assert reached is step_target(before, name, fact), (name, fact)
