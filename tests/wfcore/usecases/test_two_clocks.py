"""Machines on one store whose own clocks differ: work goes by the store's time. Decision 100."""

import pytest
from attrs import evolve

from wfcore.errors import RateLimited
from wfcore.model.access import Tier
from wfcore.model.execution import ExecutionStatus
from wfcore.model.workflow import DelayStep
from wfcore.testing.fakes import ManualClock
from wfcore.time import MINUTE, SECOND, DurationMs
from wfcore.usecases.accounts.authenticate import take
from wfcore.usecases.executions import executions, worker
from wfcore.usecases.services import Services
from wfcore.usecases.upkeep import sweeping

from .conftest import World, code

OFF = pytest.mark.parametrize("off_ms", [MINUTE, -MINUTE], ids=["ahead", "behind"])


def beside(world: World, off_ms: int) -> Services:
    """Another machine on the same store, whose clock is wrong by so much."""
    return evolve(world.services, clock=ManualClock(world.clock.now() + off_ms))


@OFF
async def test_a_wrong_clock_takes_no_work_away(world: World, off_ms: int) -> None:
    """A worker that extends its lease in time keeps its execution, whoever sweeps. EX-11."""
    ann, wrong = await world.account(), beside(world, off_ms)
    run_id = await world.start(ann, await world.workflow(ann, code("one")))
    await world.services.store.enlist("w1")
    lease, _ = await world.take()
    for _ in range(20):
        world.clock.advance(10 * SECOND)
        wrong.clock.advance(10 * SECOND)  # type: ignore[attr-defined]
        await sweeping.sweep(wrong)
        assert await worker.heartbeat(world.services, "w1", [run_id]) == {run_id: None}
    assert await world.finish(lease, "one") == ()


@OFF
async def test_a_wrong_clock_loses_no_lease(world: World, off_ms: int) -> None:
    """What it claims is its own for as long as a lease is, and no longer. EX-11."""
    ann, wrong = await world.account(), beside(world, off_ms)
    run_id = await world.start(ann, await world.workflow(ann, code("one")))
    await wrong.store.enlist("w2")
    (lease,) = await worker.claim(wrong, "w2", 1)
    await worker.begin(wrong, lease)
    for passes, status in ((14, ExecutionStatus.RUNNING), (2, ExecutionStatus.INTERRUPTED)):
        world.clock.advance(passes * SECOND)
        await sweeping.sweep(world.services)
        assert (await executions.read_execution(world.services, ann, run_id)).status is status


@OFF
async def test_what_a_wrong_clock_accepts_is_due_at_once(world: World, off_ms: int) -> None:
    """Neither later, nor before what others accepted earlier. EX-2."""
    ann = await world.account()
    flow = await world.workflow(ann, code("one"))
    first = await world.start(ann, flow)
    world.clock.advance(SECOND)
    second = await World(beside(world, off_ms), world.clock, world.hints).start(ann, flow)
    leases = await worker.claim(world.services, "w1", 9)
    assert [lease.execution_id for lease in leases] == [first, second]


@OFF
async def test_a_delay_is_as_long_on_every_clock(world: World, off_ms: int) -> None:
    """Begun by one machine, it ends for another one at the same instant. FL-7."""
    ann, wrong = await world.account(), beside(world, off_ms)
    rest = DelayStep("rest", DurationMs(30 * SECOND))
    flow = await world.workflow(ann, rest, code("one"))
    await World(wrong, world.clock, world.hints).start(ann, flow)
    world.clock.advance(29_999)
    assert not [*await worker.claim(wrong, "w2", 1), *await worker.claim(world.services, "w1", 1)]
    world.clock.advance(1)
    _, (job,) = await world.take()
    assert job.step_name == "one"


@OFF
async def test_a_wrong_clock_opens_no_other_window(world: World, off_ms: int) -> None:
    """Requests at two machines count in one window, the store's. RL-4."""
    account = (await world.account(plan=Tier.FREE)).account
    wrong = beside(world, off_ms)
    for services in (world.services, wrong) * 30:
        await take(services, "key:k1", account)
    for services in (world.services, wrong):
        with pytest.raises(RateLimited):
            await take(services, "key:k1", account)


async def test_a_cancel_that_was_held_up_ends_nothing_before_it_began(world: World) -> None:
    """It looked at the clock, then a step began and its commit; no duration is negative. EX-30."""
    ann = await world.account()
    run_id = await world.start(ann, await world.workflow(ann, code("one")))
    earlier = beside(world, -5 * SECOND)
    await world.take()
    ended = await executions.cancel_execution(earlier, ann, run_id)
    result = ended.step_results["one"]
    assert ended.completed_at is not None
    assert ended.completed_at >= ended.accepted_at
    assert result.started_at is not None
    assert result.completed_at == result.started_at
