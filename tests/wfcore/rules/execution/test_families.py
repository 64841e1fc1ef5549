"""Executions that start one another: what is told from one to the other, and what is not."""

import pytest
from attrs import evolve

from wfcore.errors import Conflict
from wfcore.model.execution import (
    Awaits,
    Execution,
    ExecutionStatus,
    ReasonCode,
    StatusReason,
    StepStatus,
    Usage,
)
from wfcore.rules.execution.children import (
    child_end,
    given_up,
    inherited_secrets,
    require_finite,
    waits_for,
)
from wfcore.rules.execution.machine import ChildCompleted, ChildFailed
from wfcore.rules.limits import MAX_CHILD_DEPTH
from wfcore.testing import builders

S = ExecutionStatus
SUB = builders.step_result(StepStatus.RUNNING, awaits=Awaits.CHILD, child_id="exec_2")
USED = {
    "one": builders.step_result(usage=Usage(1, 2, "0.5")),
    "none": builders.step_result(),
    "two": builders.step_result(StepStatus.FAILED, usage=Usage(10, 20, "0.25")),
}
SPENT = Usage(11, 22, "0.75")


def child(status: S, **fields: object) -> Execution:
    """An ended execution that the step `sub` of another one started."""
    return builders.execution("exec_2", status=status, parent_step="sub", **fields)


def cancelled(reason: ReasonCode | None) -> Execution:
    return child(S.CANCELLED, status_reason=None if reason is None else StatusReason(reason))


@pytest.mark.parametrize("status", [s for s in S if s not in (S.RUNNING, S.INTERRUPTED)])
def test_nobody_waits_in_an_execution_that_cannot_go_on(status: S) -> None:
    """FL-6: one that has ended, or asks people, waits for no child."""
    parent = builders.execution(status=status, step_results={"sub": SUB})
    assert not waits_for(parent, "exec_2", "sub")


@pytest.mark.parametrize("status", [S.RUNNING, S.INTERRUPTED])
def test_a_step_waits_for_its_own_child_only(status: S) -> None:
    """FL-6: for the one of its present attempt, as long as it waits at all."""
    results = {"sub": SUB, "work": builders.step_result(StepStatus.RUNNING)}
    parent = builders.execution(status=status, step_results=results)
    assert waits_for(parent, "exec_2", "sub")
    assert not waits_for(parent, "exec_1", "sub")
    assert not waits_for(parent, "exec_2", "work")
    assert not waits_for(parent, "exec_2", "unknown")
    assert not waits_for(parent, "exec_2", None)
    over = evolve(parent, step_results={"sub": evolve(SUB, error="it failed")})
    assert not waits_for(over, "exec_2", "sub")


def test_a_good_end_gives_its_output_without_its_secrets() -> None:
    """FL-6, SC-1: what was secret in the child is masked; what was not is as it was."""
    done = child(S.COMPLETED, output={"say": "hunter22", "rows": (1, 2)}, step_results=USED)
    said = {"say": "hunter22", "rows": (1, 2)}
    assert child_end(done) == ChildCompleted("sub", "exec_2", said, SPENT)
    told = child_end(evolve(done, variables={"key": "hunter22"}, secrets=("key",)))
    assert told == ChildCompleted("sub", "exec_2", {"say": "***", "rows": [1, 2]}, usage=SPENT)


@pytest.mark.parametrize(
    ("run", "error"),
    [
        (child(S.FAILED, error="no luck"), "failed: no luck"),
        (
            cancelled(ReasonCode.APPROVAL_REJECTED),
            "was cancelled: an approval was rejected",
        ),
        (
            cancelled(ReasonCode.APPROVAL_TIMEOUT),
            "was cancelled: nobody decided an approval in time",
        ),
        (cancelled(ReasonCode.CANCEL_REQUESTED), "was cancelled"),
        (cancelled(ReasonCode.PARENT_CANCELLED), "was cancelled"),
        (cancelled(None), "was cancelled"),
    ],
)
def test_a_bad_end_says_how_it_came(run: Execution, error: str) -> None:
    """FL-6, AI-7: which execution, why, and what it consumed all the same."""
    told = f"execution exec_2 {error}"
    assert child_end(run) == ChildFailed("sub", "exec_2", error=told)
    spent = evolve(run, step_results=USED)
    assert child_end(spent) == ChildFailed("sub", "exec_2", error=told, usage=SPENT)


@pytest.mark.parametrize("status", [S.RUNNING, S.INTERRUPTED, S.AWAITING_APPROVAL])
def test_what_was_interrupted_too_long_is_given_up(status: S) -> None:
    """EX-26, AI-7: to the step it has ended by a worker's death, with what it consumed."""
    told = "execution exec_2 was interrupted and has not ended in time"
    assert given_up(child(status)) == ChildFailed("sub", "exec_2", error=told, interrupted=True)
    spent = given_up(child(status, step_results=USED))
    assert spent == ChildFailed("sub", "exec_2", error=told, usage=SPENT, interrupted=True)


def test_what_is_secret_stays_so_in_the_child() -> None:
    """SC-1: an input that holds a secret of the parent, and no other one."""
    inputs = {"whole": "hunter22", "inside": [{"a": "--hunter22--"}], "plain": "hunter", "n": 1}
    parent = builders.execution(variables={"key": "hunter22", "n": 1}, secrets=("key",))
    assert set(inherited_secrets(parent, inputs)) == {"whole", "inside"}
    assert inherited_secrets(evolve(parent, secrets=()), inputs) == ()


def test_a_workflow_does_not_start_itself() -> None:
    """FL-9: by no way; and no chain of starts is deeper than the limit."""
    names = ["inner", "middle", "outer"]
    ancestors = [builders.execution(workflow_id=f"wf_{n}", workflow_name=n) for n in names]
    with pytest.raises(Conflict) as refused:
        require_finite(builders.workflow("wf_middle", name="renamed"), ancestors)
    said = "workflow 'renamed' would start itself: outer > middle > inner > renamed"
    assert str(refused.value) == said
    deep = [builders.execution(workflow_id=f"wf_{n}") for n in range(MAX_CHILD_DEPTH)]
    require_finite(builders.workflow("wf_new"), deep[1:])
    with pytest.raises(Conflict) as refused:
        require_finite(builders.workflow("wf_new"), deep)
    assert str(refused.value) == "executions start one another at most 8 deep"
