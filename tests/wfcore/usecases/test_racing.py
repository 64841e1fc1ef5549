"""Races between reads of one unit, met one by one: each rival begins a few turns later."""

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from wfcore.errors import AlreadyDecided, AlreadyFinished, Conflict, LeaseLost, Stale
from wfcore.model.access import OPERATOR, Principal
from wfcore.model.approval import Approval, DecisionSource
from wfcore.model.event import EventKind
from wfcore.model.execution import Execution, ExecutionStatus, TriggerSource
from wfcore.model.page import PageRequest
from wfcore.rules.approval.machine import Approve
from wfcore.time import DAY, MINUTE, SECOND
from wfcore.usecases.approvals import approvals, deciding
from wfcore.usecases.approvals.deciding import Decide
from wfcore.usecases.executions import executions, redriving, starting, worker
from wfcore.usecases.executions.idempotency import Idempotency
from wfcore.usecases.executions.starting import StartReceipt
from wfcore.usecases.upkeep import sweeping

from .conftest import World, code, review
from .test_families import generations

TURNS = range(8)
"""How many turns of the event loop one rival may be behind the other."""


async def race(turns: int, *rivals: Coroutine[Any, Any, Any]) -> list[Any]:
    """What came of *rivals*, each begun *turns* after the one before."""
    tasks: list[asyncio.Task[Any]] = []
    for rival in rivals:
        tasks.append(asyncio.create_task(rival))
        for _ in range(turns):
            await asyncio.sleep(0)
    return await asyncio.gather(*tasks, return_exceptions=True)


@pytest.mark.parametrize("turns", TURNS)
async def test_rivals_with_one_idempotency_key_start_one_execution(world: World, turns: int):
    """Wherever a rival's commit falls between our reads, both get the same execution. IK-1."""
    ann = await world.account()
    workflow = await world.workflow(ann, code("one"))
    key = Idempotency("once", "f" * 64)

    async def start() -> StartReceipt:
        return await starting.start_execution(world.services, ann, workflow, {}, idempotency=key)

    answers = await race(turns, start(), start(), start())
    page = await executions.list_executions(world.services, ann, PageRequest())
    assert {answer.execution_id for answer in answers} == {run.id for run in page.rows}
    assert page.total == 1


async def waiting(world: World, who: Principal) -> Approval:
    """An open approval of an execution that waits for it."""
    run_id = await world.start(who, await world.workflow(who, review(), code("after")))
    await world.take()
    (approval,) = await approvals.approvals_of(world.services, who, run_id)
    return approval


@pytest.mark.parametrize("turns", TURNS)
async def test_a_decision_that_meets_a_cancel_is_late_or_first(world: World, turns: int):
    """Of the two one wins; the other hears that it was late, and nothing else. AP-6, EX-7."""
    ann = await world.account()
    approval = await waiting(world, ann)
    asked = Decide(approval.id, Approve(), DecisionSource.API)
    answers = await race(
        turns,
        deciding.decide_approval(world.services, ann, asked),
        executions.cancel_execution(world.services, ann, approval.execution_id),
    )
    refusals = [answer for answer in answers if isinstance(answer, Exception)]
    assert all(type(refusal) is AlreadyDecided for refusal in refusals)
    run = await executions.read_execution(world.services, ann, approval.execution_id)
    assert run.status is ExecutionStatus.CANCELLED


@pytest.mark.parametrize("turns", TURNS)
async def test_a_sweep_that_meets_a_cancel_goes_on(world: World, turns: int):
    """An approval that expires while its execution is cancelled harms no sweep. AP-4, AP-5."""
    ann = await world.account()
    approval = await waiting(world, ann)
    world.clock.advance(DAY)
    swept, cancelled = await race(
        turns,
        sweeping.sweep(world.services),
        executions.cancel_execution(world.services, ann, approval.execution_id),
    )
    assert swept == []
    assert not isinstance(cancelled, Exception) or isinstance(cancelled, AlreadyFinished)


@pytest.mark.parametrize("turns", TURNS)
async def test_a_timeout_that_meets_an_interruption_starts_nothing(world: World, turns: int):
    """A child found lost while its step's time is looked at counts as interrupted. EX-26."""
    ids = await generations(world, 2, TriggerSource.OPEN_API, timeout_ms=2 * MINUTE)
    await world.take("dead")
    world.clock.advance(2 * MINUTE)
    await race(turns, world.take("alive"), sweeping.sweep(world.services))
    _, events = await executions.read_events(world.services, OPERATOR, ids[1], 0)
    was_lost = EventKind.EXECUTION_INTERRUPTED in [event.kind for event in events]
    world.clock.advance(2 * SECOND)
    assert len(await worker.claim(world.services, "alive", 9)) == (not was_lost)


async def test_a_lease_extended_under_the_sweep_keeps_its_execution(world: World) -> None:
    """A worker that says it lives while the sweep takes it for lost loses nothing. EX-11."""
    ann = await world.account()
    run_id = await world.start(ann, await world.workflow(ann, code("one")))
    await world.services.store.enlist("slow")
    lease, _ = await world.take("slow")
    world.clock.advance(MINUTE)
    async with world.services.store.view() as view:
        (lost,) = await view.executions.abandoned(9)
    assert await worker.heartbeat(world.services, lease.worker, [run_id])
    with pytest.raises(Stale):
        await sweeping._recover(world.services, lost)
    run = await executions.read_execution(world.services, ann, run_id)
    assert (run.status, run.worker) == (ExecutionStatus.RUNNING, "slow")


async def test_a_grace_that_began_anew_is_waited_for(world: World) -> None:
    """An execution interrupted again since the sweep looked has all of its grace. EX-13."""
    ann = await world.account()
    run_id = await world.start(ann, await world.workflow(ann, code("one")))
    lease, _ = await world.take("slow")
    await worker.hand_back(world.services, lease)
    await sweeping._end_grace(world.services, run_id)
    run = await executions.read_execution(world.services, ann, run_id)
    assert run.status is ExecutionStatus.INTERRUPTED


async def test_of_two_who_redrive_what_nobody_has_one_does(world: World) -> None:
    """At one moment, or one after the other; who asks for it alone gets one more. EX-17."""
    ann = await world.account()
    run_id = await world.start(ann, await world.workflow(ann, code("one")))
    lease, _ = await world.take()
    await world.finish(lease, "one", error="broken")

    async def once() -> str | None:
        try:
            return (await redriving.redrive(world.services, ann, run_id, once=True)).execution_id
        except Conflict:
            return None

    ends = [*await asyncio.gather(*(once() for _ in range(4))), await once()]
    (new,) = [id for id in ends if id is not None]
    assert (
        await executions.redriven_as(
            world.services, await executions.read_execution(world.services, ann, run_id)
        )
        == new
    )
    world.clock.advance(1)
    assert (await redriving.redrive(world.services, ann, run_id)).execution_id != new


async def moved(world: World, run_id: str) -> None:
    """Somebody else stores the execution, as it is."""
    async with world.services.store.unit() as unit:
        unit.put(await unit.get(Execution, run_id))
        await unit.commit()


async def test_what_others_stored_of_a_held_execution_is_read(world: World) -> None:
    """A worker goes on from what it stored last, and reads where that is not what is stored now."""
    ann = await world.account()
    run_id = await world.start(ann, await world.workflow(ann, code("one"), code("two")))
    (lease,) = await worker.claim(world.services, "w1", 1)
    await moved(world, run_id)
    assert [job.step_name for job in (await worker.begin(world.services, lease)).jobs] == ["one"]
    await moved(world, run_id)
    assert [job.step_name for job in await world.finish(lease, "one", 1)] == ["two"]
    await moved(world, run_id)
    assert await world.finish(lease, "two", 2) == ()
    assert (await executions.read_result(world.services, ann, run_id)).output == 2


async def test_a_worker_learns_of_a_lost_lease_also_where_it_stores_nothing(world: World) -> None:
    """A report that was recorded before is answered from what is stored, not from memory. EX-16."""
    ann = await world.account()
    run_id = await world.start(ann, await world.workflow(ann, code("one"), code("two")))
    lease, _ = await world.take()
    await world.finish(lease, "one", attempt=1)
    await executions.cancel_execution(world.services, ann, run_id)
    with pytest.raises(LeaseLost):
        await world.finish(lease, "one", attempt=1)
