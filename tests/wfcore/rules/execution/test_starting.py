"""A new execution holds all that was said of its start, and nothing else. EX-1."""

from wfcore.effects import Outcome, WakeRunner
from wfcore.model.event import Event, EventKind
from wfcore.model.execution import Execution, ExecutionStatus, TriggerSource, Usage
from wfcore.model.workflow import Variable
from wfcore.rules.execution.fold_steps import held_by
from wfcore.rules.execution.start import Start, accept
from wfcore.testing import builders
from wfcore.testing.builders import NOW

WORKFLOW = builders.workflow("wf_7", name="Seven", owner_id="acc_7", revision=3)
DEFINITION = builders.definition(
    builders.code_step("a"),
    builders.code_step("b"),
    variables={
        "v": Variable("v", has_default=True, default="usual"),
        "key": Variable("key", secret=True),
    },
)
KEPT = {
    "a": builders.step_result(output=1, usage=Usage(1, 2, "0.5")),
    "b": builders.step_result(usage=Usage(10, 20, "0.5")),
}


def test_all_that_was_said_is_on_record() -> None:
    """EX-1, EX-17, SC-1, BU-2: kept results count against no budget, told inputs are secret."""
    start = Start(
        owner_id="acc_2",
        trigger_source=TriggerSource.WEBHOOK,
        variables={"key": "hunter22", "other": "hunter23"},
        monitored=True,
        key_id="key_2",
        webhook_id="wh_2",
        callback_url="https://example.org/told",
        redrive_of="exec_0",
        step_results=KEPT,
        chain_depth=4,
        parent_id="exec_9",
        parent_step="sub",
        secrets=("other",),
    )
    run = Execution(
        id="exec_5",
        workflow_id="wf_7",
        workflow_name="Seven",
        workflow_owner_id="acc_7",
        owner_id="acc_2",
        revision=3,
        trigger_source=TriggerSource.WEBHOOK,
        status=ExecutionStatus.PENDING,
        accepted_at=NOW,
        total_steps=2,
        variables={"v": "usual", "key": "hunter22", "other": "hunter23"},
        step_results=KEPT,
        outputs_size=sum(map(held_by, KEPT.values())),
        due_at=NOW,
        events=1,
        monitored=True,
        redrive_of="exec_0",
        key_id="key_2",
        webhook_id="wh_2",
        callback_url="https://example.org/told",
        parent_id="exec_9",
        parent_step="sub",
        secrets=("key", "other"),
        capabilities=("language:python",),
        chain_depth=4,
        granted=Usage(11, 22, "1"),
    )
    told = {"workflowId": "wf_7", "triggerSource": "webhook", "ip": "::1"}
    event = Event("exec_5", 1, NOW, EventKind.EXECUTION_PENDING, told)
    outcome = accept(WORKFLOW, DEFINITION, start, "exec_5", NOW, {"ip": "::1"})
    assert outcome == Outcome(run, (event,), (WakeRunner(),))


def test_what_was_not_said_is_not_there() -> None:
    """EX-1: no parent, no caller, no link of a chain, nothing granted, no other secret."""
    start = Start(owner_id="acc_2", trigger_source=TriggerSource.MANUAL)
    run = builders.execution(
        workflow_id="wf_7",
        workflow_name="Seven",
        workflow_owner_id="acc_7",
        owner_id="acc_2",
        revision=3,
        trigger_source=TriggerSource.MANUAL,
        total_steps=2,
        variables={"v": "usual"},
        events=1,
        secrets=("key",),
        capabilities=("language:python",),
    )
    assert accept(WORKFLOW, DEFINITION, start, "exec_1", NOW).record == run
