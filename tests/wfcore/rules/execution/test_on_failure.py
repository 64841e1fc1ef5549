"""Steps for the case that an execution fails: once, and without a say in how it ends. EX-31."""

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from wfcore.errors import IllegalMove, InvalidDefinition
from wfcore.model.event import EventKind
from wfcore.model.execution import ExecutionStatus as S
from wfcore.model.execution import (
    PendingFailure,
    ReasonCode,
    StatusReason,
    StepStatus,
    TriggerSource,
)
from wfcore.model.workflow import (
    AiStep,
    Branch,
    Budget,
    Definition,
    DelayStep,
    LoopStep,
    OnExceeded,
    ParallelStep,
    Retry,
)
from wfcore.rules.definition.written import read_definition
from wfcore.rules.execution import machine as facts
from wfcore.rules.execution.fold import INTERRUPTED_ERROR, advance
from wfcore.rules.execution.scope import scope
from wfcore.testing import builders
from wfcore.testing.builders import NOW
from wfcore.testing.strategies.runs import BOOM, ai_steps, code_steps, sequences
from wfcore.testing.strategies.trees import trees
from wfcore.time import DurationMs

from .walker import HABITS, LOSSES, accepted, walks

LAST = ("told", "tidied")
HARD = (*HABITS, ("fail_for_good", "claim"), ("fail_for_good", *LOSSES), ("lose_worker", "grace"))


@st.composite
def with_on_failure(draw, whole=None) -> Definition:
    """A definition with one or two steps for the case that it fails."""
    definition = draw(sequences() if whole is None else whole)
    names = LAST[: draw(st.integers(1, 2))]
    last = tuple(draw(code_steps(name) | ai_steps(name)) for name in names)
    return evolve(definition, on_failure=last)


DEFINITIONS = with_on_failure() | with_on_failure(trees())


def doomed_at(walk) -> int | None:
    """The first stage after which the walk was going to fail."""
    return next((at for at, one in enumerate(walk.stages) if one.after.failing), None)


@given(walks(definitions=DEFINITIONS, habits=HARD))
def test_the_verdict_stands_once_it_is_made(walk):
    """Whatever the last steps do, it is FAILED with the error that it had, or was cancelled."""
    if (at := doomed_at(walk)) is None:
        assert walk.run.status in (S.COMPLETED, S.CANCELLED)
        return
    failing = walk.stages[at].after.failing
    assert {one.after.failing for one in walk.stages[at:]} == {failing}
    if walk.run.status is not S.CANCELLED:
        assert walk.run.status is S.FAILED
        assert (walk.run.error, walk.run.status_reason) == (failing.error, failing.reason)


@given(walks(definitions=DEFINITIONS, habits=HARD))
def test_a_failure_is_told_once_and_before_the_end(walk):
    """One `failure.started`, with the reason of the end, exactly where the execution was doomed."""
    told = [event for event in walk.events if event.kind is EventKind.FAILURE_STARTED]
    assert len(told) == (doomed_at(walk) is not None)
    if walk.run.status is S.FAILED:
        assert walk.events[-1].data == told[0].data


@given(walks(definitions=DEFINITIONS, habits=HARD))
def test_the_last_steps_begin_only_then_and_nothing_else_begins_any_more(walk):
    """Steps of `onFailure` start once it is going to fail, and only these."""
    for stage in walk.stages:
        for start in stage.starts:
            assert (start.step_name in LAST) == (stage.after.failing is not None)
    in_flight = {name for one in walk.stages if one.after.failing for name in one.after.in_flight}
    assert in_flight <= set(LAST)


@given(walks(definitions=DEFINITIONS, habits=HARD))
def test_progress_counts_the_steps_of_the_work_alone(walk):
    """Never more steps have ended than there are. FL-8, EX-22."""
    for stage in walk.stages:
        assert stage.after.completed_steps <= stage.after.total_steps


@given(walks(definitions=DEFINITIONS, habits=HARD))
def test_nobody_is_asked_any_more(walk):
    """Approvals that were open are withdrawn when it begins to fail, and none opens. EX-32."""
    for stage in walk.stages:
        if stage.after.failing is not None:
            assert not stage.opened
            assert not stage.after.asks


def failing_walk(*steps, on_failure=None, source=TriggerSource.OPEN_API, **fields):
    """A walk whose first step has failed for good, and one `onFailure` step runs."""
    last = on_failure or (builders.code_step("told"),)
    definition = builders.definition(*steps, on_failure=tuple(last), **fields)
    walk = accepted(definition, source)
    for move in ("claim", "fail_for_good"):
        walk.take(move)
    return walk


def test_the_error_is_in_scope_and_so_is_what_never_began():
    """`error` is the error of the execution; steps that did not begin are SKIPPED. DF-14."""
    walk = failing_walk(builders.code_step("one"), builders.code_step("two"))
    names = scope(walk.definition, walk.run)
    assert names["error"] == "Step 'one' failed: no"
    assert names["steps"]["one"] == {"status": "FAILED", "output": None}
    assert names["steps"]["two"] == {"status": "SKIPPED", "output": None}


def test_an_execution_that_does_not_fail_has_no_error_in_scope():
    """Only `onFailure` knows `error`. DF-14."""
    walk = accepted(
        builders.definition(on_failure=(builders.code_step("told"),)), TriggerSource.MANUAL
    )
    walk.take("claim")
    assert "error" not in scope(walk.definition, walk.run)
    walk.take("done")
    assert (walk.run.status, "told" in walk.run.step_results) == (S.COMPLETED, False)


def test_what_ran_beside_it_ends_before_the_last_steps_begin():
    """A branch that still runs, and a question that is open, are CANCELLED first. EX-32."""
    branches = (
        Branch("a", (builders.code_step("one"),)),
        Branch("b", (builders.code_step("two"),)),
    )
    walk = failing_walk(ParallelStep("both", branches))
    assert walk.run.step_results["two"].status is StepStatus.CANCELLED
    assert walk.run.in_flight == ("told",)


def test_a_step_that_fails_there_is_told_by_its_result_alone():
    """Its result says FAILED; the error of the execution is the first one. EX-31."""
    walk = failing_walk(on_failure=(builders.code_step("told"), builders.code_step("tidied")))
    walk.take("fail_for_good")
    assert (walk.run.status, walk.run.error) == (S.FAILED, "Step 'work' failed: no")
    assert walk.run.step_results["told"].status is StepStatus.FAILED
    assert "tidied" not in walk.run.step_results


def test_steps_there_may_hold_others_wait_and_be_tried_again():
    """Loops, delays, retries and `continueOnError` work there as everywhere."""
    last = (
        DelayStep("pause", DurationMs(500)),
        LoopStep("each", [1, 2], "item", (builders.code_step("tell", retry=Retry(2)),)),
        builders.code_step("tidied", continue_on_error=True),
    )
    walk = failing_walk(on_failure=last)
    for move in ("claim", "fail", "claim", "done", "done", "fail_for_good"):
        walk.take(move)
    assert (walk.run.status, walk.run.error) == (S.FAILED, "Step 'work' failed: no")
    assert walk.run.step_results["each"].output == [{"of": "each.0.tell"}, {"of": "each.1.tell"}]
    assert walk.run.step_results["each.0.tell"].attempts == 2


def test_cancelling_ends_them_too():
    """Somebody who wants it to end now is obeyed, and the last steps with it. EX-7, EX-32."""
    walk = failing_walk()
    walk.take("cancel")
    assert walk.run.status is S.CANCELLED
    assert walk.run.step_results["told"].status is StepStatus.CANCELLED


@pytest.mark.parametrize("source", [TriggerSource.OPEN_API, TriggerSource.MANUAL])
def test_a_worker_that_dies_there_leaves_the_verdict(source):
    """Resumed, its step begins again; not resumed, it fails with the first error. EX-31, EX-32."""
    walk = failing_walk(source=source)
    walk.take("lose_worker")
    assert walk.run.status is S.INTERRUPTED
    if source is TriggerSource.MANUAL:
        for move in ("resume", "claim", "done"):
            walk.take(move)
        assert [start.attempt for start in walk.starts if start.step_name == "told"] == [1, 2]
    else:
        walk.take("grace")
        assert walk.run.step_results["told"].status is StepStatus.INTERRUPTED
    assert (walk.run.status, walk.run.error) == (S.FAILED, "Step 'work' failed: no")
    assert walk.run.status_reason == StatusReason(ReasonCode.STEP_FAILED, "work")


def test_who_is_not_resumed_is_told_too():
    """An interrupted execution runs its last steps when its grace is over. EX-13, EX-31."""
    definition = builders.definition(on_failure=(builders.code_step("told"),))
    walk = accepted(definition, TriggerSource.OPEN_API)
    for move in ("claim", "lose_worker", "grace", "claim"):
        walk.take(move)
    assert (walk.run.status, walk.run.in_flight) == (S.RUNNING, ("told",))
    assert walk.run.step_results["work"].status is StepStatus.INTERRUPTED
    walk.take("done")
    assert (walk.run.status, walk.run.error) == (S.FAILED, INTERRUPTED_ERROR)
    assert walk.run.status_reason == StatusReason(ReasonCode.INTERRUPTED, "work")


def test_an_exceeded_budget_fails_the_last_step_instead_of_asking():
    """Whoever failed by the budget is not asked for more of it by the way. EX-32, BU-1."""
    budget = Budget(max_tokens=1, on_exceeded=OnExceeded.APPROVE)
    walk = failing_walk(
        AiStep("ask", "m:x", "Say it"), on_failure=(AiStep("told", "m:x", "Say"),), budget=budget
    )
    assert (walk.run.status, walk.approvals) == (S.FAILED, {})
    assert "budget" in walk.run.step_results["told"].error


def test_an_execution_that_is_going_to_fail_cannot_begin_to_fail_again():
    """The table allows the fact, the record does not: once. EX-31."""
    failing = PendingFailure("no", StatusReason(ReasonCode.STEP_FAILED))
    run = builders.execution(status=S.RUNNING, worker="worker_1", failing=failing)
    with pytest.raises(IllegalMove):
        advance(run, facts.Failing("again"), NOW)


def test_an_output_that_fails_is_a_failure_like_any():
    """Also what fails after the last step is followed by `onFailure`."""
    last = (builders.code_step("told"),)
    definition = builders.definition(on_failure=last, output=BOOM, has_output=True)
    walk = accepted(definition, TriggerSource.MANUAL)
    for move in ("claim", "done", "done"):
        walk.take(move)
    assert walk.run.status is S.FAILED
    assert walk.run.error.startswith("output: ")


MISTAKES = [
    (
        [{"name": "ask", "kind": "manual_approval", "message": "?", "timeout": "1h"}],
        "onFailure[0].kind: must not be manual_approval in `onFailure`: nothing that happens there "
        "changes how the execution ends",
    ),
    (
        [{"name": "work", "kind": "delay", "duration": "1s"}],
        "onFailure[0].name: repeats 'work' of steps[0]",
    ),
    ([], "onFailure: must have at least 1 item"),
]


@pytest.mark.parametrize(("steps", "message"), MISTAKES)
def test_mistakes_in_it_are_said_with_their_path(steps, message):
    """Names are unique in the whole definition, and nobody is asked there. DF-2, DF-14."""
    code = {"name": "work", "kind": "code", "language": "python", "source": "1"}
    with pytest.raises(InvalidDefinition) as refused:
        read_definition({"name": "W", "steps": [code], "onFailure": steps})
    assert [str(one) for one in refused.value.problems] == [message]
