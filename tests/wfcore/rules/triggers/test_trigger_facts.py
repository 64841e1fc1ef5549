"""The facts of a start by a trigger, and the inputs that are made of them. EX-37, SH-12, CH-7."""

from typing import Any
from zoneinfo import ZoneInfo

import pytest

from adapters_runtime.expressions.templates import MiniJinjaTemplates
from wfcore.errors import InvalidInput
from wfcore.model.execution import ExecutionStatus, TriggerSource
from wfcore.model.json import Json
from wfcore.model.trigger import Chain, Schedule
from wfcore.rules.triggers.chain import timers_after
from wfcore.rules.triggers.facts import followed, inputs_of, scheduled
from wfcore.testing import builders
from wfcore.time import EpochMs

RENDER = MiniJinjaTemplates().render
SPRING = EpochMs(1_774_767_600_000)


def test_an_instant_is_also_told_in_the_zone_of_its_schedule() -> None:
    """EX-37: with the offset of that day."""
    assert scheduled(SPRING, ZoneInfo("Europe/Berlin")) == {
        "scheduledFor": SPRING,
        "scheduledAt": "2026-03-29T09:00:00+02:00",
    }


@pytest.mark.parametrize(
    ("status", "output"),
    [(ExecutionStatus.COMPLETED, {"said": "***"}), (ExecutionStatus.FAILED, None)],
)
def test_who_sees_the_followed_execution_gets_its_output(
    status: ExecutionStatus, output: Json
) -> None:
    """CH-7: with its secrets masked, and null unless it COMPLETED."""
    run = builders.execution(
        status=status, output={"said": "hunter22"}, variables={"k": "hunter22"}, secrets=("k",)
    )
    workflow = {"workflowId": "wf_1", "workflowName": run.workflow_name}
    mine = {"executionId": run.id, "status": status.value, "output": output}
    assert followed(run, run.owner_id) == {**workflow, **mine}
    assert followed(run, run.workflow_owner_id) == {**workflow, **mine}
    assert followed(run, "acc_other") == workflow


def test_inputs_are_evaluated_over_the_trigger() -> None:
    """SH-12: a whole template keeps its type; every name is there."""
    written = {"day": "{{ trigger.scheduledAt[:10] }}", "n": "{{ trigger.webhookId }}", "k": 7}
    facts = scheduled(SPRING, ZoneInfo("UTC"))
    made = inputs_of(Schedule("0 9 * * *", inputs=written), TriggerSource.SCHEDULE, facts, RENDER)
    assert made == {"day": "2026-03-29", "n": None, "k": 7}


def test_inputs_that_cannot_be_evaluated_are_named() -> None:
    """SH-12."""
    spec = Chain("first", inputs={"rows": "{{ trigger.output.rows }}"})
    with pytest.raises(InvalidInput) as caught:
        inputs_of(spec, TriggerSource.DELAYED_COMPLETION, {"output": None}, RENDER)
    assert caught.value.field == "inputs.rows"


@pytest.mark.parametrize("on", [("COMPLETED",), ("FAILED",), ("FAILED", "CANCELLED")])
@pytest.mark.parametrize("status", ["COMPLETED", "FAILED", "CANCELLED"])
def test_a_chain_follows_the_ends_that_it_names(on: tuple[str, ...], status: str) -> None:
    """CH-6: each end of an execution, once."""
    names: Any = tuple(map(ExecutionStatus, on))
    trigger = builders.trigger(spec=Chain("first", on=names))
    run = builders.execution(status=ExecutionStatus(status))
    assert len(timers_after(run, [trigger])) == (status in on)
