"""Triggers with inputs, and chains behind failures. SH-12, CH-6, CH-7."""

import pytest
from attrs import evolve

from wfcore.errors import InvalidDefinition
from wfcore.model.access import OPERATOR, Permission, Tier
from wfcore.model.execution import Execution, ExecutionStatus
from wfcore.model.notice import NoticeKind
from wfcore.model.trigger import Chain, Refusal, Schedule, TriggerState
from wfcore.model.workflow import Variable, VariableType
from wfcore.rules.execution.scope import trigger_of
from wfcore.time import HOUR, SECOND
from wfcore.usecases.executions import executions, redriving
from wfcore.usecases.executions.starting import start_execution
from wfcore.usecases.upkeep import sweeping
from wfcore.usecases.workflows import backfilling, workflows

from .conftest import World, code
from .test_failing_triggers import told
from .triggering import HOURLY, NEXT_HOUR, complete, run_one, runs_of, shown, skipped, to

VARIABLES = {
    "day": Variable("day"),
    "of": Variable("of"),
    "rows": Variable("rows", VariableType.ARRAY),
}
DAY = {"day": "{{ trigger.scheduledAt }}"}
ENDS = (ExecutionStatus.FAILED, ExecutionStatus.CANCELLED)


async def whole(world: World, run: Execution) -> Execution:
    return await executions.read_execution(world.services, OPERATOR, run.id)


async def follower(world: World, who: object, chain: Chain, **more: object) -> str:
    return await world.workflow(
        who, code("b"), name="then", triggers=(chain,), variables=VARIABLES, **more
    )


async def test_a_schedule_starts_with_its_inputs(world: World) -> None:
    """They are made of the planned instant, also for a start that was made up for. SH-12."""
    ann = await world.account()
    spec = evolve(HOURLY, inputs={**DAY, "of": "{{ trigger.kind }}"})
    flow = await world.workflow(ann, code("a"), triggers=(spec,), variables=VARIABLES)
    to(world, NEXT_HOUR + 9 * SECOND)
    await sweeping.sweep(world.services)
    (run,) = await runs_of(world, flow)
    run = await whole(world, run)
    assert run.variables == {"day": "2023-11-14T23:00:00+00:00", "of": "schedule"}
    assert trigger_of(run)["scheduledFor"] == NEXT_HOUR
    world.clock.advance(3 * HOUR)
    id, until = (await shown(world, flow)).trigger.id, NEXT_HOUR
    await backfilling.backfill(world.services, ann, id, NEXT_HOUR - HOUR, until)
    (made,) = [one for one in await runs_of(world, flow) if one.id != run.id]
    assert trigger_of(await whole(world, made))["scheduledFor"] == NEXT_HOUR - HOUR


async def test_inputs_see_the_state_of_the_workflow(world: World) -> None:
    """As it was last committed. SH-12, SV-2."""
    ann = await world.account()
    spec = evolve(HOURLY, inputs={"of": "{{ state.cursor }}"})
    cursor = Variable("cursor", default="new", has_default=True)
    flow = await world.workflow(
        ann, code("a"), triggers=(spec,), variables=VARIABLES, state={"cursor": cursor}
    )
    to(world, NEXT_HOUR)
    await sweeping.sweep(world.services)
    (run,) = await runs_of(world, flow)
    assert (await whole(world, run)).variables == {"of": "new"}


@pytest.mark.parametrize("end", ["fails", "cancelled"])
async def test_a_chain_follows_failures(world: World, end: str) -> None:
    """It knows which execution it follows, and how that ended; also a child of another. CH-6."""
    ann = await world.account()
    first = await world.workflow(ann, code("a"), name="first")
    of = "{{ trigger.workflowName }} {{ trigger.status }} {{ trigger.executionId }}"
    then = await follower(world, ann, Chain("first", on=ENDS, inputs={"of": of}))
    await complete(world, ann, first)
    assert list(await sweeping.sweep(world.services)) == []
    cause = await world.start(ann, first)
    lease, _ = await world.take()
    if end == "fails":
        await world.finish(lease, "a", error="no")
    else:
        await executions.cancel_execution(world.services, ann, cause)
    await sweeping.sweep(world.services)
    assert list(await sweeping.sweep(world.services)) == []
    (run,) = await runs_of(world, then)
    status = "FAILED" if end == "fails" else "CANCELLED"
    assert (await whole(world, run)).variables == {"of": f"first {status} {cause}"}


async def test_a_redrive_keeps_the_trigger(world: World) -> None:
    """A start like it has its own. EX-37."""
    ann = await world.account()
    flow = await world.workflow(ann, code("a"), triggers=(HOURLY,))
    to(world, NEXT_HOUR)
    await sweeping.sweep(world.services)
    lease, _ = await world.take()
    await world.finish(lease, "a", error="no")
    (run,) = await runs_of(world, flow)
    again = await redriving.redrive(world.services, ann, run.id)
    anew = await start_execution(world.services, ann, flow, {}, like=run.id)
    old, kept, own = [
        trigger_of(await executions.read_execution(world.services, ann, id))
        for id in (run.id, again.execution_id, anew.execution_id)
    ]
    assert (old["kind"], old["scheduledFor"]) == ("schedule", NEXT_HOUR)
    assert kept == old
    assert (own["kind"], own["scheduledFor"]) == ("open_api", None)


async def test_wrong_inputs_start_nothing(world: World) -> None:
    """
    A failure that is audited, mailed and shown, counts for `pauseAfter` and not as a run, and is
    not tried again. SH-12, SH-10.
    """
    policy = evolve(world.services.policy, channels=frozenset({"mail"}))
    world = evolve(world, services=evolve(world.services, policy=policy))
    ann = await world.account()
    spec = evolve(HOURLY, pause_after=2, inputs={"rows": "{{ trigger.scheduledAt }}"})
    flow = await world.workflow(ann, code("a"), triggers=(spec,), variables=VARIABLES)
    to(world, NEXT_HOUR)
    assert [one.refusal for one in await sweeping.sweep(world.services)] == [Refusal.INVALID_INPUT]
    assert list(await sweeping.sweep(world.services)) == []
    one = await shown(world, flow)
    assert (one.trigger.runs, one.trigger.failures) == (0, 1)
    assert one.trigger.refusal_detail == "inputs.rows: must be an array"
    assert [entry.reason for entry in await skipped(world)] == ["INVALID_INPUT"]
    (notice,) = await told(world, NoticeKind.TRIGGER_REFUSED)
    assert "inputs.rows: must be an array" in str(notice.about["why"])
    to(world, NEXT_HOUR + HOUR)
    await sweeping.sweep(world.services)
    assert (await shown(world, flow)).standing.state is TriggerState.PAUSED
    assert len(await told(world, NoticeKind.TRIGGER_PAUSED)) == 1
    assert not await runs_of(world, flow)


async def test_the_output_is_handed_on(world: World) -> None:
    """A list stays a list. SH-12, CH-7."""
    ann = await world.account()
    first = await world.workflow(ann, code("a"), name="first")
    then = await follower(world, ann, Chain("first", inputs={"rows": "{{ trigger.output }}"}))
    await world.start(ann, first)
    lease, _ = await world.take()
    await world.finish(lease, "a", output=[1, {"b": 2}])
    await sweeping.sweep(world.services)
    (run,) = await runs_of(world, then)
    assert (await whole(world, run)).variables == {"rows": [1, {"b": 2}]}


async def test_an_execution_that_its_owner_does_not_see_is_not_told_of(world: World) -> None:
    """
    A template that would tell of it is refused when it is applied; the workflow is known. CH-7.
    """
    ann, bob = await world.account(), await world.account("bob@example.org", Tier.PRO)
    first = await world.workflow(ann, code("a"), name="first")
    await workflows.share_workflow(world.services, OPERATOR, first, bob.account.id, Permission.VIEW)
    seen = Chain(first, inputs={"of": "{{ trigger.workflowName }}"})
    then = await follower(world, bob, seen)
    await complete(world, ann, first)
    await sweeping.sweep(world.services)
    (run,) = await runs_of(world, then)
    run = await whole(world, run)
    assert (run.variables, trigger_of(run)["executionId"]) == ({"of": "first"}, None)
    await run_one(world)
    with pytest.raises(InvalidDefinition) as caught:
        await follower(world, bob, evolve(seen, inputs={"of": "{{ trigger.executionId }}"}))
    assert [one.path for one in caught.value.problems] == ["triggers[0].inputs.of"]
    with pytest.raises(InvalidDefinition) as caught:
        await follower(world, bob, seen, output='{{ trigger["output"] }}', has_output=True)
    assert [one.path for one in caught.value.problems] == ["output"]


@pytest.mark.parametrize("by_id", [False, True])
async def test_a_workflow_does_not_follow_its_own_failures(world: World, by_id: bool) -> None:
    """By its name or its id; its completions it may. CH-6."""
    ann = await world.account()
    flow = await world.workflow(ann, code("a"), name="first")
    chain = Chain(flow if by_id else "first", on=(ExecutionStatus.COMPLETED, *ENDS))
    with pytest.raises(InvalidDefinition) as caught:
        await world.workflow(ann, code("a"), name="first", triggers=(chain,))
    assert str(caught.value.problems[0]) == (
        "triggers[0].on: must not follow FAILED and CANCELLED of this workflow itself"
    )
    assert await world.workflow(
        ann, code("a"), name="first", triggers=(evolve(chain, on=(ExecutionStatus.COMPLETED,)),)
    )


async def test_what_is_followed_and_gone_starts_nothing_with_inputs(world: World) -> None:
    """Inputs that need it have nothing to be made of. SH-12."""
    ann = await world.account()
    first = await world.workflow(ann, code("a"), name="first")
    then = await follower(world, ann, Chain("first", 60, inputs={"of": "{{ trigger.kind }}"}))
    cause = await complete(world, ann, first)
    async with world.services.store.unit() as unit:
        unit.purge(cause)
        await unit.commit()
    world.clock.advance(60 * SECOND)
    await sweeping.sweep(world.services)
    assert (await shown(world, then)).trigger.refusal is Refusal.INVALID_INPUT
    assert not await runs_of(world, then)


def test_schedules_without_inputs_are_as_before() -> None:
    """The default is no inputs."""
    assert Schedule("0 * * * *").inputs == Chain("x").inputs == {}
