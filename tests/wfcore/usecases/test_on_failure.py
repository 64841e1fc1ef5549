"""Steps for the case of failure, through the use cases, on both stores. EX-31."""

from attrs import evolve

from wfcore.model.execution import ExecutionStatus, TriggerSource
from wfcore.model.notice import NoticeKind
from wfcore.model.page import PageRequest
from wfcore.model.workflow import CodeStep, Language
from wfcore.ports.runtime import StepEnd, StepJob
from wfcore.time import DAY
from wfcore.usecases.executions import executions, explaining, redriving, worker
from wfcore.usecases.upkeep import sweeping

from .conftest import World, code

TELL = CodeStep("tell", Language.COMMAND, command=("tell", "{{ error }}", "{{ steps.two.status }}"))
FAILED = StepEnd(error="no disk", permanent=True)


async def failures_told(world: World) -> int:
    """How many notices of failures were written."""
    async with world.services.store.view() as view:
        found = await view.notices.list((), PageRequest(size=50))
    return sum(one.kind is NoticeKind.EXECUTION_FAILED for one in found.rows)


async def test_it_is_told_of_the_error_and_fails_afterwards(world: World) -> None:
    """The job has the error in its command and environment; FAILED, and told, only after it."""
    ann = await world.account()
    flow = await world.workflow(
        ann, code("one"), code("two"), on_failure=(TELL,), notify_on_failure=("ops",)
    )
    run_id = await world.start(ann, flow)
    lease, _ = await world.take()
    work = await worker.complete_step(world.services, lease, "one", FAILED)
    (job,) = work.jobs
    assert isinstance(job, StepJob)
    assert job.argv == ("tell", "Step 'one' failed: no disk", "SKIPPED")
    assert job.environment["WF_ERROR"] == "Step 'one' failed: no disk"
    run = await executions.read_execution(world.services, ann, run_id)
    assert (run.status, run.error) == (ExecutionStatus.RUNNING, None)
    assert await failures_told(world) == 0
    said = await explaining.explain_execution(world.services, ann, run_id)
    assert said.lines[0].text == (
        "It will fail after its `onFailure` steps: Step 'one' failed: no disk"
    )
    await worker.complete_step(world.services, lease, "tell", evolve(FAILED, error="no network"))
    run = await executions.read_execution(world.services, ann, run_id)
    assert (run.status, run.error) == (ExecutionStatus.FAILED, "Step 'one' failed: no disk")
    assert run.step_results["tell"].error == "no network"
    assert await failures_told(world) == 1


async def test_an_interrupted_execution_is_taken_up_for_them(world: World) -> None:
    """After its grace a worker takes it, for these steps alone; then it is FAILED. EX-13, EX-31."""
    ann = await world.account()
    flow = await world.workflow(ann, code("one"), on_failure=(code("tell"),))
    run_id = await world.start(ann, flow, source=TriggerSource.OPEN_API)
    lease, _ = await world.take()
    await worker.hand_back(world.services, lease)
    world.clock.advance(DAY)
    await sweeping.end_graces(world.services)
    lease, jobs = await world.take("another")
    assert [job.step_name for job in jobs] == ["tell"]
    await worker.complete_step(world.services, lease, "tell", StepEnd())
    run = await executions.read_execution(world.services, ann, run_id)
    assert (run.status, run.error) == (ExecutionStatus.FAILED, "Execution interrupted")


async def test_a_redrive_begins_with_the_work(world: World) -> None:
    """What was done in `onFailure` is not kept; the work begins at its first unfinished step."""
    ann = await world.account()
    flow = await world.workflow(ann, code("one"), on_failure=(code("tell"),))
    run_id = await world.start(ann, flow)
    lease, _ = await world.take()
    await worker.complete_step(world.services, lease, "one", FAILED)
    await worker.complete_step(world.services, lease, "tell", StepEnd())
    again = await redriving.redrive(world.services, ann, run_id)
    run = await executions.read_execution(world.services, ann, again.execution_id)
    assert (run.step_results, run.failing) == ({}, None)
    _, jobs = await world.take()
    assert [job.step_name for job in jobs] == ["one"]
