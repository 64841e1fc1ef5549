"""Running executions: at most once, nothing accepted lost."""

import asyncio
from typing import Any

import pytest

from wfcore.errors import AlreadyFinished, LeaseLost, NotFound
from wfcore.model.execution import (
    Execution,
    ExecutionStatus,
    ReasonCode,
    StepStatus,
    TriggerSource,
)
from wfcore.model.workflow import OnInterrupt, Retry
from wfcore.ports.runtime import LeftFile
from wfcore.time import HOUR, MINUTE, SECOND, EpochMs
from wfcore.usecases.approvals import approvals
from wfcore.usecases.artifacts import list_artifacts
from wfcore.usecases.executions import executions, redriving, worker
from wfcore.usecases.upkeep import sweeping

from .conftest import World, code, review

S = ExecutionStatus


async def test_an_execution_runs_its_steps_in_order_and_ends(world: World) -> None:
    """Each step's end begins the next one, and the last output is the execution's. EX-8."""
    ann = await world.account()
    run_id = await world.start(ann, await world.workflow(ann, code("one"), code("two")))
    lease, (job,) = await world.take()
    assert job.step_name == "one"
    (second,) = await world.finish(lease, "one", {"n": 1})
    assert second.context["steps"]["one"] == {"status": "COMPLETED", "output": {"n": 1}}
    assert await world.finish(lease, "two", [2]) == ()
    run = await executions.read_result(world.services, ann, run_id)
    assert (run.status, run.output, run.worker) == (S.COMPLETED, [2], None)


async def test_a_running_execution_keeps_its_definition(world: World) -> None:
    """A definition applied meanwhile changes nothing for what was accepted before. EX-1."""
    ann = await world.account()
    workflow = await world.workflow(ann, code("old"))
    await world.start(ann, workflow)
    assert await world.workflow(ann, code("new")) == workflow
    _, (job,) = await world.take()
    assert job.step_name == "old"


async def test_a_step_is_recorded_as_begun_before_it_is_handed_out(world: World) -> None:
    """What a worker was told to start is RUNNING in the store already. EX-14."""
    ann = await world.account()
    run_id = await world.start(ann, await world.workflow(ann, code("one")))
    _, (job,) = await world.take()
    run = await executions.read_execution(world.services, ann, run_id)
    assert run.step_results[job.step_name].status is StepStatus.RUNNING


async def test_of_racing_workers_one_gets_each_execution(world: World) -> None:
    """Many workers claiming at once never share an execution. EX-2."""
    ann = await world.account()
    workflow = await world.workflow(ann, code("one"))
    started = {await world.start(ann, workflow) for _ in range(20)}
    claims = [worker.claim(world.services, f"w{n}", 5) for n in range(10)]
    taken = [lease.execution_id for leases in await asyncio.gather(*claims) for lease in leases]
    assert len(taken) == len(set(taken))
    assert set(taken) <= started
    assert len(taken) == 20


@pytest.mark.parametrize("source", [TriggerSource.OPEN_API, TriggerSource.WEBHOOK])
async def test_what_callers_started_never_runs_twice(world: World, source: TriggerSource) -> None:
    """A begun step whose worker died is INTERRUPTED, and after the grace FAILED. EX-11, EX-13."""
    ann = await world.account()
    workflow = await world.workflow(ann, code("one"))
    run_id = await world.start(ann, workflow, source=source)
    lease, _ = await world.take()
    world.clock.advance(MINUTE)
    await sweeping.sweep(world.services)
    run = await executions.read_execution(world.services, ann, run_id)
    assert run.status is S.INTERRUPTED
    assert run.step_results["one"].status is StepStatus.INTERRUPTED
    with pytest.raises(LeaseLost):
        await world.finish(lease, "one")
    world.clock.advance(5 * MINUTE)
    assert not await worker.claim(world.services, "w2", 9)
    await sweeping.sweep(world.services)
    run = await executions.read_execution(world.services, ann, run_id)
    assert (run.status, run.error) == (S.FAILED, "Execution interrupted")
    assert not await worker.claim(world.services, "w2", 9)


async def test_the_service_resumes_its_own_executions_three_times(world: World) -> None:
    """A manual execution is taken up again after a crash, but not for ever. EX-12."""
    ann = await world.account()
    workflow = await world.workflow(ann, code("one"))
    run_id = await world.start(ann, workflow, source=TriggerSource.MANUAL)
    for attempt in range(1, 5):
        _, (job,) = await world.take()
        assert job.attempt == attempt
        world.clock.advance(MINUTE)
        await sweeping.sweep(world.services)
    assert not await worker.claim(world.services, "w1", 9)
    run = await executions.read_execution(world.services, ann, run_id)
    assert run.status is S.INTERRUPTED


@pytest.mark.parametrize("says", ["step", "definition"])
@pytest.mark.parametrize("ends", ["dies", "stops"])
async def test_a_step_that_says_fail_is_never_begun_again(
    world: World, says: str, ends: str
) -> None:
    """Also by hand started: FAILED after the grace, whether its worker died or stopped. EX-25."""
    ann = await world.account()
    fail: dict[str, object] = {"on_interrupt": OnInterrupt.FAIL}
    step, top = (fail, {}) if says == "step" else ({}, fail)
    workflow = await world.workflow(ann, code("pay", **step), **top)
    run_id = await world.start(ann, workflow, source=TriggerSource.MANUAL)
    lease, _ = await world.take()
    if ends == "stops":
        await worker.hand_back(world.services, lease)
    for pause in (MINUTE, 5 * MINUTE):
        world.clock.advance(pause)
        await sweeping.sweep(world.services)
        assert not await worker.claim(world.services, "w2", 9)
    run = await executions.read_execution(world.services, ann, run_id)
    assert (run.status, run.error) == (S.FAILED, "Execution interrupted")


async def test_what_was_claimed_but_not_begun_goes_on(world: World) -> None:
    """A worker that died before it began anything costs nothing: another one begins. EX-15."""
    ann = await world.account()
    run_id = await world.start(ann, await world.workflow(ann, code("one")))
    assert await worker.claim(world.services, "dead", 1)
    world.clock.advance(MINUTE)
    await sweeping.sweep(world.services)
    lease, (job,) = await world.take("alive")
    assert (lease.execution_id, job.attempt) == (run_id, 1)


async def test_an_old_fence_changes_nothing(world: World) -> None:
    """A worker that lost its lease and comes back is refused, whoever holds it now. EX-16."""
    ann = await world.account()
    workflow = await world.workflow(ann, code("one"))
    run_id = await world.start(ann, workflow, source=TriggerSource.MANUAL)
    old, _ = await world.take("w1")
    world.clock.advance(MINUTE)
    await sweeping.sweep(world.services)
    new, _ = await world.take("w1")
    assert new.fence > old.fence
    before = await executions.read_execution(world.services, ann, run_id)
    with pytest.raises(LeaseLost):
        await world.finish(old, "one", "late")
    assert await executions.read_execution(world.services, ann, run_id) == before


async def test_a_beginning_that_is_asked_again_begins_nothing(world: World) -> None:
    """A lost answer is not a failed commit: the same step is handed out, once on record. EX-23."""
    ann = await world.account()
    run_id = await world.start(ann, await world.workflow(ann, code("one")))
    lease, jobs = await world.take()
    before = await executions.read_execution(world.services, ann, run_id)
    assert (await worker.begin(world.services, lease)).jobs == jobs
    assert await executions.read_execution(world.services, ann, run_id) == before


async def test_an_end_that_is_told_again_is_recorded_once(world: World) -> None:
    """The second time it says what is in flight, and changes nothing. EX-23."""
    ann = await world.account()
    run_id = await world.start(ann, await world.workflow(ann, code("one"), code("two")))
    lease, _ = await world.take()
    followers = await world.finish(lease, "one", "first", attempt=1)
    before = await executions.read_execution(world.services, ann, run_id)
    assert await world.finish(lease, "one", "again", attempt=1) == followers
    assert await executions.read_execution(world.services, ann, run_id) == before
    await world.finish(lease, "two", attempt=1)
    with pytest.raises(LeaseLost):
        await world.finish(lease, "two", attempt=1)


async def test_a_late_end_is_not_taken_for_the_next_attempts(world: World) -> None:
    """The end of attempt 1, told again while attempt 2 runs, does not end attempt 2. EX-23."""
    ann = await world.account()
    step = code("one", retry=Retry(attempts=2, delay_ms=SECOND))
    run_id = await world.start(ann, await world.workflow(ann, step))
    lease, _ = await world.take()
    await world.finish(lease, "one", error="no luck", attempt=1)
    world.clock.advance(2 * SECOND)
    lease, (job,) = await world.take()
    assert await world.finish(lease, "one", error="no luck", attempt=1) == (job,)
    run = await executions.read_execution(world.services, ann, run_id)
    assert run.in_flight == ("one",)


async def test_only_what_a_worker_works_on_is_kept_alive(world: World) -> None:
    """A claim whose answer got lost runs out while its worker lives, and goes on. EX-15."""
    ann = await world.account()
    workflow = await world.workflow(ann, code("one"))
    lost, known = await world.start(ann, workflow), await world.start(ann, workflow)
    assert len(await worker.claim(world.services, "w1", 2)) == 2
    world.clock.advance(MINUTE - 1)
    assert await worker.heartbeat(world.services, "w1", [known]) == {known: None}
    await sweeping.sweep(world.services)
    lease, _ = await world.take("w2")
    assert lease.execution_id == lost


async def test_a_claim_that_took_too_long_begins_nothing(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A lease that is nearly over when its worker hears of it is left to run out. EX-15."""
    ann = await world.account()
    run_id = await world.start(ann, await world.workflow(ann, code("one")))
    store_claim = world.services.store.claim

    async def slowly(*args: Any) -> Any:
        taken = await store_claim(*args)
        world.clock.advance(8 * SECOND)
        return taken

    with monkeypatch.context() as patch:
        patch.setattr(world.services.store, "claim", slowly)
        assert not await worker.claim(world.services, "slow", 9)
    world.clock.advance(MINUTE)
    await sweeping.sweep(world.services)
    lease, (job,) = await world.take("w2")
    assert (lease.execution_id, job.attempt) == (run_id, 1)


async def test_a_failed_attempt_waits_and_begins_again(world: World) -> None:
    """With `retry` the next attempt is due after its delay, not before, nor much later. DF-9."""
    ann = await world.account()
    step = code("one", retry=Retry(attempts=2, delay_ms=10 * SECOND))
    run_id = await world.start(ann, await world.workflow(ann, step))
    lease, _ = await world.take()
    assert await world.finish(lease, "one", error="no luck") == ()
    world.clock.advance(10 * SECOND - 1)
    assert not await worker.claim(world.services, "w1", 9)
    world.clock.advance(2_501)
    lease, (job,) = await world.take()
    assert job.attempt == 2
    await world.finish(lease, "one", error="again")
    run = await executions.read_execution(world.services, ann, run_id)
    assert (run.status, run.error) == (S.FAILED, "Step 'one' failed: again")


async def test_a_tolerated_failure_does_not_stop_the_rest(world: World) -> None:
    """`continueOnError` lets the next step begin. EX-10."""
    ann = await world.account()
    workflow = await world.workflow(ann, code("one", continue_on_error=True), code("two"))
    run_id = await world.start(ann, workflow)
    lease, _ = await world.take()
    (job,) = await world.finish(lease, "one", error="never mind")
    assert job.step_name == "two"
    await world.finish(lease, "two")
    assert (await executions.read_result(world.services, ann, run_id)).status is S.COMPLETED


async def test_cancel_ends_everything_at_once(world: World) -> None:
    """Cancelled: open approvals are withdrawn, late results are dropped, again is refused. EX-7."""
    ann = await world.account()
    run_id = await world.start(ann, await world.workflow(ann, code("one"), review()))
    lease, _ = await world.take()
    await world.finish(lease, "one")
    await executions.cancel_execution(world.services, ann, run_id)
    run = await executions.read_execution(world.services, ann, run_id)
    assert run.status is S.CANCELLED
    assert run.status_reason is not None
    assert run.status_reason.code is ReasonCode.CANCEL_REQUESTED
    (approval,) = await approvals.approvals_of(world.services, ann, run_id)
    assert approval.status == "CANCELLED"
    with pytest.raises(AlreadyFinished):
        await executions.cancel_execution(world.services, ann, run_id)
    _, events = await executions.read_events(world.services, ann, run_id, 0)
    assert [event.number for event in events] == list(range(1, len(events) + 1))
    assert events[-1].kind == "execution.cancelled"


async def test_a_step_that_was_cancelled_cannot_report(world: World) -> None:
    """A result that comes after the cancel is dropped, and the worker is told to stop. EX-7."""
    ann = await world.account()
    run_id = await world.start(ann, await world.workflow(ann, code("one")))
    lease, _ = await world.take()
    await executions.cancel_execution(world.services, ann, run_id)
    assert ("stop", run_id) in world.hints.told
    with pytest.raises(LeaseLost):
        await world.finish(lease, "one", "late")


async def test_a_graceful_stop_hands_back_between_steps(world: World) -> None:
    """A step that ends while the worker stops is kept, and another worker goes on. EX-15."""
    ann = await world.account()
    run_id = await world.start(ann, await world.workflow(ann, code("one"), code("two")))
    lease, _ = await world.take("w1")
    from wfcore.ports.runtime import StepEnd

    end = StepEnd("kept")
    assert not (await worker.complete_step(world.services, lease, "one", end, go_on=False)).jobs
    lease, (job,) = await world.take("w2")
    assert (lease.execution_id, job.step_name) == (run_id, "two")


async def test_redrive_begins_at_the_first_unfinished_step(world: World) -> None:
    """A new execution keeps what was finished and says what it continues. EX-17."""
    ann = await world.account()
    run_id = await world.start(ann, await world.workflow(ann, code("one"), code("two")))
    lease, _ = await world.take()
    await world.finish(lease, "one", "first")
    await world.finish(lease, "two", error="broken")
    again = await redriving.redrive(world.services, ann, run_id)
    lease, (job,) = await world.take()
    assert (lease.execution_id, job.step_name) == (again.execution_id, "two")
    await world.finish(lease, "two", "second")
    run = await executions.read_result(world.services, ann, again.execution_id)
    assert (run.redrive_of, run.step_results["one"].output) == (run_id, "first")


async def test_a_redrive_runs_the_definition_of_the_first_run(world: World) -> None:
    """What was applied since has other steps, which the results that are kept do not fit. EX-17."""
    ann = await world.account()
    run_id = await world.start(ann, await world.workflow(ann, code("one"), code("two")))
    lease, _ = await world.take()
    await world.finish(lease, "one", error="broken")
    workflow_id = await world.workflow(ann, code("another"))
    old = await executions.read_execution(world.services, ann, run_id)
    again = await redriving.redrive(world.services, ann, run_id)
    run = await executions.read_execution(world.services, ann, again.execution_id)
    assert (run.workflow_id, run.revision) == (workflow_id, old.revision)
    _, (job,) = await world.take()
    assert job.step_name == "one"


async def test_a_start_is_told_to_workers_and_to_who_follows_it(world: World) -> None:
    """A worker need not wait for its next look, nor a page that follows the execution. EX-1."""
    ann = await world.account()
    run_id = await world.start(ann, await world.workflow(ann, code("one")))
    assert ("runner", None) in world.hints.told
    assert ("events", run_id) in world.hints.told
    assert ("events", None) not in world.hints.told


async def test_one_artifact_too_many_fails_the_step_and_is_named(world: World) -> None:
    """An execution has at most 200 artifacts; these are kept. CS-10."""
    ann = await world.account()
    run_id = await world.start(ann, await world.workflow(ann, code("one")))
    lease, _ = await world.take()
    files = tuple(
        LeftFile(f"art_{n}", f"{n}.txt", f"{run_id}/art_{n}", 1, "text/plain", "0" * 64, True)
        for n in range(201)
    )
    await world.finish(lease, "one", files=files)
    run = await executions.read_execution(world.services, ann, run_id)
    assert run.status is S.FAILED
    assert "200 artifacts" in (run.error or "")
    assert [file.name for file in run.step_results["one"].refused] == ["200.txt"]
    assert len(await list_artifacts(world.services, ann, run_id)) == 200
    with pytest.raises(NotFound):
        await list_artifacts(world.services, await world.account("bob@example.org"), run_id)


async def test_artifacts_of_failed_attempts_do_not_end_retries(world: World) -> None:
    """They do not count once the next attempt has begun; at most 200 of them are kept. CS-14."""
    ann = await world.account()
    step = code("one", retry=Retry(attempts=4, delay_ms=SECOND))
    run_id = await world.start(ann, await world.workflow(ann, step))
    for attempt in range(1, 5):
        lease, _ = await world.take()
        files = tuple(
            LeftFile(
                f"art_{attempt}_{n}", f"{n}", f"k/{attempt}/{n}", 1, "text/plain", "0" * 64, True
            )
            for n in range(150)
        )
        await world.finish(lease, "one", error=None if attempt == 4 else "no luck", files=files)
        world.clock.advance(MINUTE)
    run = await executions.read_execution(world.services, ann, run_id)
    assert (run.status, run.error) == (S.COMPLETED, None)
    kept = [one.attempt for one in await list_artifacts(world.services, ann, run_id)]
    assert [kept.count(attempt) for attempt in range(1, 5)] == [150, 50, 0, 150]


async def test_whoever_waits_misses_nothing_that_is_told_during_a_look(world: World) -> None:
    """A hint between the look at an execution and the wait for a change makes it look again."""
    ann = await world.account()
    run_id = await world.start(ann, await world.workflow(ann, code("one")))
    looks: list[ExecutionStatus] = []

    def over(run: Execution, now: EpochMs) -> bool:
        looks.append(run.status)
        world.hints.events(run_id)
        return len(looks) == 2

    async with asyncio.timeout(60):
        await executions.wait_until(over, world.services, ann, run_id, HOUR)
    assert looks == [S.PENDING, S.PENDING]
