"""The files with which a step begins: what its job says, and why a step gets none."""

from collections.abc import Mapping
from io import BytesIO

from attrs import evolve

from wfcore.model.approval import DecisionSource
from wfcore.model.workflow import (
    ApprovalStep,
    ChildStep,
    DelayStep,
    LoopStep,
    OnRevise,
    Retry,
)
from wfcore.ports.runtime import LeftFile, StepJob
from wfcore.rules.approval.machine import Revise
from wfcore.time import DAY, DurationMs
from wfcore.usecases.approvals import approvals, deciding
from wfcore.usecases.approvals.deciding import Decide
from wfcore.usecases.executions.executions import read_execution
from wfcore.usecases.executions.redriving import redrive
from wfcore.usecases.services import Policy
from wfcore.usecases.upkeep.retention import delete_expired

from .conftest import World, code


def left(*names: str, size: int = 4) -> tuple[LeftFile, ...]:
    """Files that a step left; the id is made of the name."""
    return tuple(
        LeftFile(f"art_{name}", name, f"exec/art_{name}", size, "text/csv", "0" * 64, True)
        for name in names
    )


def given(job: StepJob) -> Mapping[str, list[str]]:
    """The paths of the files in each folder of a job."""
    return {one.step: list(one.files) for one in job.files}


FLOW = (code("fetch"), code("load", files=("fetch",)))


async def test_a_step_begins_with_the_files_of_an_earlier_step(world: World) -> None:
    """FI-2: as recorded with the end of that step; whether files will be read is known as well."""
    ann = await world.account()
    await world.start(ann, await world.workflow(ann, *FLOW))
    lease, (fetch,) = await world.take()
    assert (fetch.is_read, fetch.files) == (True, ())
    (load,) = await world.finish(lease, "fetch", files=left("b.csv", "a.csv"))
    assert given(load) == {"fetch": ["a.csv", "b.csv"]}
    assert not load.is_read


async def test_a_step_that_left_nothing_has_an_empty_folder(world: World) -> None:
    """FI-3."""
    ann = await world.account()
    await world.start(ann, await world.workflow(ann, *FLOW))
    lease, _ = await world.take()
    (load,) = await world.finish(lease, "fetch")
    assert given(load) == {"fetch": []}


async def test_files_of_a_tolerated_failure_count_and_those_of_earlier_attempts_do_not(
    world: World,
) -> None:
    """FI-2: the last attempt is the one that counts, whatever became of it."""
    ann = await world.account()
    once = Retry(attempts=2, delay_ms=DurationMs(1))
    fetch = code("fetch", continue_on_error=True, retry=once)
    await world.start(ann, await world.workflow(ann, fetch, FLOW[1]))
    lease, _ = await world.take()
    await world.finish(lease, "fetch", error="no", files=left("first.csv"))
    world.clock.advance(1_000)
    lease, _ = await world.take()
    (load,) = await world.finish(lease, "fetch", error="no", files=left("second.csv"))
    assert given(load) == {"fetch": ["second.csv"]}


async def test_more_bytes_than_allowed_fail_the_step_by_name(world: World) -> None:
    """FI-5: and none too many do not."""
    ann = await world.account()
    services = evolve(world.services, policy=Policy(files_bytes=8))
    world = evolve(world, services=services)
    workflow = await world.workflow(ann, *FLOW)
    for names, status in (("a", "b"), "RUNNING"), (("c", "d", "e"), "FAILED"):
        id = await world.start(ann, workflow)
        lease, _ = await world.take()
        jobs = await world.finish(lease, "fetch", files=left(*names))
        run = await read_execution(services, ann, id)
        assert run.status == status
        assert len(jobs) == (status == "RUNNING")
    assert "12 bytes in all, and WFCORE_FILES_BYTES allows 8" in str(run.step_results["load"].error)


async def test_a_redrive_reads_the_files_of_the_results_that_it_keeps(world: World) -> None:
    """FI-2: as files of the new execution."""
    ann = await world.account()
    id = await world.start(ann, await world.workflow(ann, *FLOW))
    lease, _ = await world.take()
    kept = await _stored(world, id)
    await world.finish(lease, "fetch", files=kept)
    await world.finish(lease, "load", error="no")
    again = await redrive(world.services, ann, id)
    _, (load,) = await world.take()
    assert load.execution_id == again.execution_id
    assert given(load) == {"fetch": ["a.csv"]}
    assert load.files[0].files["a.csv"].storage_key.startswith(f"{again.execution_id}/")


async def _stored(world: World, id: str) -> tuple[LeftFile, ...]:
    stored = await world.services.files.store(id, "art_a", BytesIO(b"1234"))
    return tuple(evolve(one, storage_key=stored.storage_key) for one in left("a.csv"))


async def test_a_step_reads_the_files_of_a_child(world: World) -> None:
    """FI-1: all that its steps left; a child that was deleted since fails the step by name."""
    ann = await world.account()
    await world.workflow(ann, code("write"), name="other")
    load, late = code("load", files=("sub",)), code("late", files=("sub",))
    wait = DelayStep("wait", DurationMs(31 * DAY))
    flow = await world.workflow(ann, ChildStep("sub", "other"), load, wait, late)
    id = await world.start(ann, flow)
    await world.take()
    child, (write,) = await world.take()
    assert write.step_name == "write"
    await world.finish(child, "write", files=left("a.csv"))
    lease, (job,) = await world.take()
    assert given(job) == {"sub": ["a.csv"]}
    await world.finish(lease, "load")
    world.clock.advance(31 * DAY)
    while (await delete_expired(world.services)).more:
        pass
    await world.take()
    run = await read_execution(world.services, ann, id)
    error = str(run.step_results["late"].error)
    assert error == f"files: {child.execution_id}, which sub started, was deleted with its files"


async def test_files_of_a_round_that_was_put_aside_do_not_count(world: World) -> None:
    """FI-2: after `revise` the step that runs again reads what the new round left."""
    ann = await world.account()
    review = ApprovalStep("review", "?", on_revise=OnRevise("fetch"))
    flow = await world.workflow(ann, *FLOW, review)
    id = await world.start(ann, flow)
    lease, _ = await world.take()
    await world.finish(lease, "fetch", files=left("old.csv"))
    await world.finish(lease, "load")
    (approval,) = await approvals.approvals_of(world.services, ann, id)
    await deciding.decide_approval(
        world.services, ann, Decide(approval.id, Revise(), DecisionSource.API, "again")
    )
    lease, (fetch,) = await world.take()
    assert fetch.attempt == 2
    (load,) = await world.finish(lease, "fetch", files=left("new.csv"), attempt=2)
    assert given(load) == {"fetch": ["new.csv"]}


async def test_a_loop_gives_a_folder_for_each_round(world: World) -> None:
    """FI-1: and in the round, only that round's."""
    ann = await world.account()
    body = (code("split"), code("count", files=("split",)))
    loop = LoopStep("lines", [1, 2], "line", body)
    await world.start(ann, await world.workflow(ann, loop, code("load", files=("lines",))))
    lease, _ = await world.take()
    for number in range(2):
        (count,) = await world.finish(lease, f"lines.{number}.split", files=left(f"{number}.csv"))
        assert given(count) == {f"lines.{number}.split": [f"{number}.csv"]}
        jobs = await world.finish(lease, f"lines.{number}.count")
    (load,) = jobs
    assert given(load) == {
        "lines.0.split": ["0.csv"],
        "lines.0.count": [],
        "lines.1.split": ["1.csv"],
        "lines.1.count": [],
    }
