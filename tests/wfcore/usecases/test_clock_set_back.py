"""The wall clock is set back: work that is due moves on all the same. EX-30."""

from attrs import evolve

from wfcore.model.execution import ExecutionStatus as S
from wfcore.model.workflow import DelayStep, Retry
from wfcore.ports.runtime import StepEnd
from wfcore.time import DAY, HOUR, MINUTE, SECOND, DurationMs
from wfcore.usecases.executions import executions, worker
from wfcore.usecases.upkeep import sweeping
from wfcore.usecases.workflows.firing import plan_anew

from .conftest import World, code, review
from .triggering import HOURLY, shown

BACK = 10 * MINUTE


async def test_what_was_queued_before_comes_before_what_is_new(world: World) -> None:
    """What waits is due at once, and nothing that starts afterwards overtakes it."""
    ann = await world.account()
    flow = await world.workflow(ann, code("one"))
    first = await world.start(ann, flow)
    world.clock.jump(-BACK)
    world.clock.advance(1)
    second = await world.start(ann, flow)
    taken = await worker.claim(world.services, "w1", 9)
    assert [lease.execution_id for lease in taken] == [first, second]


async def test_a_retry_and_a_delay_wait_as_long_as_they_were_meant_to(world: World) -> None:
    """Up to a ninth longer, however far the clock was set back."""
    ann = await world.account()
    retry = Retry(2, DurationMs(30 * SECOND))
    ids = [
        await world.start(ann, await world.workflow(ann, step, name=step.name))
        for step in (code("tried", retry=retry), DelayStep("wait", DurationMs(30 * SECOND)))
    ]
    for lease in await worker.claim(world.services, "w1", 9):
        for job in (await worker.begin(world.services, lease)).jobs:
            end = StepEnd(error="no")
            await worker.complete_step(world.services, lease, job.step_name, end)
    world.clock.jump(-DAY)
    assert not await worker.claim(world.services, "w1", 9)
    world.clock.advance(45 * SECOND)
    assert {one.execution_id for one in await worker.claim(world.services, "w1", 9)} == {*ids}


async def test_no_step_lasts_less_than_no_time(world: World) -> None:
    """A step that ends after the clock was set back has taken the time that it took."""
    ann = await world.account()
    run_id = await world.start(ann, await world.workflow(ann, code("one")))
    lease, _ = await world.take()
    world.clock.jump(-BACK)
    world.clock.advance(10 * SECOND)
    await worker.complete_step(world.services, lease, "one", StepEnd(output=1))
    run = await executions.read_execution(world.services, ann, run_id)
    assert run.status is S.COMPLETED
    assert 9 * SECOND <= (run.step_results["one"].duration_ms or 0) <= 10 * SECOND
    assert run.completed_at is not None
    assert run.completed_at >= run.accepted_at


async def test_a_lease_is_over_when_its_time_is(world: World) -> None:
    """A worker that died before the clock was set back is found as soon as ever."""
    ann = await world.account()
    run_id = await world.start(ann, await world.workflow(ann, code("one")))
    await world.take("dead")
    world.clock.jump(-DAY)
    world.clock.advance(MINUTE)
    await sweeping.sweep(world.services)
    assert (await executions.read_execution(world.services, ann, run_id)).status is S.INTERRUPTED


async def test_an_approval_expires_by_the_calendar(world: World) -> None:
    """A clock that was a year ahead and is corrected does not keep a question open for a year."""
    ann = await world.account()
    flow = await world.workflow(
        ann, review(timeout_ms=DurationMs(HOUR), reminders=(DurationMs(10 * MINUTE),))
    )
    world.clock.advance(365 * DAY)
    await sweeping.sweep(world.services)
    world.clock.jump(-365 * DAY)
    await sweeping.sweep(world.services)
    world.clock.advance(6 * MINUTE)
    run_id = await world.start(ann, flow)
    await world.take()
    async with world.services.store.view() as view:
        (asked,) = await view.approvals.of_execution(run_id)
    now = world.clock.now()
    assert (asked.created_at, asked.expires_at, asked.history[0].at) == (now, now + HOUR, now)
    assert asked.reminders == (now + 50 * MINUTE,)
    world.clock.advance(HOUR)
    await sweeping.sweep(world.services)
    assert (await executions.read_execution(world.services, ann, run_id)).status is S.CANCELLED


async def test_a_schedule_planned_far_ahead_is_planned_anew(world: World) -> None:
    """A clock that was a year ahead and is corrected does not stop a schedule for a year. SH-9."""
    ann = await world.account()
    flow = await world.workflow(ann, code("a"), triggers=(HOURLY,))
    right = (await shown(world, flow)).standing.next_at
    assert right is not None
    world.clock.advance(365 * DAY)
    await sweeping.sweep(world.services)
    world.clock.jump(-365 * DAY)
    assert await plan_anew(world.services) == 0  # deadlines are still held
    world.clock.advance(5 * MINUTE)
    assert await plan_anew(world.services) == 1
    assert await plan_anew(world.services) == 0
    assert (await shown(world, flow)).standing.next_at == right
    world.clock.advance(right - world.clock.now())
    assert len(await sweeping.sweep(world.services)) == 1


async def test_a_corrected_schedule_fires_no_local_time_twice(world: World) -> None:
    """Set back by less than an hour, a schedule waits for the instant that comes next. SH-9."""
    ann = await world.account()
    flow = await world.workflow(ann, code("a"), triggers=(HOURLY,))
    world.clock.advance(HOUR)
    assert len(await sweeping.sweep(world.services)) == 1
    planned = (await shown(world, flow)).standing.next_at
    world.clock.jump(-HOUR + MINUTE)
    world.clock.advance(5 * MINUTE)
    assert await plan_anew(world.services) == 0
    assert (await shown(world, flow)).standing.next_at == planned
    without = evolve(world.services, calendar=None)
    assert await plan_anew(without) == 0
