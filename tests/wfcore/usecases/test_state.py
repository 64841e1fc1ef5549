"""The state of a workflow across executions: who reads it, and when a step may change it."""

import json
from collections.abc import Mapping

import pytest
from attrs import evolve

from adapters_runtime.expressions.templates import MiniJinjaTemplates
from wfcore.errors import Forbidden, InvalidDefinition, InvalidInput, NotFound
from wfcore.model.access import OPERATOR, Permission, Principal
from wfcore.model.execution import ExecutionStatus
from wfcore.model.json import Json
from wfcore.model.workflow import (
    AiStep,
    DataStep,
    Definition,
    Step,
    Variable,
    VariableType,
    WorkflowState,
)
from wfcore.ports.runtime import StepEnd
from wfcore.rules.definition.written import read_definition
from wfcore.rules.limits import MAX_OUTPUTS
from wfcore.time import EpochMs
from wfcore.usecases.administration import workflows as administration
from wfcore.usecases.administration.operator import Operator
from wfcore.usecases.audit.auditing import read_audit
from wfcore.usecases.executions import worker
from wfcore.usecases.executions.executions import read_events, read_execution
from wfcore.usecases.upkeep import sweeping
from wfcore.usecases.workflows.state import read_state, set_state
from wfcore.usecases.workflows.versions import preview_workflow
from wfcore.usecases.workflows.workflows import (
    apply_workflow,
    delete_workflow,
    share_workflow,
)

from .conftest import World, code
from .triggering import HOURLY, NEXT_HOUR, runs_of, to

CURSOR = Variable("cursor", has_default=True, default="")
COUNT = Variable("count", VariableType.NUMBER, has_default=True, default=0)
TOKEN = Variable("token", secret=True)
STATE = {one.name: one for one in (CURSOR, COUNT, TOKEN)}


async def _flow(
    world: World, who: Principal, *steps: Step, state: Mapping[str, Variable] = STATE
) -> str:
    return await world.workflow(who, *steps, state=state)


async def _values(world: World, workflow: str) -> Mapping[str, Json]:
    async with world.services.store.view() as view:
        found = await view.get(WorkflowState, workflow)
    return found.values if found is not None else {}


async def _complete(
    world: World, lease: worker.Lease, step: str, output: Json = None, **end: object
) -> worker.Work:
    ended = StepEnd(output, **end)  # type: ignore[arg-type]
    return await worker.complete_step(world.services, lease, step, ended)


async def test_the_next_step_and_the_next_execution_read_what_was_written(world: World) -> None:
    """In the context file, as last committed; a name without a value has its default. SV-2."""
    ann = await world.account()
    flow = await _flow(world, ann, code("a"), code("b"))
    for before, after in (("", "1"), ("1", "2")):
        await world.start(ann, flow)
        lease, (first,) = await world.take()
        assert first.context["state"] == {"cursor": before, "count": 0, "token": None}
        (second,) = (await _complete(world, lease, "a", state={"cursor": after})).jobs
        assert second.context["state"] == {"cursor": after, "count": 0, "token": None}
        await _complete(world, lease, "b")


async def test_a_step_reads_what_others_committed_before_it_began(world: World) -> None:
    """Not what was there when its execution began. SV-2."""
    ann = await world.account()
    flow = await _flow(world, ann, code("a"), code("b"))
    await world.start(ann, flow)
    lease, _ = await world.take()
    await set_state(world.services, ann, flow, {"cursor": "set"})
    (second,) = (await _complete(world, lease, "a")).jobs
    assert second.context["state"]["cursor"] == "set"  # type: ignore[index, call-overload]


async def test_templates_of_every_kind_read_state(world: World) -> None:
    """A step's fields, `when`, the output; and an AI step's prompt. SV-2."""
    ann = await world.account()
    steps = (
        DataStep("given", {"at": "{{ state.cursor }}"}, when="{{ state.count }}"),
        AiStep("said", "openai:m", "from {{ state.cursor }}"),
        DataStep("skipped", 1, when="{{ state.count }}"),
    )
    flow = await world.workflow(
        ann, *steps, state=STATE, output="{{ state.cursor }}", has_output=True
    )
    await set_state(world.services, ann, flow, {"cursor": "c", "count": 1})
    id = await world.start(ann, flow)
    lease, (job,) = await world.take()
    assert job.prompt == "from c"  # type: ignore[attr-defined]
    await set_state(world.services, ann, flow, {"cursor": "d", "count": 0})
    await _complete(world, lease, "said", "x")
    run = await read_execution(world.services, OPERATOR, id)
    assert run.step_results["given"].output == {"at": "c"}
    assert run.step_results["skipped"].status.value == "SKIPPED"
    assert run.output == "d"


async def test_a_light_start_reads_state(world: World) -> None:
    """An execution that no worker need take sees the same. SV-2, EX-34."""
    ann = await world.account()
    flow = await _flow(world, ann, DataStep("given", "{{ state.cursor }}"))
    await set_state(world.services, ann, flow, {"cursor": "c"})
    id = await world.start(ann, flow)
    assert (await read_execution(world.services, OPERATOR, id)).step_results["given"].output == "c"


@pytest.mark.parametrize(
    "given_end",
    [
        {"error": "exited with status 1", "permanent": True},
        {"error": "ran into its timeout", "timed_out": True},
        {"postponed": "no process"},
    ],
)
async def test_state_is_taken_from_nothing_but_a_completed_step(
    world: World, given_end: dict[str, object]
) -> None:
    """A failed, late or postponed attempt changes nothing. SV-3."""
    ann = await world.account()
    flow = await _flow(world, ann, code("a"))
    await world.start(ann, flow)
    lease, _ = await world.take()
    await _complete(world, lease, "a", state={"cursor": "c"}, **given_end)
    assert await _values(world, flow) == {}


async def test_an_output_that_is_too_large_takes_its_state_with_it(world: World) -> None:
    """The result is not COMPLETED, so no step sees the state that would have been. SV-3, FL-14."""
    ann = await world.account()
    late = (DataStep("last", "{{ state.cursor }}"),)
    flow = await world.workflow(ann, code("a"), state=STATE, on_failure=late)
    id = await world.start(ann, flow)
    lease, _ = await world.take()
    await _complete(world, lease, "a", "x", size=MAX_OUTPUTS + 1, state={"cursor": "c"})
    run = await read_execution(world.services, OPERATOR, id)
    assert run.status is ExecutionStatus.FAILED
    assert run.step_results["last"].output == ""
    assert await _values(world, flow) == {}


async def test_an_end_that_is_recorded_already_writes_nothing(world: World) -> None:
    """The answer was lost: the same end comes again, after somebody else has written. SV-3."""
    ann = await world.account()
    flow = await _flow(world, ann, code("a"), code("b"))
    await world.start(ann, flow)
    lease, _ = await world.take()
    await _complete(world, lease, "a", state={"cursor": "c"})
    await set_state(world.services, ann, flow, {"cursor": "later"})
    await _complete(world, lease, "a", state={"cursor": "c"})
    assert await _values(world, flow) == {"cursor": "later"}


async def test_what_is_not_declared_fails_the_step_by_name(world: World) -> None:
    """Once: trying again cannot help. SV-3."""
    ann = await world.account()
    flow = await _flow(world, ann, code("a"))
    id = await world.start(ann, flow)
    lease, _ = await world.take()
    await _complete(world, lease, "a", 1, state={"cursr": "c"})
    result = (await read_execution(world.services, OPERATOR, id)).step_results["a"]
    assert (result.output, result.status.value) == (None, "FAILED")
    assert result.error == (
        "WF_STATE: cursr: is not declared; did you mean cursor? known: cursor, count, token"
    )
    assert await _values(world, flow) == {}


async def test_two_executions_keep_both_names(world: World) -> None:
    """Each object is merged with what is there then; of one name the later commit counts. SV-3."""
    ann = await world.account()
    flow = await _flow(world, ann, code("a"))
    leases = []
    for _ in range(2):
        await world.start(ann, flow)
        leases.append((await world.take())[0])
    await _complete(world, leases[0], "a", state={"cursor": "first", "count": 1})
    await _complete(world, leases[1], "a", state={"cursor": "second"})
    assert await _values(world, flow) == {"cursor": "second", "count": 1}


async def test_an_execution_of_an_older_version_writes_by_the_newest(world: World) -> None:
    """Names and types that the newest declaration lacks are left out. SV-4."""
    ann = await world.account()
    flow = await _flow(world, ann, code("a"))
    id = await world.start(ann, flow)
    lease, _ = await world.take()
    newest = {"count": COUNT, "cursor": Variable("cursor", VariableType.ARRAY)}
    await _flow(world, ann, code("a"), state=newest)
    await _complete(world, lease, "a", state={"cursor": "c", "count": 2, "token": "t"})
    assert (await read_execution(world.services, OPERATOR, id)).status is ExecutionStatus.COMPLETED
    assert await _values(world, flow) == {"count": 2}


async def test_a_deleted_workflow_takes_its_state_along(world: World) -> None:
    """An execution that ends later leaves nothing behind. SV-4."""
    ann = await world.account()
    flow = await _flow(world, ann, code("a"))
    id = await world.start(ann, flow)
    lease, _ = await world.take()
    await set_state(world.services, ann, flow, {"cursor": "c"})
    await delete_workflow(world.services, OPERATOR, flow)
    assert await _values(world, flow) == {}
    await _complete(world, lease, "a", state={"cursor": "c"})
    assert (await read_execution(world.services, OPERATOR, id)).status is ExecutionStatus.COMPLETED
    assert await _values(world, flow) == {}


async def test_a_value_that_a_new_declaration_refuses_fails_apply_by_name(world: World) -> None:
    """With what to type, at apply and in its preview; after a reset it is applied. SV-5."""
    ann = await world.account()
    flow = await _flow(world, ann, code("a"))
    await set_state(world.services, ann, flow, {"cursor": "c"})
    other = {"cursor": Variable("cursor", VariableType.ARRAY)}
    definition = Definition("flow", (code("a"),), (), state=other)
    for refusing in (
        apply_workflow(world.services, ann.account.id, definition),
        preview_workflow(world.services, ann.account.id, definition, ""),
    ):
        with pytest.raises(InvalidDefinition) as refused:
            await refusing
        (problem,) = refused.value.problems
        assert problem.path == "state.cursor"
        assert "--reset cursor" in problem.message
    await set_state(world.services, ann, flow, {"cursor": None})
    await apply_workflow(world.services, ann.account.id, definition)


async def test_apply_says_what_it_drops(world: World) -> None:
    """As a warning, and in the audit log by name; the value does not come back. SV-5."""
    ann = await world.account()
    flow = await _flow(world, ann, code("a"))
    await set_state(world.services, ann, flow, {"cursor": "c", "count": 1})
    definition = Definition("flow", (code("a"),), (), state={"count": COUNT})
    at = Operator(world.services, read=lambda _: definition)
    done = await administration.apply_workflow(at, ann.account.id, "")
    dropped = "state no longer declares cursor; the stored values are dropped"
    assert done["warnings"] == [dropped]
    assert await _values(world, flow) == {"count": 1}
    await _flow(world, ann, code("a"))
    assert [one.value for one in await read_state(world.services, ann, flow)] == ["", 1, None]
    entries = await read_audit(world.services, EpochMs(0), None, 50)
    applied = [one.details for one in entries if one.event == "workflow.apply"]
    assert applied[1] == {"workflowVersion": 2, "droppedState": ["cursor"]}


async def test_a_secret_name_is_read_by_code_steps_alone(world: World) -> None:
    """What comes out of them is masked, the value that they wrote themselves too. SV-6."""
    ann = await world.account()
    flow = await _flow(world, ann, code("a"), code("b"), AiStep("c", "openai:m", "x"))
    await set_state(world.services, ann, flow, {"token": "t0ken-1"})
    id = await world.start(ann, flow)
    lease, (first,) = await world.take()
    assert first.context["state"]["token"] == "t0ken-1"  # type: ignore[index, call-overload]
    assert "t0ken" not in repr(first)
    end = StepEnd("t0ken-1 t0ken-2", state={"token": "t0ken-2", "cursor": "t0ken-1"})
    work = await worker.complete_step(world.services, lease, "a", end, hidden=first.hidden)
    (second,) = work.jobs
    assert second.context["state"]["token"] == "t0ken-2"  # type: ignore[index, call-overload]
    end = StepEnd(second.context["state"])
    await worker.complete_step(world.services, lease, "b", end, hidden=second.hidden)
    shown = repr(await read_events(world.services, OPERATOR, id, 0))
    assert "t0ken" not in shown
    assert await _values(world, flow) == {"token": "t0ken-2", "cursor": "***"}
    rows = await read_state(world.services, ann, flow)
    assert [(one.value, one.is_set) for one in rows] == [("***", True), (0, False), (None, True)]


async def test_view_reads_and_edit_sets(world: World) -> None:
    """Others see neither the workflow nor its state. SV-7."""
    ann, bob = await world.account(), await world.account("bob@example.org")
    flow = await _flow(world, ann, code("a"))
    with pytest.raises(NotFound):
        await read_state(world.services, bob, flow)
    await share_workflow(world.services, OPERATOR, flow, bob.account.id, Permission.VIEW)
    assert len(await read_state(world.services, bob, flow)) == 3
    with pytest.raises(Forbidden):
        await set_state(world.services, bob, flow, {"cursor": "c"})
    with pytest.raises(InvalidInput, match=r"state\.cursr: is not declared"):
        await set_state(world.services, ann, flow, {"cursr": "c"})


async def test_setting_is_audited_by_name(world: World) -> None:
    """Without values. SV-7."""
    ann = await world.account()
    flow = await _flow(world, ann, code("a"))
    await set_state(world.services, ann, flow, {"token": "t0ken", "cursor": "c0ursor"})
    entries = await read_audit(world.services, EpochMs(0), None, 50)
    (entry,) = [one for one in entries if one.event == "workflow.state"]
    assert (entry.target, entry.details) == (flow, {"state": ["cursor", "token"]})
    assert "t0ken" not in json.dumps(entry.details)


async def test_inputs_of_a_trigger_read_state(world: World) -> None:
    """As it stands when the trigger fires; no secret name is known there. SH-12, SV-2, SV-6."""
    ann = await world.account()
    spec = evolve(HOURLY, inputs={"since": "{{ state.cursor }}"})
    since = {"since": Variable("since", has_default=True, default="")}
    flow = await world.workflow(ann, code("a"), state=STATE, variables=since, triggers=(spec,))
    await set_state(world.services, ann, flow, {"cursor": "c"})
    to(world, NEXT_HOUR + 1)
    await sweeping.sweep(world.services)
    (run,) = await runs_of(world, flow)
    assert (await read_execution(world.services, OPERATOR, run.id)).variables == {"since": "c"}


def test_a_secret_name_is_unknown_outside_of_commands() -> None:
    """The text shows it, so applying refuses it; an argument of a command may have it. SV-6."""
    step = {"name": "a", "kind": "code", "language": "command"}
    document = {
        "name": "flow",
        "state": {"token": {"secret": True}, "cursor": {}},
        "variables": {"since": {"default": ""}},
        "steps": [
            {**step, "command": ["curl", "{{ state.token }}"]},
            {"name": "b", "kind": "data", "value": "{{ state.token }}"},
            {"name": "c", "kind": "data", "value": "{{ state.cursr }}"},
        ],
        "triggers": [
            {"kind": "SCHEDULE", "cron": "0 * * * *", "inputs": {"since": "{{ state.token }}"}}
        ],
    }
    with pytest.raises(InvalidDefinition) as refused:
        read_definition(document, MiniJinjaTemplates().problems)
    problems = {one.path: one.message for one in refused.value.problems}
    assert problems.keys() == {"steps[1].value", "steps[2].value", "triggers[0].inputs.since"}
    assert "did you mean cursor" in problems["steps[2].value"]


async def test_the_event_of_a_step_names_what_it_wrote(world: World) -> None:
    """Names alone, with the step's completion. SV-3."""
    ann = await world.account()
    flow = await _flow(world, ann, code("a"))
    id = await world.start(ann, flow)
    lease, _ = await world.take()
    await _complete(world, lease, "a", state={"count": 1, "cursor": "c"})
    _, events = await read_events(world.services, OPERATOR, id, 0)
    (data,) = [one.data for one in events if one.kind.value == "step.completed"]
    assert data["state"] == ["count", "cursor"]
