"""Explanations of executions as a store really holds them, on both stores."""

import pytest
from attrs import evolve

from wfcore.errors import NotFound
from wfcore.model.access import OPERATOR, Permission
from wfcore.model.approval import DecisionSource
from wfcore.model.explanation import Line, Why
from wfcore.model.workflow import ChildStep, Concurrency, DelayStep, LoopStep, Retry
from wfcore.rules.approval.machine import Reject
from wfcore.time import HOUR, MINUTE, SECOND, DurationMs
from wfcore.usecases.approvals import approvals, deciding
from wfcore.usecases.executions import worker
from wfcore.usecases.executions.explaining import explain_execution
from wfcore.usecases.services import Policy
from wfcore.usecases.upkeep import sweeping
from wfcore.usecases.workflows.workflows import share_workflow

from .conftest import World, code, review


async def lines(world: World, who, run_id: str) -> tuple[Line, ...]:
    return (await explain_execution(world.services, who, run_id)).lines


async def test_each_place_on_the_way_is_explained(world: World) -> None:
    """XP-1: due, running, retrying, waiting for people, rejected: each as the store has it."""
    ann = await world.account()
    again = Retry(2, delay_ms=5_000)
    id = await world.start(ann, await world.workflow(ann, code("fetch", retry=again), review()))
    assert [line.code for line in await lines(world, ann, id)] == [Why.DUE, Why.NEXT_STEP]
    lease, _ = await world.take()
    running_now, comes_next = await lines(world, ann, id)
    assert (running_now.code, running_now.step_name) == (Why.STEP_RUNNING, "fetch")
    assert running_now.until == world.clock.now() + 30_000
    assert (comes_next.code, comes_next.step_name) == (Why.NEXT_STEP, "review")
    await world.finish(lease, "fetch", error="no answer")
    retrying, _ = await lines(world, ann, id)
    assert retrying.code is Why.STEP_RETRYING
    assert retrying.until is not None
    assert 0 <= retrying.until - world.clock.now() - 5_000 <= 1_250
    assert "no answer" in retrying.text
    world.clock.advance(6_250)
    assert (await lines(world, ann, id))[0].code is Why.DUE
    lease, _ = await world.take()
    await world.finish(lease, "fetch")
    (waiting,) = await lines(world, ann, id)
    assert waiting.code is Why.AWAITING_APPROVAL
    (approval,) = await approvals.approvals_of(world.services, ann, id)
    assert (waiting.approval_id, waiting.until) == (approval.id, approval.expires_at)
    asked = deciding.Decide(approval.id, Reject(), DecisionSource.API, "not today")
    await deciding.decide_approval(world.services, ann, asked)
    because, cure = await lines(world, ann, id)
    assert because.text == f"Approval {approval.id} was rejected by ann@example.org: not today"
    assert cure.code is Why.CAN_REDRIVE


async def test_an_approval_past_its_time_is_settled_before_it_is_explained(world: World) -> None:
    """XP-1, AP-4: no explanation speaks of an approval that nobody can decide any more."""
    ann = await world.account()
    id = await world.start(ann, await world.workflow(ann, review(timeout_ms=SECOND)))
    await world.take()
    world.clock.advance(SECOND)
    first = (await lines(world, ann, id))[0]
    assert first.code is Why.CANCELLED
    assert "Nobody decided" in first.text


async def test_an_interruption_is_explained_to_its_end(world: World) -> None:
    """XP-1, EX-13: interrupted, FAILED after the grace, and then failed with that error."""
    ann = await world.account()
    id = await world.start(ann, await world.workflow(ann, code("pay")))
    lease, _ = await world.take()
    await worker.hand_back(world.services, lease)
    because, fate, _ = await lines(world, ann, id)
    assert (because.code, because.step_name) == (Why.INTERRUPTED, "pay")
    assert (fate.code, fate.until) == (Why.WILL_FAIL, world.clock.now() + 5 * MINUTE)
    world.clock.advance(5 * MINUTE)
    await sweeping.end_graces(world.services)
    assert (await lines(world, ann, id))[0].text == "Execution interrupted"


async def test_a_full_house_names_the_guests_one_knows(world: World) -> None:
    """XP-1, XP-2: who waits for a place learns which of its executions hold one."""
    services = evolve(world.services, policy=Policy(places=3))
    ann, bob = await world.account(), await world.account("bob@example.org")
    mine = [await world.start(ann, await world.workflow(ann, code("a")))]
    for other in (bob, await world.account("cat@example.org")):
        await world.start(other, await world.workflow(other, code("a")))
    for lease in await worker.claim(services, "w1", 3):
        await worker.begin(services, lease)
    late = await world.start(ann, await world.workflow(ann, code("a")))
    found = (await explain_execution(services, ann, late)).lines
    assert found[0].text == (
        "All 3 slots are taken: 1 by executions that you see, 2 by those of other accounts."
    )
    assert [line.execution_id for line in found[1:-1]] == mine
    everything = (await explain_execution(services, OPERATOR, late)).lines
    assert len([line for line in everything if line.execution_id]) == 3


async def test_a_stranger_gets_no_explanation(world: World) -> None:
    """XP-2, AC-4: what one does not see is not there."""
    ann, bob = await world.account(), await world.account("bob@example.org")
    id = await world.start(ann, await world.workflow(ann, code("a")))
    with pytest.raises(NotFound):
        await explain_execution(world.services, bob, id)


async def test_who_waits_for_a_limit_is_told_so(world: World) -> None:
    """XP-1, CC-2: not a place is missing, but the end of another one of the workflow."""
    ann = await world.account()
    flow = await world.workflow(ann, code("a"), concurrency=Concurrency(1))
    first, late = await world.start(ann, flow), await world.start(ann, flow)
    assert (await lines(world, ann, late))[0].code is Why.DUE
    lease, _ = await world.take()
    assert lease.execution_id == first
    limit, holder, _ = await lines(world, ann, late)
    assert (limit.code, holder.code) == (Why.LIMIT_REACHED, Why.LIMIT_REACHED)
    assert (holder.execution_id, holder.text) == (
        first,
        f"One of them is execution {first}, RUNNING.",
    )
    assert limit.text.startswith("Of 'flow' at most 1 execution runs at once, and 1 has not")
    await world.finish(lease, "a")
    assert (await lines(world, ann, late))[0].code is Why.DUE


async def test_a_delay_and_a_loop_say_how_far_they_are(world: World) -> None:
    """XP-1, FL-2, FL-5, FL-7: the rounds that began, the step in one, the end of a delay."""
    ann = await world.account()
    loop = LoopStep("each", [1, 2, 3], "one", (code("work"),), timeout_ms=DurationMs(HOUR))
    id = await world.start(ann, await world.workflow(ann, loop, DelayStep("nap", MINUTE)))
    lease, (job,) = await world.take()
    rounds, step, after = await lines(world, ann, id)
    assert (rounds.code, rounds.step_name) == (Why.STEPS_RUNNING, "each")
    assert rounds.until == world.clock.now() + HOUR
    assert rounds.text.startswith("Loop 'each' has begun 1 of 3 rounds; its timeout ends it at")
    assert (step.code, step.step_name) == (Why.STEP_RUNNING, job.step_name)
    assert (after.code, after.step_name) == (Why.NEXT_STEP, "nap")
    while job:
        (job, *_) = (*await world.finish(lease, job.step_name), None)
    (delayed,) = await lines(world, ann, id)
    assert (delayed.code, delayed.until) == (Why.STEP_DELAYED, world.clock.now() + MINUTE)


async def test_a_child_is_named_to_those_who_see_it(world: World) -> None:
    """XP-1, XP-2: whoever sees it learns which it is and how far, others that there is one."""
    ann, bob, carl = [await world.account(f"{name}@example.org") for name in ("ann", "bob", "carl")]
    other = await world.workflow(carl, code("work"), name="other")
    flow = await world.workflow(ann, ChildStep("sub", other), name="outer")
    services = world.services
    await share_workflow(services, OPERATOR, other, ann.account.id, Permission.EXECUTE)
    await share_workflow(services, OPERATOR, flow, bob.account.id, Permission.EXECUTE)
    id = await world.start(bob, flow)
    await world.take()
    (line,) = await lines(world, bob, id)
    assert line.code is Why.CHILD_RUNNING
    assert line.execution_id not in (None, id)
    assert line.text == (
        f"Step 'sub' waits for execution {line.execution_id} of 'other', which is PENDING."
    )
    (vague,) = await lines(world, ann, id)
    assert (vague.code, vague.execution_id) == (Why.CHILD_RUNNING, None)
    assert line.execution_id not in vague.text
