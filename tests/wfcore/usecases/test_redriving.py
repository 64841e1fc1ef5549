"""Redriving from a step, with a newer definition or other inputs, and with files. EX-35."""

from asyncio import gather
from io import BytesIO

import pytest

from wfcore.errors import Conflict, InvalidInput, NotFound
from wfcore.model.access import OPERATOR, Permission, Principal
from wfcore.model.execution import StepStatus
from wfcore.model.workflow import ChildStep, Step, Variable
from wfcore.ports.runtime import LeftFile
from wfcore.usecases.artifacts import list_artifacts
from wfcore.usecases.executions import executions, redriving, starting
from wfcore.usecases.executions import worker as running
from wfcore.usecases.executions.redriving import Redrive
from wfcore.usecases.workflows import workflows

from .conftest import World, code

NEWEST = Redrive(newest=True)


async def file(world: World, run_id: str, id: str = "art_a") -> LeftFile:
    """A file that a step left, with its content."""
    stored = await world.services.files.store(run_id, id, BytesIO(b"abc"))
    return LeftFile(
        id=id,
        name=f"{id}.txt",
        storage_key=stored.storage_key,
        size=stored.size,
        content_type="text/plain",
        sha256=stored.sha256,
        previewable=True,
    )


async def failed(world: World, *steps: Step, **declared: Variable) -> tuple[Principal, str]:
    """An execution whose first step completed and left a file, and whose second one failed."""
    ann = await world.account()
    found = steps or (code("one"), code("two"), code("three"))
    run_id = await world.start(ann, await world.workflow(ann, *found, variables=declared))
    lease, _ = await world.take()
    await world.finish(lease, "one", "first", files=(await file(world, run_id),))
    await world.finish(lease, "two", error="broken")
    world.clock.advance(1_000)
    return ann, run_id


async def test_a_preview_says_what_the_redrive_then_does(world: World) -> None:
    """Each step's fate and its beginnings over the whole line; nothing is changed by it."""
    ann, run_id = await failed(world)
    again = await redriving.redrive(world.services, ann, run_id)
    lease, _ = await world.take()
    await world.finish(lease, "two", error="broken again")
    world.clock.advance(1_000)
    found = await redriving.preview_redrive(world.services, ann, again.execution_id)
    said = [(one.key, one.fate.value, one.begun) for one in found.plan.steps]
    assert said == [("one", "kept", 1), ("two", "again", 2), ("three", "new", 0)]
    assert (found.plan.start, found.redriven_as) == ("two", None)


async def test_a_redrive_begins_at_the_step_that_is_named(world: World) -> None:
    """A completed execution, too; what stands before the step keeps its result."""
    ann = await world.account()
    run_id = await world.start(ann, await world.workflow(ann, code("one"), code("two")))
    lease, _ = await world.take()
    await world.finish(lease, "one", "first")
    await world.finish(lease, "two", "second")
    with pytest.raises(NotFound):
        await redriving.redrive(world.services, ann, run_id)
    await redriving.redrive(world.services, ann, run_id, Redrive("two"))
    lease, (job,) = await world.take()
    assert job.step_name == "two"
    with pytest.raises(InvalidInput, match="from"):
        await redriving.redrive(world.services, ann, run_id, Redrive("three"))


async def test_a_redrive_refuses_to_jump_over_a_step(world: World) -> None:
    """The refusal names the step that has no result, and nothing is started."""
    ann, run_id = await failed(world)
    with pytest.raises(Conflict, match="two"):
        await redriving.redrive(world.services, ann, run_id, Redrive("three"))
    assert await executions.redriven_as(world.services, await read(world, run_id)) is None


async def test_the_newest_definition_runs_if_it_is_wanted(world: World) -> None:
    """With kept results of the steps that it still has; what changed is listed."""
    ann, run_id = await failed(world)
    workflow_id = await world.workflow(ann, code("one"), code("between"), code("two"))
    found = await redriving.preview_redrive(world.services, ann, run_id, NEWEST)
    assert [(one.key, one.fate.value) for one in found.plan.steps] == [
        ("one", "kept"),
        ("between", "new"),
        ("two", "again"),
    ]
    again = await redriving.redrive(world.services, ann, run_id, NEWEST)
    run = await read(world, again.execution_id)
    assert (run.workflow_id, run.revision, run.total_steps) == (workflow_id, 2, 3)
    _, (job,) = await world.take()
    assert job.step_name == "between"


async def test_inputs_replace_those_of_the_old_execution(world: World) -> None:
    """Name by name, judged as at a start."""
    ann, run_id = await failed(world, a=Variable("a", has_default=True, default="x"))
    again = await redriving.redrive(world.services, ann, run_id, Redrive(inputs={"a": "y"}))
    assert (await read(world, again.execution_id)).variables == {"a": "y"}
    with pytest.raises(InvalidInput, match=r"inputs\.a"):
        await redriving.redrive(world.services, ann, run_id, Redrive(inputs={"a": 1}))


async def test_a_plan_that_has_changed_is_refused(world: World) -> None:
    """By its digest: other inputs, another definition, or another redrive since it was shown."""
    ann, run_id = await failed(world, a=Variable("a", has_default=True, default="x"))
    seen = (await redriving.preview_redrive(world.services, ann, run_id)).digest
    wanted = Redrive(inputs={"a": "y"}, digest=seen)
    with pytest.raises(Conflict):
        await redriving.redrive(world.services, ann, run_id, wanted)

    async def one() -> str:
        try:
            started = await redriving.redrive(world.services, ann, run_id, Redrive(digest=seen))
        except Conflict:
            return "refused"
        return started.execution_id

    made = await gather(one(), one())
    assert sum(id == "refused" for id in made) == 1


async def test_a_secret_input_goes_only_with_the_account_that_gave_it(world: World) -> None:
    """Another one is asked for its own, by name."""
    ann = await world.account()
    bob = await world.account("bob@example.org")
    workflow_id = await world.workflow(
        ann, code("one"), variables={"token": Variable("token", secret=True)}
    )
    await workflows.share_workflow(
        world.services, OPERATOR, workflow_id, bob.account.id, Permission.EXECUTE
    )
    started = await starting.start_execution(
        world.services, bob, workflow_id, {"token": "of-bob-1234"}
    )
    run_id = started.execution_id
    lease, _ = await world.take()
    await world.finish(lease, "one", error="broken")
    with pytest.raises(InvalidInput, match=r"inputs\.token"):
        await redriving.redrive(world.services, ann, run_id)
    own = Redrive(inputs={"token": "of-ann-5678"})
    assert (await redriving.redrive(world.services, ann, run_id, own)).execution_id
    assert (await redriving.redrive(world.services, bob, run_id)).execution_id


async def test_the_artifacts_of_kept_steps_belong_to_the_new_execution(world: World) -> None:
    """They outlive the old one, whose retention takes only its own."""
    ann, run_id = await failed(world)
    again = await redriving.redrive(world.services, ann, run_id)
    (copy,) = await list_artifacts(world.services, ann, again.execution_id)
    assert (copy.name, copy.step_name, copy.execution_id) == (
        "art_a.txt",
        "one",
        again.execution_id,
    )
    await world.services.files.delete_executions(run_id)
    chunks = [one async for one in world.services.files.read(copy.storage_key, 0, copy.size)]
    assert b"".join(chunks) == b"abc"
    with pytest.raises(Conflict, match=r"art_a\.txt"):
        await redriving.redrive(world.services, ann, run_id)


async def test_a_kept_child_is_not_started_again(world: World) -> None:
    """An unfinished one is a new execution."""
    ann = await world.account()
    await world.workflow(ann, code("inner"), name="child")
    parent = await world.workflow(ann, ChildStep("call", "child"), code("after"), name="parent")
    run_id = await world.start(ann, parent)
    await world.take()
    lease, _ = await world.take()
    await world.finish(lease, "inner", 1)
    lease, _ = await world.take()
    await world.finish(lease, "after", error="no")
    again = await redriving.redrive(world.services, ann, run_id)
    run = await read(world, again.execution_id)
    assert run.step_results["call"].status is StepStatus.COMPLETED
    anew = await redriving.redrive(world.services, ann, run_id, Redrive("call"))
    await running.claim(world.services, "w2", 5)
    assert "call" not in (await read(world, anew.execution_id)).step_results


async def read(world: World, id: str):
    return await executions.read_execution(world.services, OPERATOR, id)


async def test_a_start_like_an_execution_takes_its_inputs(world: World) -> None:
    """Those that are given take their place; another workflow's execution is refused. EX-36."""
    ann = await world.account()
    bob = await world.account("bob@example.org")
    declared = {name: Variable(name) for name in ("a", "b")}
    flow = await world.workflow(ann, code("one"), variables=declared)
    other = await world.workflow(ann, code("one"), name="other")
    first = await starting.start_execution(world.services, ann, flow, {"a": "x", "b": "y"})
    again = await starting.start_execution(
        world.services, ann, flow, {"b": "z"}, like=first.execution_id
    )
    assert (await read(world, again.execution_id)).variables == {"a": "x", "b": "z"}
    with pytest.raises(InvalidInput, match="like"):
        await starting.start_execution(world.services, ann, other, {}, like=first.execution_id)
    await workflows.share_workflow(
        world.services, OPERATOR, flow, bob.account.id, Permission.EXECUTE
    )
    with pytest.raises(NotFound):
        await starting.start_execution(world.services, bob, flow, {}, like=first.execution_id)
