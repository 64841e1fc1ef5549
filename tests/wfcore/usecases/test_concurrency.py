"""Limits on how many executions of a workflow run at once: never more, in order, none lost."""

import asyncio
from collections import Counter
from random import Random

import pytest

from wfcore.errors import InvalidInput, LimitReached
from wfcore.model.access import OPERATOR
from wfcore.model.approval import DecisionSource
from wfcore.model.execution import Execution, ExecutionStatus, TriggerSource
from wfcore.model.page import PageRequest
from wfcore.model.trigger import Chain, Refusal, Schedule
from wfcore.model.workflow import Concurrency, OnLimit, Variable, VariableType
from wfcore.rules.approval.machine import Approve
from wfcore.rules.execution.machine import EXECUTION
from wfcore.time import HOUR, MINUTE
from wfcore.usecases.approvals import approvals, deciding
from wfcore.usecases.approvals.deciding import Decide
from wfcore.usecases.audit import auditing
from wfcore.usecases.executions import executions, redriving, starting
from wfcore.usecases.executions import worker as running
from wfcore.usecases.executions.idempotency import Idempotency
from wfcore.usecases.executions.worker import Lease
from wfcore.usecases.upkeep import sweeping
from wfcore.usecases.workflows import workflows

from .conftest import World, code, review

S = ExecutionStatus
ONE = Concurrency(1)
SKIP = Concurrency(1, on_limit=OnLimit.SKIP)
CUSTOMER = {"customer": Variable("customer", VariableType.OBJECT)}
BY_CUSTOMER = Concurrency(1, "{{ variables.customer.id }}")
ALL = PageRequest(1, 500)


async def everything(world: World) -> dict[str, Execution]:
    found = await executions.list_executions(world.services, OPERATOR, ALL)
    return {run.id: run for run in found.rows}


async def claimed(world: World, worker: str = "w1", most: int = 9) -> list[str]:
    return [lease.execution_id for lease in await running.claim(world.services, worker, most)]


async def test_the_next_one_comes_when_one_has_ended(world: World) -> None:
    """With limit 1 ten starts run one after another, in the order of their acceptance. CC-1."""
    ann = await world.account()
    flow = await world.workflow(ann, code("a"), concurrency=ONE)
    started = []
    for _ in range(10):
        started.append(await world.start(ann, flow))
        world.clock.advance(1)
    for id in started:
        lease, _ = await world.take()
        assert lease.execution_id == id
        assert not await claimed(world, "w2")
        await world.finish(lease, "a")
    assert all(run.status is S.COMPLETED for run in (await everything(world)).values())


async def test_without_a_limit_there_is_no_group(world: World) -> None:
    """An execution of a workflow without `concurrency` is in no group. CC-1."""
    ann = await world.account()
    id = await world.start(ann, await world.workflow(ann, code("a")))
    assert (await everything(world))[id].concurrency_group is None


async def test_a_key_makes_groups(world: World) -> None:
    """Executions wait only for those with the same value of the key, whatever its type. CC-3."""
    ann = await world.account()
    flow = await world.workflow(ann, code("a"), concurrency=BY_CUSTOMER, variables=CUSTOMER)

    async def start(customer: object) -> str:
        inputs = {"customer": {"id": customer}}
        started = await starting.start_execution(world.services, ann, flow, inputs)  # type: ignore[arg-type]
        world.clock.advance(1)
        return started.execution_id

    first, again, other = await start("x"), await start("x"), await start("y")
    one, listed = await start(1), await start([1])
    assert await claimed(world) == [first, other, one, listed]
    stored = (await everything(world))[again]
    assert stored.concurrency_group is not None
    assert "x" not in stored.concurrency_group


async def test_a_key_without_a_value_is_refused(world: World) -> None:
    """Where the key cannot be evaluated nothing is stored, and the answer names it. CC-3."""
    ann = await world.account()
    flow = await world.workflow(ann, code("a"), concurrency=BY_CUSTOMER, variables=CUSTOMER)
    with pytest.raises(InvalidInput, match=r"concurrency\.key: .*customer"):
        await world.start(ann, flow)
    assert not await everything(world)


async def test_waiting_for_people_and_interrupted_hold_the_place(world: World) -> None:
    """From the first claim to the end, whatever lies between. CC-2."""
    ann = await world.account()
    flow = await world.workflow(ann, code("a"), review(), code("b"), concurrency=ONE)
    first = await world.start(ann, flow)
    world.clock.advance(1)
    second = await world.start(ann, flow)
    lease, _ = await world.take()
    await world.finish(lease, "a")
    assert (await everything(world))[first].status is S.AWAITING_APPROVAL
    assert not await claimed(world)
    (approval,) = await approvals.approvals_of(world.services, ann, first)
    yes = Decide(approval.id, Approve(), DecisionSource.API)
    await deciding.decide_approval(world.services, ann, yes)
    lease, _ = await world.take()
    assert lease.execution_id == first
    world.clock.advance(MINUTE)
    await sweeping.sweep(world.services)
    assert (await everything(world))[first].status is S.INTERRUPTED
    assert not await claimed(world)
    world.clock.advance(5 * MINUTE)
    await sweeping.sweep(world.services)
    assert (await everything(world))[first].status is S.FAILED
    assert await claimed(world) == [second]


async def test_cancelling_gives_the_place_back(world: World) -> None:
    """Of the running one and of those that wait. CC-2."""
    ann = await world.account()
    flow = await world.workflow(ann, code("a"), concurrency=ONE)
    ids = []
    for _ in range(4):
        ids.append(await world.start(ann, flow))
        world.clock.advance(1)
    assert await claimed(world) == ids[:1]
    for id in (ids[1], ids[0]):
        await executions.cancel_execution(world.services, ann, id)
    assert await claimed(world) == ids[2:3]


async def test_another_limit_holds_at_once(world: World) -> None:
    """Applied anew with more room more come in, without a limit all do. CC-5."""
    ann = await world.account()
    flow = await world.workflow(ann, code("a"), concurrency=ONE)
    for _ in range(6):
        await world.start(ann, flow)
    assert len(await claimed(world)) == 1
    await world.workflow(ann, code("b"), concurrency=Concurrency(3))
    assert ("runner", None) in world.hints.told
    assert len(await claimed(world)) == 2
    await world.workflow(ann, code("b"))
    assert len(await claimed(world, "w2")) == 3


async def test_a_full_workflow_keeps_no_other_from_running(world: World) -> None:
    """Neither another workflow of the account nor another account waits. CC-2."""
    ann, bob = await world.account(), await world.account("bob@example.org")
    flow = await world.workflow(ann, code("a"), concurrency=ONE)
    for _ in range(20):
        await world.start(ann, flow)
    assert len(await claimed(world)) == 1
    mine = await world.start(ann, await world.workflow(ann, code("a"), name="other"))
    his = await world.start(bob, await world.workflow(bob, code("a"), name="his"))
    assert set(await claimed(world)) == {mine, his}


# Skipping


async def test_a_full_workflow_that_skips_refuses(world: World) -> None:
    """A start by API, hand or webhook is a conflict that names the limit; nothing stored. CC-4."""
    ann = await world.account()
    flow = await world.workflow(ann, code("a"), concurrency=SKIP)
    once = Idempotency("key", "print")
    first = await world.start(ann, flow, idempotency=once)
    for source in (TriggerSource.OPEN_API, TriggerSource.MANUAL):
        with pytest.raises(LimitReached, match="allows 1 execution at once"):
            await world.start(ann, flow, source=source, idempotency=Idempotency("new", "x"))
    assert list(await everything(world)) == [first]
    again = await starting.start_execution(world.services, ann, flow, {}, idempotency=once)
    assert (again.execution_id, again.replayed) == (first, True)
    lease, _ = await world.take()
    await world.finish(lease, "a")
    assert await world.start(ann, flow, idempotency=Idempotency("new", "x")) != first


async def test_of_racing_starts_only_as_many_are_stored_as_fit(world: World) -> None:
    """However many come at once: exactly the limit is accepted, the others are refused. CC-4."""
    ann = await world.account()
    limit = Concurrency(3, on_limit=OnLimit.SKIP)
    flow = await world.workflow(ann, code("a"), concurrency=limit)
    starts = (world.start(ann, flow) for _ in range(12))
    ends = await asyncio.gather(*starts, return_exceptions=True)
    assert sum(isinstance(one, str) for one in ends) == 3
    assert sum(isinstance(one, LimitReached) for one in ends) == 9
    assert len(await everything(world)) == 3


async def test_triggers_that_meet_a_full_workflow_are_skipped(world: World) -> None:
    """Schedule and chain start nothing then, with an audit entry; no start counts. CC-4."""
    ann = await world.account()
    first = await world.workflow(ann, code("a"), name="first")
    flow = await world.workflow(
        ann,
        code("b"),
        concurrency=SKIP,
        triggers=(Schedule("0 * * * *"), Chain("first", max_runs=1)),
    )
    held = await world.start(ann, flow)
    await world.start(ann, first)
    for lease in await running.claim(world.services, "w1", 9):
        await running.begin(world.services, lease)
        if lease.execution_id != held:
            await world.finish(lease, "a")
    world.clock.advance(HOUR - world.clock.now() % HOUR)
    fired = await sweeping.sweep(world.services)
    assert [one.refusal for one in fired] == [Refusal.LIMIT_REACHED] * 2
    entries = await auditing.read_audit(world.services, world.clock.now(), None, 99)
    assert [entry.reason for entry in entries if entry.event == "trigger.fire"] == [
        "LIMIT_REACHED",
        "LIMIT_REACHED",
    ]
    found = await workflows.read_workflow(world.services, ann, flow)
    assert [one.trigger.runs for one in found.triggers] == [0, 0]
    assert list(await everything(world)).count(held) == 1


async def test_a_redrive_keeps_the_limit_of_today(world: World) -> None:
    """It queues up like a start, by the limit of the newest definition. CC-5."""
    ann = await world.account()
    flow = await world.workflow(ann, code("a"))
    old = await world.start(ann, flow)
    await executions.cancel_execution(world.services, ann, old)
    await world.workflow(ann, code("a"), concurrency=SKIP)
    first = await world.start(ann, flow)
    with pytest.raises(LimitReached):
        await redriving.redrive(world.services, ann, old)
    await executions.cancel_execution(world.services, ann, first)
    again = await redriving.redrive(world.services, ann, old)
    assert (await everything(world))[again.execution_id].concurrency_group == flow


@pytest.mark.parametrize("source", [TriggerSource.OPEN_API, TriggerSource.MANUAL])
async def test_redriving_an_interrupted_execution_ends_it(
    world: World, source: TriggerSource
) -> None:
    """It is FAILED at once: not resumed beside its successor, and its place is free. EX-17."""
    ann = await world.account()
    flow = await world.workflow(ann, code("a"), concurrency=SKIP)
    old = await world.start(ann, flow, source=source)
    await world.take()
    world.clock.advance(MINUTE)
    assert await sweeping.recover(world.services) == 1
    again = await redriving.redrive(world.services, ann, old)
    ended = (await everything(world))[old]
    assert ended.status is S.FAILED
    await sweeping.sweep(world.services)
    assert await claimed(world, "w2") == [again.execution_id]


# Everything at once


@pytest.mark.parametrize("seed", range(4))
async def test_whatever_happens_no_group_is_over_its_limit_and_all_comes_to_an_end(
    world: World, seed: int
) -> None:
    """
    Starts, ends, failures, cancellations, workers that die, other limits, in any order: never
    more than the limit hold a place, and in the end every execution has ended. CC-1, CC-2.
    """
    chance = Random(seed)
    ann, bob = await world.account(), await world.account("bob@example.org")
    limits = {}
    for name, who in (("x", ann), ("y", bob)):
        key = chance.choice((None, "{{ variables.k }}"))
        limit = Concurrency(chance.randint(1, 3), key)
        k = {"k": Variable("k", has_default=True, default="1")}
        limits[await world.workflow(who, code("a"), name=name, concurrency=limit, variables=k)] = (
            limit.limit,
            who,
        )
    leases: list[Lease] = []

    async def start() -> None:
        flow, (_, who) = chance.choice(list(limits.items()))
        source = chance.choice((TriggerSource.OPEN_API, TriggerSource.MANUAL))
        inputs = {"k": chance.choice("12")}
        await starting.start_execution(world.services, who, flow, inputs, source=source)

    async def claim() -> None:
        worker = chance.choice(("w1", "w2"))
        taken = list(await running.claim(world.services, worker, chance.randint(1, 3)))
        for lease in taken:
            await running.begin(world.services, lease)
        leases.extend(taken)

    async def finish() -> None:
        if leases:
            lease = leases.pop(chance.randrange(len(leases)))
            end = chance.choice(({}, {"error": "no"}))
            await world.finish(lease, "a", **end)

    async def cancel() -> None:
        runs = [run for run in (await everything(world)).values() if run.completed_at is None]
        if runs:
            run = chance.choice(runs)
            await executions.cancel_execution(world.services, OPERATOR, run.id)
            leases[:] = [one for one in leases if one.execution_id != run.id]

    async def crash() -> None:
        leases.clear()
        world.clock.advance(chance.choice((MINUTE, 6 * MINUTE)))
        await sweeping.sweep(world.services)

    acts = [start] * 6 + [claim] * 4 + [finish] * 4 + [cancel, crash]
    for _ in range(90):
        await chance.choice(acts)()
        world.clock.advance(1)
        await _limits_hold(world, {flow: limit for flow, (limit, _) in limits.items()})
    while any(run.status not in EXECUTION.final for run in (await everything(world)).values()):
        await crash()
        await claim()
        while leases:
            await finish()


async def _limits_hold(world: World, limits: dict[str, int]) -> None:
    runs = (await everything(world)).values()
    held = Counter(
        (run.workflow_id, run.concurrency_group)
        for run in runs
        if run.fence > 0 and run.status not in EXECUTION.final
    )
    over = {group: count for (flow, group), count in held.items() if count > limits[flow]}
    assert not over
