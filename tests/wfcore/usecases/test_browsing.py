"""What people look for among executions: counts, searches, one with all that belongs to it."""

from decimal import Decimal

import pytest

from wfcore.errors import NotFound
from wfcore.model.access import OPERATOR, Permission
from wfcore.model.execution import ExecutionStatus, TriggerSource, Usage
from wfcore.model.page import PageRequest
from wfcore.ports.records import ExecutionFilter
from wfcore.usecases.accounts import usage
from wfcore.usecases.executions import browsing, executions
from wfcore.usecases.executions.idempotency import Idempotency
from wfcore.usecases.workflows import workflows
from wfcore.usecases.workflows.browsing import read_version
from wfcore.usecases.workflows.versions import list_versions

from .conftest import World, code

S = ExecutionStatus


async def test_counts_are_of_what_the_list_shows(world: World) -> None:
    """Lists and counts have one rule of who sees what, and the same filters. PG-6, AC-4."""
    ann, bob = await world.account(), await world.account("bob@example.org")
    mine, theirs = await world.workflow(ann, code("a")), await world.workflow(bob, code("a"))
    await workflows.share_workflow(
        world.services, OPERATOR, mine, bob.account.id, Permission.EXECUTE
    )
    for who, workflow in ((ann, mine), (bob, mine), (bob, theirs)):
        await world.start(who, workflow)
    for who, where, expected in (
        (ann, ExecutionFilter(), 1),
        (ann, ExecutionFilter(workflow_id=mine), 2),
        (bob, ExecutionFilter(), 2),
        (bob, ExecutionFilter(workflow_id=mine), 1),
        (bob, ExecutionFilter(sources=(TriggerSource.WEBHOOK,)), 0),
        (OPERATOR, ExecutionFilter(), 3),
    ):
        counts = await browsing.count_executions(world.services, who, where)
        found = await executions.list_executions(world.services, who, PageRequest(), where)
        assert (counts[S.PENDING], counts[S.FAILED], found.total) == (expected, 0, expected)


async def test_an_execution_is_found_by_its_id_or_its_key(world: World) -> None:
    """An id, or the idempotency key of the caller; of others nothing is found. IK-1, AC-4."""
    ann, bob = await world.account(), await world.account("bob@example.org")
    workflow = await world.workflow(ann, code("a"))
    id = await world.start(ann, workflow, idempotency=Idempotency("order-1007", "f"))
    for text in (id, "order-1007"):
        assert await browsing.find_execution(world.services, ann, text) == id
        assert await browsing.find_execution(world.services, bob, text) is None
    assert await browsing.find_execution(world.services, ann, "order-1008") is None


async def test_the_definition_is_the_one_that_runs(world: World) -> None:
    """Whatever was applied since, the picture is of the revision that the execution has. XP-3."""
    ann = await world.account()
    workflow = await world.workflow(ann, code("old"))
    id = await world.start(ann, workflow)
    await world.workflow(ann, code("new"))
    whole = await browsing.read_whole(world.services, ann, id)
    assert whole.definition is not None
    assert [step.name for step in whole.definition.steps] == ["old"]
    assert (whole.run.id, whole.redrives) == (id, False)


async def test_who_may_redrive_is_said(world: World) -> None:
    """A failed execution may be redriven by who may start its workflow, and by nobody else."""
    ann, bob = await world.account(), await world.account("bob@example.org")
    workflow = await world.workflow(ann, code("a"))
    await workflows.share_workflow(
        world.services, OPERATOR, workflow, bob.account.id, Permission.EXECUTE
    )
    id = await world.start(bob, workflow)
    await executions.cancel_execution(world.services, bob, id)
    assert (await browsing.read_whole(world.services, bob, id)).redrives
    await workflows.share_workflow(world.services, OPERATOR, workflow, bob.account.id, None)
    assert not (await browsing.read_whole(world.services, bob, id)).redrives
    with pytest.raises(NotFound):
        await browsing.read_whole(world.services, await world.account("eve@example.org"), id)


async def test_some_executions_are_those_that_are_seen(world: World) -> None:
    """What is not there, or not the caller's, is left out; each stands once. AC-4."""
    ann, bob = await world.account(), await world.account("bob@example.org")
    id = await world.start(ann, await world.workflow(ann, code("a")))
    other = await world.start(bob, await world.workflow(bob, code("a")))
    found = await browsing.read_some(world.services, ann, [id, "nothing", other, id])
    ((run, definition, redriven),) = found
    assert definition is not None
    assert (run.id, [step.name for step in definition.steps], redriven) == (id, ["a"], None)


async def test_usage_reads_a_few_executions_at_a_time(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And says so if it did not read all of them. AI-7."""
    monkeypatch.setattr(usage, "LOOKED_AT", 4)
    monkeypatch.setattr(usage, "_AT_ONCE", 2)
    ann = await world.account()
    flow = await world.workflow(ann, code("one"))
    for cut in (False, False, False, False, True):
        await world.start(ann, flow)
        assert (await usage.read_usage(world.services, ann)).cut is cut


async def test_usage_is_added_up_by_workflow_and_model(world: World) -> None:
    """Dearest first; where some of it has no known price, that is said. AI-7."""
    ann = await world.account()
    cheap, dear = [await world.workflow(ann, code("a"), name=name) for name in ("cheap", "dear")]
    for flow, cost in ((cheap, "0.25"), (dear, "0.75"), (cheap, "0.25"), (cheap, None)):
        await world.start(ann, flow)
        lease, _ = await world.take()
        await world.finish(lease, "a", usage=Usage(10, 5, cost))
    assert (await usage.read_usage(world.services, ann)).models == [
        usage.ModelUsage(dear, "dear", "", 10, 5, Decimal("0.75"), False),
        usage.ModelUsage(cheap, "cheap", "", 30, 15, Decimal("0.50"), True),
    ]


async def test_the_newest_versions_come_first(world: World) -> None:
    """As many as are asked for, and no more than there are."""
    ann = await world.account()
    for step in ("one", "two", "three"):
        id = await world.workflow(ann, code(step))
    for limit, newest in ((1, [3]), (2, [3, 2]), (9, [3, 2, 1])):
        found = await list_versions(world.services, id, limit)
        assert [one.revision for one in found] == newest
    with pytest.raises(NotFound, match="Workflow"):
        await list_versions(world.services, "wf_none", 1)
    with pytest.raises(NotFound, match=r"^Workflow not found$"):
        await workflows.delete_workflow(world.services, OPERATOR, "wf_none")


async def test_a_version_is_read_with_the_one_before(world: World) -> None:
    """By those who see the workflow, and by the operator; what there is not is not found."""
    ann, bob = await world.account(), await world.account("bob@example.org")
    for step in ("old", "new"):
        id = await world.workflow(ann, code(step))
    for who in (ann, OPERATOR):
        flow, found, before = await read_version(world.services, who, id, 2)
        assert before is not None
        steps = [one.definition.steps[0].name for one in (before, found)]
        assert (flow.id, steps) == (id, ["old", "new"])
        assert (await read_version(world.services, who, id, 1))[2] is None
    for who, number in ((bob, 1), (ann, 0), (ann, 3)):
        with pytest.raises(NotFound):
            await read_version(world.services, who, id, number)
