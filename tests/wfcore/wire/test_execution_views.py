"""An execution is shown as it is on record, without its secrets."""

from attrs import evolve

from wfcore.model.execution import (
    Awaits,
    ExecutionStatus,
    ReasonCode,
    RefusedFile,
    StatusReason,
    StepStatus,
    TriggerSource,
    Usage,
)
from wfcore.model.workflow import Variable, VariableType
from wfcore.testing import builders as make
from wfcore.wire import executions, workflows
from wfcore.wire.converter import plain

SECRET = "sesame-open"
RUN = make.execution(
    revision=3,
    owner_id="acc_2",
    trigger_source=TriggerSource.WEBHOOK,
    status=ExecutionStatus.FAILED,
    status_reason=StatusReason(ReasonCode.STEP_FAILED, "work", "appr_1"),
    total_steps=7,
    completed_at=make.NOW + 5_000,
    variables={"token": SECRET, "text": f"with {SECRET}", "n": 1},
    secrets=("token",),
    error=f"no {SECRET}",
    output={"said": SECRET},
    step_results={
        "work": make.step_result(
            StepStatus.FAILED,
            output=f"got {SECRET}",
            error=f"not {SECRET}",
            attempts=3,
            usage=Usage(1, 2, "0.5"),
            refused=(RefusedFile(f"{SECRET}.txt", "a link"),),
            child_id="exec_2",
        )
    },
    put_aside={"1/work": make.step_result(usage=Usage(10, 20, "0.25"))},
    key_id="key_1",
    webhook_id="wh_1",
    trigger_id="trg_1",
    redrive_of="exec_0",
    reference="Order 7",
    parent_id="exec_9",
)
STEP = {
    "status": "FAILED",
    "output": "got ***",
    "duration": 1_000,
    "startedAt": make.NOW,
    "completedAt": make.NOW + 1_000,
    "error": "not ***",
    "attempts": 3,
    "usage": {"inputTokens": 1, "outputTokens": 2, "costUsd": "0.5"},
    "refusedArtifacts": [{"name": "***.txt", "reason": "a link"}],
    "executionId": "exec_2",
}
ROW = {
    "executionId": "exec_1",
    "workflowId": "wf_1",
    "workflowName": "Workflow wf_1",
    "triggerSource": "webhook",
    "status": "FAILED",
    "statusReason": {"code": "STEP_FAILED", "stepName": "work", "approvalId": "appr_1"},
    "currentStep": None,
    "completedSteps": 1,
    "totalSteps": 7,
    "startedAt": make.NOW,
    "completedAt": make.NOW + 5_000,
    "error": "no ***",
    "usage": {"inputTokens": 11, "outputTokens": 22, "costUsd": "0.75"},
    "redriveOf": "exec_0",
    "reference": "Order 7",
    "parentExecutionId": "exec_9",
    "workflowVersion": 3,
    "startedBy": {
        "accountId": "acc_2",
        "email": "bob@example.org",
        "keyId": "key_1",
        "keyName": "a key",
        "webhookId": "wh_1",
        "triggerId": "trg_1",
    },
}
NAMES = {"acc_2": "bob@example.org", "key_1": "a key"}


def test_an_execution_is_shown_without_its_secrets() -> None:
    """In lists, its own view and its result: outputs, errors and names of files, too. SC-4."""
    step = plain(executions.step_view(RUN, "work"))
    assert step == STEP
    assert plain(executions.execution_row(RUN, NAMES)) == ROW
    view = plain(executions.status_view(RUN, NAMES, "exec_3"))
    earlier = view.pop("earlierResults")["1/work"]["usage"]
    assert earlier == {"inputTokens": 10, "outputTokens": 20, "costUsd": "0.25"}
    assert view == ROW | {
        "redrivenAs": "exec_3",
        "inputs": {"token": "***", "text": "with ***", "n": 1},
        "stepResults": {"work": STEP},
    }
    assert SECRET not in repr(plain(executions.result_view(RUN)))


def test_a_result_has_its_output_only_if_it_completed() -> None:
    """Masked, with how long it took."""
    failed = plain(executions.result_view(RUN))
    done = plain(executions.result_view(evolve(RUN, status=ExecutionStatus.COMPLETED)))
    assert (failed["output"], done["output"]) == (None, {"said": "***"})
    steps = {name: failed.pop(name) for name in ("stepResults", "earlierResults")}
    assert (steps["stepResults"], [*steps["earlierResults"]]) == ({"work": STEP}, ["1/work"])
    assert failed == {
        "executionId": "exec_1",
        "workflowId": "wf_1",
        "status": "FAILED",
        "duration": 5_000,
        "output": None,
        "error": "no ***",
        "usage": ROW["usage"],
        "completedAt": make.NOW + 5_000,
    }


def test_counts_end_at_what_was_counted() -> None:
    """What there is more of is named."""
    found = {ExecutionStatus.PENDING: 3, ExecutionStatus.FAILED: 2, ExecutionStatus.RUNNING: 0}
    view = plain(executions.execution_counts(found, 2))
    assert view == {"counts": {"PENDING": 2, "FAILED": 2, "RUNNING": 0}, "atLeast": ["PENDING"]}


def test_the_current_step_is_one_that_holds_no_other() -> None:
    """Unless nothing in it has begun. EX-22."""
    holder = make.step_result(StepStatus.RUNNING, awaits=Awaits.STEPS)
    inner = make.step_result(StepStatus.AWAITING_APPROVAL)
    for results, current in (
        ({"done": make.step_result(), "all": holder, "one": inner}, "one"),
        ({"all": holder, "inner": holder}, "all"),
        ({"done": make.step_result()}, None),
    ):
        run = make.execution(step_results=results)
        assert executions.execution_row(run).current_step == current


def test_the_default_of_a_secret_variable_is_masked() -> None:
    """And one that there is not is null. SC-2."""
    names = ("open", "secret", "bare")
    variables = (
        Variable("open", VariableType.STRING, default="a", has_default=True),
        Variable("secret", VariableType.STRING, secret=True, default=SECRET, has_default=True),
        Variable("bare", VariableType.STRING, required=True, secret=True),
    )
    definition = make.definition(variables=dict(zip(names, variables, strict=True)))
    view = workflows.workflow_view(make.workflow(), definition)
    assert [one.default for one in view.variables] == ["a", "***", None]
    assert SECRET not in str(view)
    assert view.definition["variables"]["secret"]["default"] == "***"
    assert [one.default for one in workflows.definition_view(RUN, definition).variables] == [
        "a",
        "***",
        None,
    ]
