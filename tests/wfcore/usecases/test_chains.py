"""Chains: every completion starts once, whoever fires, and never without saying why."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial

import pytest

from wfcore.errors import InvalidDefinition, StoreUnavailable
from wfcore.model.access import OPERATOR, Permission
from wfcore.model.execution import ExecutionStatus, TriggerSource
from wfcore.model.trigger import Chain, Refusal, Schedule, TriggerState
from wfcore.model.workflow import Variable
from wfcore.time import MINUTE, SECOND
from wfcore.usecases.executions import executions, redriving
from wfcore.usecases.upkeep import sweeping
from wfcore.usecases.workflows import workflows

from .conftest import World, code
from .triggering import (
    HOURLY,
    NEXT_HOUR,
    PAGE,
    complete,
    run_one,
    runs_of,
    shown,
    skipped,
    to,
)


async def test_a_chain_starts_its_workflow_after_the_delay(world: World) -> None:
    """Not before the delay is over, once, as the workflow's owner's. CH-1."""
    ann, bob = await world.account(), await world.account("bob@example.org")
    first = await world.workflow(ann, code("a"), name="first")
    then = await world.workflow(ann, code("b"), name="then", triggers=(Chain("first", 60),))
    await workflows.share_workflow(
        world.services, OPERATOR, first, bob.account.id, Permission.EXECUTE
    )
    cause = await complete(world, bob, first)
    assert (await shown(world, then)).standing.next_at == world.clock.now() + MINUTE
    world.clock.advance(MINUTE - 1)
    assert list(await sweeping.sweep(world.services)) == []
    world.clock.advance(1)
    (fired,) = await sweeping.sweep(world.services)
    (run,) = await runs_of(world, then)
    assert fired.execution_id == run.id
    assert run.trigger_source is TriggerSource.DELAYED_COMPLETION
    assert (run.owner_id, run.chain_depth) == (ann.account.id, 1)
    _, events = await executions.read_events(world.services, ann, run.id, 0)
    assert events[0].data["completedExecutionId"] == cause
    assert list(await sweeping.sweep(world.services)) == []
    one = await shown(world, then)
    assert (one.trigger.runs, one.standing.next_at) == (1, None)


async def test_only_a_completion_sets_a_timer(world: World) -> None:
    """An execution that failed or was cancelled starts nobody. CH-1."""
    ann = await world.account()
    first = await world.workflow(ann, code("a"), name="first")
    then = await world.workflow(ann, code("b"), name="then", triggers=(Chain("first"),))
    await executions.cancel_execution(world.services, ann, await world.start(ann, first))
    await world.start(ann, first)
    lease, _ = await world.take()
    await world.finish(lease, "a", error="no")
    assert list(await sweeping.sweep(world.services)) == []
    assert not await runs_of(world, then)


async def test_two_chains_follow_other_ends_of_one_workflow(world: World) -> None:
    """Each end starts the one chain that follows it; two behind one end are refused. CH-6."""
    ann = await world.account()
    first = await world.workflow(ann, code("a"), name="first")
    ends = (ExecutionStatus.FAILED, ExecutionStatus.CANCELLED)
    chains = (Chain("first", inputs={"of": "well"}), Chain("first", on=ends, inputs={"of": "ill"}))
    then = await world.workflow(
        ann, code("b"), name="then", triggers=chains, variables={"of": Variable("of")}
    )
    await complete(world, ann, first)
    await executions.cancel_execution(world.services, ann, await world.start(ann, first))
    await sweeping.sweep(world.services)
    ids = [run.id for run in await runs_of(world, then)]
    started = [await executions.read_execution(world.services, ann, id) for id in ids]
    assert sorted(str(run.variables["of"]) for run in started) == ["ill", "well"]
    with pytest.raises(InvalidDefinition, match=r"repeats triggers\[0\]"):
        await world.workflow(
            ann,
            code("b"),
            name="both",
            triggers=(Chain("first"), Chain(first, on=(*ends, ExecutionStatus.COMPLETED))),
        )


async def test_a_completion_wakes_the_sweeper_only_where_a_timer_was_set(world: World) -> None:
    """The wake-up of a chain is pushed; other completions wake nobody. CH-1."""
    ann = await world.account()
    first = await world.workflow(ann, code("a"), name="first")
    await complete(world, ann, first)
    assert ("timer", None) not in world.hints.told
    await world.workflow(ann, code("b"), name="then", triggers=(Chain("first", 7),))
    await complete(world, ann, first)
    assert ("timer", None) in world.hints.told
    assert await sweeping.next_deadline(world.services) == world.clock.now() + 7 * SECOND


@contextmanager
def only_one_commit(world: World, kind: type) -> Iterator[None]:
    """The store dies right after its next commit."""
    commit, commits = kind.commit, []  # type: ignore[attr-defined]

    async def only_one(unit: object) -> None:
        if commits:
            raise StoreUnavailable
        commits.append(unit)
        await commit(unit)

    with pytest.MonkeyPatch.context() as patch, suppress(StoreUnavailable):
        patch.setattr(kind, "commit", only_one)
        yield


async def unit_type(world: World) -> type:
    async with world.services.store.unit() as unit:
        return type(unit)


async def test_a_completion_and_its_timer_are_one_commit(world: World) -> None:
    """A server that dies right after the commit of a completion has set the timer. CH-1."""
    ann = await world.account()
    first = await world.workflow(ann, code("a"), name="first")
    then = await world.workflow(ann, code("b"), name="then", triggers=(Chain("first", 9),))
    run_id = await world.start(ann, first)
    lease, _ = await world.take()
    with only_one_commit(world, await unit_type(world)):
        await world.finish(lease, "a")
    run = await executions.read_execution(world.services, ann, run_id)
    assert run.status is ExecutionStatus.COMPLETED
    assert (await shown(world, then)).standing.next_at == world.clock.now() + 9 * SECOND


@pytest.mark.parametrize("trigger", [Chain("first"), HOURLY])
async def test_a_start_and_its_timer_are_one_commit(
    world: World, trigger: Chain | Schedule
) -> None:
    """A server that dies right after the commit of a start has consumed its timer. CH-1, SH-1."""
    ann = await world.account()
    first = await world.workflow(ann, code("a"), name="first")
    then = await world.workflow(ann, code("b"), name="then", triggers=(trigger,))
    await complete(world, ann, first)
    to(world, NEXT_HOUR)
    with only_one_commit(world, await unit_type(world)):
        await sweeping.sweep(world.services)
    assert list(await sweeping.sweep(world.services)) == []
    assert len(await runs_of(world, then)) == (await shown(world, then)).trigger.runs == 1


async def test_each_completion_starts_once_whoever_fires(world: World) -> None:
    """Many sweepers at once start one execution for each completion. CH-1."""
    ann = await world.account()
    first = await world.workflow(ann, code("a"), name="first")
    then = await world.workflow(ann, code("b"), name="then", triggers=(Chain("first"),))
    for _ in range(5):
        await complete(world, ann, first)
    fired = await asyncio.gather(*(sweeping.sweep(world.services) for _ in range(8)))
    started = [one.execution_id for ends in fired for one in ends]
    assert len(started) == len(set(started)) == 5
    assert {run.id for run in await runs_of(world, then)} == set(started)
    assert (await shown(world, then)).trigger.runs == 5


async def test_max_runs_counts_starts_in_all(world: World) -> None:
    """After so many starts it is exhausted, also for timers that were pending. CH-3."""
    ann = await world.account()
    first = await world.workflow(ann, code("a"), name="first")
    chain = Chain("first", 10, max_runs=2)
    then = await world.workflow(ann, code("b"), name="then", triggers=(chain,))
    for _ in range(3):
        await complete(world, ann, first)
    world.clock.advance(10 * SECOND)
    fired = await sweeping.sweep(world.services)
    assert [one.refusal for one in fired] == [None, None, Refusal.MAX_RUNS]
    assert len(await runs_of(world, then)) == 2
    assert (await shown(world, then)).standing.state is TriggerState.EXHAUSTED
    await complete(world, ann, first)
    world.clock.advance(10 * SECOND)
    assert await sweeping.next_deadline(world.services) is None
    assert [entry.reason for entry in await skipped(world)] == ["MAX_RUNS"]


async def test_a_chain_that_bites_its_tail_ends(world: World) -> None:
    """After twenty links the next start is refused, and everybody can see why. CH-4."""
    ann = await world.account()
    loop = await world.workflow(ann, code("a"), name="loop", triggers=(Chain("loop"),))
    await complete(world, ann, loop)
    fired = []
    while ends := await sweeping.sweep(world.services):
        fired += ends
        if ends[0].execution_id:
            await run_one(world)
    assert [run.chain_depth for run in await runs_of(world, loop)] == list(range(21))
    assert fired[-1].refusal is Refusal.CHAIN_TOO_DEEP
    (entry,) = await skipped(world)
    assert (entry.reason, entry.account_id) == ("CHAIN_TOO_DEEP", ann.account.id)
    one = await shown(world, loop)
    assert (one.trigger.refusal, one.trigger.runs) == (Refusal.CHAIN_TOO_DEEP, 20)
    await complete(world, ann, loop)
    assert (await sweeping.sweep(world.services))[0].execution_id


async def test_a_redrive_stays_in_its_chain(world: World) -> None:
    """What takes the place of a chained execution is as deep in the chain as that. CH-4."""
    ann = await world.account()
    loop = await world.workflow(ann, code("a"), name="loop", triggers=(Chain("loop"),))
    await complete(world, ann, loop)
    await sweeping.sweep(world.services)
    lease, _ = await world.take()
    await world.finish(lease, "a", error="no")
    old = (await runs_of(world, loop))[-1]
    again = await redriving.redrive(world.services, ann, old.id)
    run = await executions.read_execution(world.services, ann, again.execution_id)
    assert run.chain_depth == old.chain_depth == 1


async def test_a_chain_behind_what_is_not_there_is_refused(world: World) -> None:
    """Unknown, invisible, or one workflow twice: all mistakes at once, nothing stored. CH-2."""
    ann, bob = await world.account(), await world.account("bob@example.org")
    mine = await world.workflow(ann, code("a"), name="mine")
    hidden = await world.workflow(bob, code("a"), name="hidden")
    chains = (Chain("mine"), Chain("hidden"), Chain(hidden), Chain(mine))
    with pytest.raises(InvalidDefinition) as caught:
        await world.workflow(ann, code("b"), name="then", triggers=chains)
    paths = [problem.path for problem in caught.value.problems]
    assert paths == ["triggers[1].workflow", "triggers[2].workflow", "triggers[3]"]
    found = await workflows.list_workflows(world.services, ann, PAGE)
    assert [one.workflow.name for one in found.rows] == ["mine"]


async def test_a_chain_follows_a_name_and_loses_what_it_cannot_see(world: World) -> None:
    """By name also one that was deleted and applied anew; by id while it is visible. CH-2, CH-5."""
    ann, bob = await world.account(), await world.account("bob@example.org")
    first = await world.workflow(ann, code("a"), name="first")
    named = await world.workflow(ann, code("b"), name="named", triggers=(Chain("first"),))
    share = partial(workflows.share_workflow, world.services, OPERATOR)
    await share(first, bob.account.id, Permission.VIEW)
    by_id = await world.workflow(bob, code("c"), name="by id", triggers=(Chain(first),))
    await share(first, bob.account.id, None)
    assert (await shown(world, by_id)).standing.state is TriggerState.BLOCKED
    await complete(world, ann, first)
    fired = {one.workflow_id: one for one in await sweeping.sweep(world.services)}
    assert fired[named].execution_id
    assert fired[by_id].refusal is Refusal.ACCESS_LOST
    await run_one(world)
    await workflows.delete_workflow(world.services, OPERATOR, first)
    assert (await shown(world, named)).standing.state is TriggerState.BLOCKED
    again = await world.workflow(ann, code("a"), name="first")
    assert again != first
    await complete(world, ann, again)
    assert [one.workflow_id for one in await sweeping.sweep(world.services)] == [named]


async def test_a_completion_counts_though_its_workflow_was_deleted(world: World) -> None:
    """What completed before the deletion starts its chain all the same. CH-5."""
    ann = await world.account()
    first = await world.workflow(ann, code("a"), name="first")
    then = await world.workflow(ann, code("b"), name="then", triggers=(Chain(first, 10),))
    await complete(world, ann, first)
    await workflows.delete_workflow(world.services, OPERATOR, first)
    world.clock.advance(10 * SECOND)
    assert [one.workflow_id for one in await sweeping.sweep(world.services)] == [then]
