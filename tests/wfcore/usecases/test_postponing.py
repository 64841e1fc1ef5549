"""What the machine could not start: put back on record, and begun again. EX-27."""

from typing import Any

import pytest

from wfcore.errors import LeaseLost
from wfcore.model.execution import ExecutionStatus, StepStatus
from wfcore.model.explanation import Why
from wfcore.model.workflow import Branch, ParallelStep, Retry
from wfcore.ports.runtime import StepEnd
from wfcore.time import MINUTE
from wfcore.usecases.executions import executions, worker
from wfcore.usecases.executions.explaining import explain_execution
from wfcore.usecases.upkeep import sweeping

from .conftest import World, code

S = ExecutionStatus


async def postponed(world: World, lease: worker.Lease, job: Any, go_on: bool = True) -> Any:
    """What a worker does of which the machine could start no process."""
    return await worker.complete_step(
        world.services, lease, job.step_name, StepEnd(postponed="no process was left"),
        attempt=job.attempt, postponed=job.postponed, go_on=go_on,
    )  # fmt: skip


@pytest.mark.parametrize("go_on", [True, False])
async def test_what_could_not_begin_begins_later_as_the_same_attempt(
    world: World, go_on: bool
) -> None:
    """The place is free meanwhile, anybody may go on, and no retry is used up. EX-27."""
    ann = await world.account()
    run_id = await world.start(ann, await world.workflow(ann, code("one", retry=Retry(2))))
    lease, (job,) = await world.take()
    assert (await postponed(world, lease, job, go_on)).jobs == ()
    run = await executions.read_execution(world.services, ann, run_id)
    assert (run.status, run.worker, run.step_results["one"].attempts) == (S.RUNNING, None, 0)
    assert not await worker.claim(world.services, "w2", 9)
    world.clock.advance(313)
    lease, (again,) = await world.take("w2")
    assert (again.attempt, again.postponed) == (job.attempt, job.postponed + 1)
    await world.finish(lease, "one", "done")
    run = await executions.read_result(world.services, ann, run_id)
    assert (run.output, run.step_results["one"].attempts) == ("done", 1)


async def test_that_it_could_not_begin_is_recorded_once(world: World) -> None:
    """Said again when the next try has begun, it takes nothing back. EX-23, EX-27."""
    ann = await world.account()
    both = ParallelStep("both", (Branch("a", (code("a"),)), Branch("b", (code("b"),))))
    run_id = await world.start(ann, await world.workflow(ann, both))
    lease, (a, b) = await world.take()
    for _ in range(2):
        assert (await postponed(world, lease, a)).in_flight == {"b"}
    world.clock.advance(313)
    met = [(b.step_name, b.attempt)]
    (again,) = (await worker.go_on(world.services, lease, met)).jobs
    assert (again.step_name, again.attempt, again.postponed) == ("a", 1, 1)
    assert (await postponed(world, lease, a)).in_flight == {"a", "b"}
    run = await executions.read_execution(world.services, ann, run_id)
    assert run.step_results["a"].attempts == 1


async def test_only_its_own_worker_says_that_it_did_not_begin(world: World) -> None:
    """What is INTERRUPTED stays so: a worker that lost its lease takes nothing back. EX-27."""
    ann = await world.account()
    run_id = await world.start(ann, await world.workflow(ann, code("one")))
    lease, (job,) = await world.take()
    world.clock.advance(MINUTE)
    await sweeping.sweep(world.services)
    with pytest.raises(LeaseLost):
        await postponed(world, lease, job)
    run = await executions.read_execution(world.services, ann, run_id)
    assert run.step_results["one"].status is StepStatus.INTERRUPTED


async def test_what_waits_for_the_machine_can_be_cancelled(world: World) -> None:
    """EX-7, EX-27: it ends at once, and does not begin any more."""
    ann = await world.account()
    run_id = await world.start(ann, await world.workflow(ann, code("one")))
    lease, (job,) = await world.take()
    await postponed(world, lease, job)
    await executions.cancel_execution(world.services, ann, run_id)
    world.clock.advance(MINUTE)
    assert not await worker.claim(world.services, "w2", 9)


async def test_what_time_does_not_cure_fails_at_last(world: World) -> None:
    """`explain` says how often it is still tried; then it is FAILED with the true words. EX-27."""
    ann = await world.account()
    run_id = await world.start(ann, await world.workflow(ann, code("one", retry=Retry(5))))
    for tries in range(1, 17):
        lease, (job,) = await world.take()
        end = StepEnd(postponed="it could not be confined: mount: not permitted", lasting=True)
        await worker.complete_step(
            world.services, lease, "one", end, attempt=job.attempt, postponed=job.postponed
        )
        if tries < 16:
            (line, *_) = (await explain_execution(world.services, ann, run_id)).lines
            assert line.code is Why.STEP_POSTPONED
            assert f"mount: not permitted (try {tries} of 16; after the last one" in line.text
        world.clock.advance(40_000)
    run = await executions.read_result(world.services, ann, run_id)
    said = "could not be started in 16 tries: it could not be confined: mount: not permitted"
    assert (run.status, run.step_results["one"].error) == (S.FAILED, said)
