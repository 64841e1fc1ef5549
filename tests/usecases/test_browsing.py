"""What people look for among executions: counts, searches, one with all that belongs to it."""

import pytest

from usecases.conftest import World, code, review
from wfcore.errors import NotFound
from wfcore.model.access import Permission
from wfcore.model.execution import ExecutionStatus, TriggerSource
from wfcore.model.page import PageRequest
from wfcore.ports.records import ExecutionFilter
from wfcore.usecases.executions import browsing, executions
from wfcore.usecases.executions.starting import Idempotency
from wfcore.usecases.workflows import workflows

S = ExecutionStatus


async def test_counts_are_of_what_the_list_shows(world: World) -> None:
    """Lists and counts have one rule of who sees what, and the same filters. PG-6, AC-4."""
    ann, bob = await world.account(), await world.account("bob@example.org")
    mine, theirs = await world.workflow(ann, code("a")), await world.workflow(bob, code("a"))
    await workflows.share_workflow(world.services, mine, bob.account.id, Permission.EXECUTE)
    for who, workflow in ((ann, mine), (bob, mine), (bob, theirs)):
        await world.start(who, workflow)
    for who, where, expected in (
        (ann, ExecutionFilter(), 1),
        (ann, ExecutionFilter(workflow_id=mine), 2),
        (bob, ExecutionFilter(), 2),
        (bob, ExecutionFilter(workflow_id=mine), 1),
        (bob, ExecutionFilter(sources=(TriggerSource.WEBHOOK,)), 0),
        (None, ExecutionFilter(), 3),
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
    await workflows.share_workflow(world.services, workflow, bob.account.id, Permission.EXECUTE)
    id = await world.start(bob, workflow)
    await executions.cancel_execution(world.services, bob, id)
    assert (await browsing.read_whole(world.services, bob, id)).redrives
    await workflows.share_workflow(world.services, workflow, bob.account.id, None)
    assert not (await browsing.read_whole(world.services, bob, id)).redrives
    with pytest.raises(NotFound):
        await browsing.read_whole(world.services, await world.account("eve@example.org"), id)


async def test_some_executions_are_those_that_are_seen(world: World) -> None:
    """What is not there, or not the caller's, is left out; each stands once. AC-4."""
    ann, bob = await world.account(), await world.account("bob@example.org")
    id = await world.start(ann, await world.workflow(ann, code("a")))
    other = await world.start(bob, await world.workflow(bob, code("a")))
    found = await browsing.read_some(world.services, ann, [id, "nothing", other, id])
    assert [run.id for run, _, _ in found] == [id]


async def test_the_newest_tell_that_something_changed(world: World) -> None:
    """A start changes what is said of executions; a question what is said of the inbox."""
    ann = await world.account()
    before = await browsing.newest_of(world.services, ann)
    await world.start(ann, await world.workflow(ann, review()))
    started = await browsing.newest_of(world.services, ann)
    await world.take()
    asked = await browsing.newest_of(world.services, ann)
    assert before["executions"] != started["executions"]
    assert before["inbox"] == started["inbox"] != asked["inbox"]
