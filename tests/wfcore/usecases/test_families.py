"""One promise for a whole family of executions, one budget for all branches. EX-24, EX-26, BU-4."""

import pytest

from wfcore.model.approval import DecisionSource
from wfcore.model.execution import ExecutionStatus, ReasonCode, TriggerSource, Usage
from wfcore.model.page import PageRequest
from wfcore.model.workflow import AiStep, Branch, Budget, OnExceeded, ParallelStep, Retry
from wfcore.rules.approval.machine import Approve, Reject
from wfcore.time import HOUR, MINUTE, SECOND
from wfcore.usecases.approvals import approvals, deciding
from wfcore.usecases.executions import worker
from wfcore.usecases.upkeep import sweeping

from .conftest import World, code
from .test_children import child_of, read, sub

S = ExecutionStatus


async def generations(world: World, depth: int, source: TriggerSource, **root: object) -> list[str]:
    """
    A family in which each execution but the last waits for its child; the root comes first.
    *root*: more of the step by which the root waits.
    """
    ann = await world.account()
    await world.workflow(ann, code("work"), name="0")
    for number in range(1, depth):
        retry = Retry(2, SECOND)
        more = root if number == depth - 1 else {}
        above = sub(workflow=str(number - 1), retry=retry, **more)
        workflow = await world.workflow(ann, above, name=str(number))
    ids = [await world.start(ann, workflow, source=source)]
    for _ in range(depth - 1):
        await world.take("dead")
        ids.append((await child_of(world, ids[-1])).id)
    return ids


@pytest.mark.parametrize("depth", [2, 4])
@pytest.mark.parametrize("source", [TriggerSource.OPEN_API, TriggerSource.WEBHOOK])
async def test_what_a_caller_started_is_not_resumed_in_its_children(
    world: World, source: TriggerSource, depth: int
) -> None:
    """
    However deep the step was that was cut off: it never begins again, also not because a parent
    would try again, and the whole family ends. EX-14, EX-24, EX-26.
    """
    ids = await generations(world, depth, source)
    assert (await world.take("dead"))[0].execution_id == ids[-1]
    for pause in (MINUTE, 5 * MINUTE):
        world.clock.advance(pause)
        await sweeping.sweep(world.services)
    for above in reversed(ids[:-1]):
        lease, jobs = await world.take("alive")
        assert (lease.execution_id, jobs) == (above, ())
    for id in ids:
        run = await read(world, id)
        assert run.status is S.FAILED
        assert "Execution interrupted" in (run.error or "")
    world.clock.advance(HOUR)
    assert not await worker.claim(world.services, "alive", 9)


@pytest.mark.parametrize("depth", [2, 4])
async def test_a_timeout_begins_nothing_interrupted_again(world: World, depth: int) -> None:
    """
    The time of the step is up while what it started is interrupted, however deep: `retry` starts
    nothing, and what was interrupted ends with it. EX-14, EX-26.
    """
    ids = await generations(world, depth, TriggerSource.OPEN_API, timeout_ms=10 * MINUTE)
    assert (await world.take("dead"))[0].execution_id == ids[-1]
    world.clock.advance(2 * MINUTE)
    await sweeping.sweep(world.services)
    assert (await read(world, ids[-1])).status is S.INTERRUPTED
    world.clock.advance(9 * MINUTE)
    lease, jobs = await world.take("alive")
    assert (lease.execution_id, jobs) == (ids[0], ())
    root = await read(world, ids[0])
    assert (root.status, root.step_results["sub"].reason) == (S.FAILED, ReasonCode.INTERRUPTED)
    assert "was interrupted and has not ended in time" in (root.error or "")
    assert [(await read(world, id)).status for id in ids[1:]] == [S.CANCELLED] * (depth - 1)
    world.clock.advance(HOUR)
    assert not await worker.claim(world.services, "alive", 9)


async def test_a_timeout_of_what_runs_is_tried_again(world: World) -> None:
    """A child that nothing interrupted was slow: `retry` starts another one. FL-6, FL-7."""
    ids = await generations(world, 2, TriggerSource.OPEN_API, timeout_ms=MINUTE)
    await world.take("slow")
    world.clock.advance(MINUTE)
    await world.take("alive")
    world.clock.advance(2 * SECOND)
    await world.take("alive")
    assert (await child_of(world, ids[0])).id != ids[1]


@pytest.mark.parametrize(
    "source", [TriggerSource.MANUAL, TriggerSource.SCHEDULE, TriggerSource.DELAYED_COMPLETION]
)
async def test_a_grandchild_is_resumed_where_its_root_is(
    world: World, source: TriggerSource
) -> None:
    """By hand, by schedule or behind another one: the root says it for all below it. EX-24."""
    ids = await generations(world, 3, source)
    await world.take("dead")
    world.clock.advance(MINUTE)
    await sweeping.sweep(world.services)
    lease, (job,) = await world.take("alive")
    assert (lease.execution_id, job.attempt) == (ids[-1], 2)


@pytest.mark.parametrize("verb", ["approve", "reject"])
async def test_one_decision_is_about_the_budget_of_all_branches(world: World, verb: str) -> None:
    """One approval of the execution is listed; yes begins every branch, no ends it. BU-4."""
    ann = await world.account()
    asks = [Branch(name, (AiStep(name, "p:m", "Hi"),)) for name in ("a", "b", "c")]
    budget = Budget(None, 1, OnExceeded.APPROVE)
    steps = (AiStep("first", "p:m", "Hi"), ParallelStep("all", tuple(asks)))
    run_id = await world.start(ann, await world.workflow(ann, *steps, budget=budget))
    lease, _ = await world.take()
    await world.finish(lease, "first", usage=Usage(1, 0, "0"))
    (one,) = (await approvals.list_approvals(world.services, ann, PageRequest())).rows
    decision = Approve() if verb == "approve" else Reject()
    decide = deciding.Decide(one.id, decision, DecisionSource.API)
    await deciding.decide_approval(world.services, ann, decide)
    if verb == "reject":
        assert (await read(world, run_id)).status is S.CANCELLED
        return
    _, jobs = await world.take()
    assert {job.step_name for job in jobs} == {"a", "b", "c"}
    assert (await approvals.list_approvals(world.services, ann, PageRequest())).total == 1
