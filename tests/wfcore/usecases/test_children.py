"""Executions that start one another: one account, one fate, every step in one unit. FL-6, FL-9."""

import asyncio

import pytest

from wfcore.errors import StoreUnavailable
from wfcore.model.access import OPERATOR, Permission, Principal
from wfcore.model.execution import Execution, ExecutionStatus, ReasonCode, TriggerSource, Usage
from wfcore.model.page import PageRequest
from wfcore.model.workflow import (
    ApprovalStep,
    Branch,
    ChildStep,
    Concurrency,
    LoopStep,
    OnLimit,
    ParallelStep,
    Retry,
    Variable,
)
from wfcore.time import HOUR, MINUTE, SECOND
from wfcore.usecases.approvals import approvals
from wfcore.usecases.executions import executions, worker
from wfcore.usecases.upkeep import sweeping
from wfcore.usecases.workflows import workflows
from wfcore.wire.executions import status_view

from .conftest import World, code

S = ExecutionStatus


def sub(name: str = "sub", workflow: str = "child", **more: object) -> ChildStep:
    return ChildStep(name, workflow, **more)  # type: ignore[arg-type]


async def read(world: World, run_id: str) -> Execution:
    return await executions.read_execution(world.services, OPERATOR, run_id)


async def child_of(world: World, run_id: str, key: str = "sub") -> Execution:
    child_id = (await read(world, run_id)).step_results[key].child_id
    assert child_id is not None
    return await read(world, child_id)


async def begun(
    world: World, parent: ChildStep, *child: object, **more: object
) -> tuple[Principal, str]:
    """A parent that waits for its child."""
    ann = await world.account()
    await world.workflow(ann, code("work"), name="child")
    run_id = await world.start(ann, await world.workflow(ann, parent, name="parent"), **more)
    await world.take()
    return ann, run_id


async def test_the_childs_output_is_the_steps(world: World) -> None:
    """Nobody holds the parent meanwhile; with the child's end it is due, and goes on. FL-6."""
    ann, run_id = await begun(world, sub(inputs={"n": 1, "who": "{{ execution.id }}"}))
    parent = await read(world, run_id)
    assert (parent.status, parent.worker, parent.due_at) == (S.RUNNING, None, None)
    child = await child_of(world, run_id)
    assert child.trigger_source is TriggerSource.WORKFLOW
    assert (child.owner_id, child.parent_id, child.parent_step) == (ann.account.id, run_id, "sub")
    assert child.variables == {"n": 1, "who": run_id}
    lease, (job,) = await world.take()
    assert lease.execution_id == child.id
    await world.finish(lease, job.step_name, {"rows": 3})
    parent = await read(world, run_id)
    assert parent.step_results["sub"].output == {"rows": 3}
    assert parent.due_at == world.clock.now()
    assert ("runner", None) in world.hints.told
    await world.take()
    assert (await read(world, run_id)).output == {"rows": 3}


async def test_both_views_lead_to_one_another(world: World) -> None:
    """The step's result names the execution that it started, and that one names its parent."""
    _, run_id = await begun(world, sub())
    child = await child_of(world, run_id)
    assert status_view(await read(world, run_id)).step_results["sub"].execution_id == child.id
    assert status_view(child).parent_execution_id == run_id


async def test_a_child_that_fails_fails_the_step(world: World) -> None:
    """With the child's own words; tried again as often as `retry` says, each time anew. DF-9."""
    _, run_id = await begun(world, sub(retry=Retry(2, SECOND)))
    first = await child_of(world, run_id)
    lease, _ = await world.take()
    await world.finish(lease, "work", error="no luck")
    await world.take()
    world.clock.advance(2 * SECOND)
    await world.take()
    second = await child_of(world, run_id)
    assert second.id != first.id
    lease, _ = await world.take()
    await world.finish(lease, "work", error="no luck again")
    await world.take()
    run = await read(world, run_id)
    assert run.status is S.FAILED
    said = f"execution {second.id} failed: Step 'work' failed: no luck again"
    assert run.error == f"Step 'sub' failed: {said}"


async def test_a_cancelled_parent_takes_its_children_along(world: World) -> None:
    """In one unit, down to the last generation, with their questions and their processes. FL-6."""
    ann = await world.account()
    asks = ParallelStep("both", (Branch("x", (ApprovalStep("ask"),)), Branch("y", (code("w"),))))
    await world.workflow(ann, asks, name="grandchild")
    await world.workflow(ann, sub("deeper", "grandchild"), name="child")
    run_id = await world.start(ann, await world.workflow(ann, sub(), name="parent"))
    for _ in range(3):
        await world.take()
    child = await child_of(world, run_id)
    grandchild = await child_of(world, child.id, "deeper")
    assert grandchild.in_flight == ("w",)
    world.hints.told.clear()
    await executions.cancel_execution(world.services, ann, run_id)
    for one in (child, grandchild):
        ended = await read(world, one.id)
        assert ended.status is S.CANCELLED
        assert ended.status_reason is not None
        assert ended.status_reason.code is ReasonCode.PARENT_CANCELLED
    (approval,) = await approvals.approvals_of(world.services, ann, grandchild.id)
    assert approval.status == "CANCELLED"
    assert ("stop", grandchild.id) in world.hints.told
    assert ("events", child.id) in world.hints.told


async def test_a_cancelled_child_fails_its_step(world: World) -> None:
    """Who cancels the child alone is told apart from the parent, which has a failed step."""
    ann, run_id = await begun(world, sub(continue_on_error=True))
    child = await child_of(world, run_id)
    await executions.cancel_execution(world.services, ann, child.id)
    await world.take()
    run = await read(world, run_id)
    assert run.status is S.COMPLETED
    assert run.step_results["sub"].error == f"execution {child.id} was cancelled"


async def test_a_step_that_runs_out_of_time_ends_its_child(world: World) -> None:
    """Due at the timeout though nobody holds it; nobody waits for the child any more. FL-7."""
    _, run_id = await begun(world, sub(timeout_ms=HOUR))
    child = await child_of(world, run_id)
    world.clock.advance(HOUR)
    leases = await worker.claim(world.services, "w1", 9)
    for lease in leases:
        if lease.execution_id == run_id:
            await worker.begin(world.services, lease)
    assert (await read(world, run_id)).status_reason.code is ReasonCode.TIMEOUT  # type: ignore[union-attr]
    assert (await read(world, child.id)).status is S.CANCELLED


async def test_a_failure_beside_it_ends_the_child(world: World) -> None:
    """A stopped step waits for nobody: its execution is CANCELLED in the same unit. FL-4."""
    ann = await world.account()
    await world.workflow(ann, code("work"), name="child")
    both = ParallelStep("both", (Branch("a", (code("a"),)), Branch("b", (sub(),))))
    run_id = await world.start(ann, await world.workflow(ann, both, name="parent"))
    lease, _ = await world.take()
    child = await child_of(world, run_id)
    await world.finish(lease, "a", error="no")
    assert (await read(world, child.id)).status is S.CANCELLED


@pytest.mark.parametrize(
    ("child", "said"),
    [
        (sub(workflow="nobody's"), "there is no workflow 'nobody's'"),
        (sub(inputs={"n": "text"}), "inputs.n: must be a number"),
        (
            sub(inputs={"n": "{{ variables.x.y }}"}),
            "inputs: template 'variables.x.y': x is unknown",
        ),
    ],
)
async def test_what_cannot_be_started_fails_the_step(
    world: World, child: ChildStep, said: str
) -> None:
    """With the reason in its error, and nothing is left behind. FL-9."""
    ann = await world.account()
    number = Variable("n", type="number")  # type: ignore[arg-type]
    await world.workflow(ann, code("work"), name="child", variables={"n": number})
    unset = {"x": Variable("x")}
    run_id = await world.start(
        ann, await world.workflow(ann, child, name="parent", variables=unset)
    )
    for lease in await worker.claim(world.services, "w1", 9):
        await worker.begin(world.services, lease)
    for lease in await worker.claim(world.services, "w1", 9):
        await worker.begin(world.services, lease)
    run = await read(world, run_id)
    assert (run.status, run.error) == (S.FAILED, f"Step 'sub' failed: {said}")
    found = await executions.list_executions(world.services, OPERATOR, PageRequest(1, 9))
    assert [one.id for one in found.rows] == [run_id]


async def test_who_starts_itself_by_its_id_is_found_at_run_time(world: World) -> None:
    """The checker knows a workflow's name, and not its id. FL-9."""
    ann = await world.account()
    me = await world.workflow(ann, code("work"), name="parent")
    await world.workflow(ann, sub(workflow=me), name="parent")
    run_id = await world.start(ann, me)
    while leases := await worker.claim(world.services, "w1", 9):
        for lease in leases:
            await worker.begin(world.services, lease)
    said = "workflow 'parent' would start itself: parent > parent"
    assert (await read(world, run_id)).error == f"Step 'sub' failed: {said}"


async def test_a_circle_is_found_at_run_time(world: World) -> None:
    """Two workflows that start one another: the second start of the first is refused. FL-9."""
    ann = await world.account()
    first = await world.workflow(ann, sub(workflow="second"), name="first")
    await world.workflow(ann, sub(workflow="first"), name="second")
    run_id = await world.start(ann, first)
    while leases := await worker.claim(world.services, "w1", 9):
        for lease in leases:
            await worker.begin(world.services, lease)
    run = await read(world, run_id)
    assert run.status is S.FAILED
    assert "workflow 'first' would start itself: first > second > first" in (run.error or "")


async def test_the_depth_is_limited(world: World) -> None:
    """Nine generations are one too many, and the chain ends with the reason. FL-9."""
    ann = await world.account()
    ids = [await world.workflow(ann, sub(workflow=f"w{n + 1}"), name=f"w{n}") for n in range(9)]
    await world.workflow(ann, code("work"), name="w9")
    run_id = await world.start(ann, ids[0])
    while leases := await worker.claim(world.services, "w1", 9):
        for lease in leases:
            await worker.begin(world.services, lease)
    run = await read(world, run_id)
    assert run.status is S.FAILED
    assert "executions start one another at most 8 deep" in (run.error or "")
    found = await executions.list_executions(world.services, OPERATOR, PageRequest(1, 50))
    assert found.total == 8


async def test_the_author_answers_for_what_is_started(world: World) -> None:
    """A workflow of the parent's owner, or by id what he may execute; the starter needs nothing."""
    ann, bob = await world.account(), await world.account("bob@example.org")
    eve = await world.account("eve@example.org")
    hers = await world.workflow(eve, code("work"), name="child")
    parent = await world.workflow(ann, sub(workflow=hers), name="parent")
    await workflows.share_workflow(
        world.services, OPERATOR, parent, bob.account.id, Permission.EXECUTE
    )
    refused = await world.start(bob, parent)
    for _ in range(2):
        await world.take()
    assert f"there is no workflow '{hers}'" in ((await read(world, refused)).error or "")
    await workflows.share_workflow(
        world.services, OPERATOR, hers, ann.account.id, Permission.EXECUTE
    )
    run_id = await world.start(bob, parent)
    await world.take()
    child = await child_of(world, run_id)
    assert (child.owner_id, child.workflow_owner_id) == (bob.account.id, eve.account.id)


async def test_a_full_workflow_refuses_its_child(world: World) -> None:
    """`onLimit: skip` holds at this door, too: the step fails and says so. CC-4."""
    full = Concurrency(1, on_limit=OnLimit.SKIP)
    ann = await world.account()
    child = await world.workflow(ann, code("work"), name="child", concurrency=full)
    await world.start(ann, child)
    run_id = await world.start(ann, await world.workflow(ann, sub(), name="parent"))
    for _ in range(2):
        for lease in await worker.claim(world.services, "w1", 9):
            await worker.begin(world.services, lease)
    assert "The workflow allows 1 execution at once" in ((await read(world, run_id)).error or "")


async def test_secrets_do_not_cross_over(world: World) -> None:
    """Passed down they are secrets there; what comes up is masked. SC-1."""
    ann = await world.account()
    key = {"key": Variable("key", secret=True, has_default=True, default="child-secret")}
    await world.workflow(ann, code("work"), name="child", variables=key)
    token = {"token": Variable("token", secret=True, has_default=True, default="hunter2hunter2")}
    passes = sub(inputs={"plain": "x", "auth": "{{ variables.token }}"})
    workflow = await world.workflow(ann, passes, name="parent", variables=token)
    run_id = await world.start(ann, workflow)
    await world.take()
    child = await child_of(world, run_id)
    assert child.secrets == ("auth", "key")
    lease, _ = await world.take()
    await world.finish(lease, "work", {"said": "with child-secret"})
    output = (await read(world, run_id)).step_results["sub"].output
    assert output == {"said": "with ***"}


async def test_what_children_consume_is_the_parents_too(world: World) -> None:
    """Tokens and cost of a child are its step's, so that a budget of the parent sees them."""
    _, run_id = await begun(world, sub())
    lease, _ = await world.take()
    await world.finish(lease, "work", usage=Usage(10, 5, "0.25"))
    assert (await read(world, run_id)).step_results["sub"].usage == Usage(10, 5, "0.25")


async def test_an_interrupted_child_is_resumed(world: World) -> None:
    """Where its parent is: it is begun again, and the parent waits. EX-12, EX-24."""
    _, run_id = await begun(world, sub(), source=TriggerSource.MANUAL)
    await world.take("w2")
    world.clock.advance(MINUTE)
    await sweeping.sweep(world.services)
    lease, (job,) = await world.take("w3")
    assert job.attempt == 2
    await world.finish(lease, "work", "late")
    await world.take()
    assert (await read(world, run_id)).output == "late"


async def test_an_interrupted_parent_hears_of_its_child(world: World) -> None:
    """The worker died beside a child that then ends: its output is on record when resumed."""
    ann = await world.account()
    await world.workflow(ann, code("work"), name="child")
    both = ParallelStep("both", (Branch("a", (code("a"),)), Branch("b", (sub(),))))
    workflow = await world.workflow(ann, both, name="parent")
    run_id = await world.start(ann, workflow, source=TriggerSource.MANUAL)
    await world.take("w1")
    await world.services.store.enlist("w2")
    child, _ = await world.take("w2")
    await world.services.store.extend("w2", [child.execution_id], HOUR)
    world.clock.advance(MINUTE)
    await sweeping.recover(world.services)
    assert (await read(world, run_id)).status is S.INTERRUPTED
    await world.finish(child, "work", "of the child")
    run = await read(world, run_id)
    assert (run.status, run.step_results["sub"].output) == (S.INTERRUPTED, "of the child")


@pytest.mark.parametrize("order", ["cancel first", "end first"])
async def test_a_cancel_and_an_end_race(world: World, order: str) -> None:
    """Of the parent's cancel and the child's end both are stored, in either order, and agree."""
    ann, run_id = await begun(world, sub())
    lease, _ = await world.take()
    ends = [
        executions.cancel_execution(world.services, ann, run_id),
        worker.complete_step(world.services, lease, "work", world.done("x")),
    ]
    if order == "end first":
        ends.reverse()
    await asyncio.gather(*ends, return_exceptions=True)
    run, child = await read(world, run_id), await child_of(world, run_id)
    assert run.status is S.CANCELLED
    done = child.status is S.COMPLETED
    assert (run.step_results["sub"].status == "COMPLETED") is done
    assert done or child.status is S.CANCELLED


async def test_many_children_that_end_at_once_all_reach_the_parent(world: World) -> None:
    """A loop of children: however they collide, every end is told once. FL-6."""
    ann = await world.account()
    await world.workflow(ann, code("work"), name="child")
    loop = LoopStep("each", list(range(12)), "n", (sub(),), max_parallel=12)
    run_id = await world.start(ann, await world.workflow(ann, loop, name="parent"))
    await world.take()
    leases = [lease for n in range(4) for lease in await worker.claim(world.services, f"w{n}", 4)]
    assert len(leases) == 12
    for lease in leases:
        await worker.begin(world.services, lease)

    async def end(lease: worker.Lease) -> None:
        while True:
            try:
                done = world.done(lease.execution_id)
                await worker.complete_step(world.services, lease, "work", done)
                return
            except StoreUnavailable:
                continue

    await asyncio.gather(*map(end, leases))
    await world.take()
    run = await read(world, run_id)
    assert run.status is S.COMPLETED
    ids = [one.child_id for key, one in run.step_results.items() if key.endswith(".sub")]
    assert run.output == ids
