"""Starts that need no worker: decided in the unit that accepts them, at every door. EX-34."""

from collections.abc import Mapping

import pytest
from attrs import evolve

from tests.support.postgres_server import emptied
from wfcore.errors import StoreUnavailable
from wfcore.model.access import OPERATOR
from wfcore.model.event import Event
from wfcore.model.execution import Execution, TriggerSource
from wfcore.model.execution import ExecutionStatus as S
from wfcore.model.trigger import Chain
from wfcore.model.workflow import ChildStep, Concurrency, DelayStep, Step, Variable
from wfcore.time import HOUR, EpochMs
from wfcore.usecases.executions import executions, redriving, starting
from wfcore.usecases.executions import worker as running
from wfcore.usecases.executions.idempotency import Idempotency
from wfcore.usecases.services import Policy
from wfcore.usecases.upkeep import sweeping
from wfcore.usecases.webhooks import triggering, webhooks
from wfcore.usecases.workflows.backfilling import backfill

from .conftest import World, a_world, code, review
from .test_data_and_switch import data
from .test_trees import each, open_ones, read
from .triggering import HOURLY, NEXT_HOUR, runs_of, shown, to

WAYS: Mapping[str, tuple[Step, ...]] = {
    "ends": (data("a", 1), each([1, 2], data("b", "{{ item }}"))),
    "fails": (data("a", 1), each("{{ steps.a.output }}", data("b"))),
    "asks": (data("a", [{"id": 1}]), review()),
    "sleeps": (DelayStep("nap", 5), data("a", 1)),  # type: ignore[arg-type]
}


async def events_of(world: World, id: str) -> list[Event]:
    async with world.services.store.view() as view:
        return list(await view.events.of_execution(id, 0, 999))


async def done(world: World, alone: bool, *steps: Step) -> tuple[Execution, list[Event], object]:
    """What an execution comes to, by itself or taken by a worker at once."""
    ann = await world.account()
    flow = await world.workflow(ann, *steps)
    with pytest.MonkeyPatch.context() as patch:
        if not alone:
            patch.setattr(starting, "begun_alone", lambda accepted, *_: accepted)
        id = await world.start(ann, flow)
    if not alone:
        (lease,) = await running.claim(world.services, "w1", 1)
        await running.begin(world.services, lease)
    found = evolve(await read(world, ann, id), version=0, fence=0)
    return found, await events_of(world, id), await open_ones(world, ann, id)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("url", ["memory:", None], ids=["memory", "sqlite"])
async def test_it_comes_to_what_a_worker_makes_of_it(way: str, url: str | None, tmp_path) -> None:
    """Record, events and approvals are the same, and nothing is left to claim. EX-34."""
    found = []
    for alone in (True, False):
        async with a_world(url, tmp_path / str(alone)) as world:
            found.append(await done(world, alone, *WAYS[way]))
            assert not await running.claim(world.services, "w2", 5)
    assert found[0] == found[1]


async def test_on_postgresql_too(database: str, tmp_path) -> None:
    """One statement stores the execution with all that belongs to it. EX-34."""
    async with a_world(await emptied(database), tmp_path) as world:
        await test_a_schedule_keeps_how_it_ended(world)
    async with a_world(await emptied(database), tmp_path) as world:
        run, events, asked = await done(world, True, *WAYS["asks"])
        assert (run.status, [*asked]) == (S.AWAITING_APPROVAL, ["review"])
        assert [one.number for one in events] == list(range(1, run.events + 1))
        assert not await running.claim(world.services, "w1", 5)


async def test_one_commit_and_nobody_is_woken(world: World, monkeypatch) -> None:
    """The whole execution is one unit, after which no worker looks for it. EX-34."""
    ann = await world.account()
    flow = await world.workflow(ann, *[data(f"d{n}", n) for n in range(40)])
    world.hints.told.clear()
    id = await world.start(ann, flow)
    run = await read(world, ann, id)
    assert (run.status, run.output, run.version) == (S.COMPLETED, 39, 1)
    assert world.hints.told == [("events", id)]


async def test_a_lost_commit_leaves_nothing(world: World, monkeypatch) -> None:
    """Accepted and ended are one fact: a store that fails knows neither. EX-1, EX-34."""
    ann = await world.account()
    flow = await world.workflow(ann, data("a", 1))
    async with world.services.store.unit() as unit:
        kind = type(unit)

    async def fails(self: object) -> None:
        raise StoreUnavailable

    with monkeypatch.context() as patch:
        patch.setattr(kind, "commit", fails)
        with pytest.raises(StoreUnavailable):
            await world.start(ann, flow)
    assert not await runs_of(world, flow)


async def test_a_repeated_key_gets_the_first_answer(world: World) -> None:
    """Whatever became of the execution meanwhile. IK-1, EX-34."""
    ann = await world.account()
    flow = await world.workflow(ann, data("a", 1))
    key = Idempotency("k", "body")
    start = starting.start_execution
    first = await start(world.services, ann, flow, {}, idempotency=key)
    again = await start(world.services, ann, flow, {}, idempotency=key)
    assert again == evolve(first, replayed=True)
    assert len(await runs_of(world, flow)) == 1


async def test_a_webhook_starts_it_too(world: World) -> None:
    """And its delivery names the execution that has ended. WH-20, EX-34."""
    ann = await world.account()
    flow = await world.workflow(ann, data("a", "{{ variables.n }}"), variables={"n": Variable("n")})
    await world.key(ann.account)
    async with world.services.store.view() as view:
        (key,) = await view.keys.of_account(ann.account.id)
    hook = await webhooks.create_webhook(
        world.services, ann, webhooks.NewWebhook(flow, "hook", key.id)
    )
    started = await triggering.trigger_webhook(world.services, hook.id, {"n": "7"})
    run = await read(world, ann, started.execution_id)
    assert (run.status, run.output, run.trigger_source) == (S.COMPLETED, "7", TriggerSource.WEBHOOK)


async def test_a_schedule_keeps_how_it_ended(world: World) -> None:
    """In the unit that fires: one start is counted, and its result is kept. SH-10, EX-34."""
    ann = await world.account()
    once = evolve(HOURLY, pause_after=1)
    flow = await world.workflow(ann, *WAYS["fails"], triggers=(once,))
    to(world, NEXT_HOUR)
    await sweeping.sweep(world.services)
    (run,) = await runs_of(world, flow)
    one = (await shown(world, flow)).trigger
    assert (run.status, one.last_result, one.last_execution_id) == (S.FAILED, S.FAILED, run.id)
    assert (one.runs, one.failures, one.last_run_at) == (1, 1, NEXT_HOUR)
    assert one.pause is not None


async def test_a_backfill_does_too(world: World) -> None:
    """Each instant is a start that is counted, and has ended. SH-11, EX-34."""
    ann = await world.account()
    flow = await world.workflow(ann, data("a", 1), triggers=(HOURLY,))
    trigger = (await shown(world, flow)).trigger
    period = EpochMs(NEXT_HOUR - 5 * HOUR), EpochMs(NEXT_HOUR - 2 * HOUR)
    await backfill(world.services, OPERATOR, trigger.id, *period)
    one = (await shown(world, flow)).trigger
    assert [run.status for run in await runs_of(world, flow)] == [S.COMPLETED] * 3
    assert (one.runs, one.last_result) == (3, S.COMPLETED)


async def test_a_chain_goes_on_by_itself(world: World) -> None:
    """Each completion sets the next timer in its own unit. CH-1, EX-34."""
    ann = await world.account()
    first = await world.workflow(ann, data("a", 1), name="first")
    then = await world.workflow(ann, data("b", 2), name="then", triggers=(Chain("first", 7),))
    last = await world.workflow(ann, data("c", 3), name="last", triggers=(Chain("then"),))
    await world.start(ann, first)
    world.clock.advance(7_000)
    await sweeping.sweep(world.services)
    await sweeping.sweep(world.services)
    runs = [*await runs_of(world, then), *await runs_of(world, last)]
    assert [(run.status, run.chain_depth) for run in runs] == [(S.COMPLETED, 1), (S.COMPLETED, 2)]


async def test_a_redrive_does(world: World) -> None:
    """With what the first one left. EX-17, EX-34."""
    ann = await world.account()
    flow = await world.workflow(ann, data("a", 1), review())
    id = await world.start(ann, flow)
    await executions.cancel_execution(world.services, ann, id)
    again = await redriving.redrive(world.services, ann, id)
    run = await read(world, ann, again.execution_id)
    assert (run.status, list(run.step_results)) == (S.AWAITING_APPROVAL, ["a", "review"])


async def test_a_family_is_left_to_workers(world: World) -> None:
    """A turn is bounded, so the one of a parent does not decide its child's, too. EX-33, EX-34."""
    ann = await world.account()
    await world.workflow(ann, data("a", 5), name="below")
    id = await world.start(ann, await world.workflow(ann, ChildStep("sub", "below")))
    statuses = [(await read(world, ann, id)).status]
    for _ in range(3):
        await world.take()
        statuses.append((await read(world, ann, id)).status)
    assert statuses == [S.PENDING, S.RUNNING, S.RUNNING, S.COMPLETED]


async def test_a_long_start_is_bounded(world: World) -> None:
    """After a turn it is answered, and whoever is free goes on. EX-33, EX-34."""
    world = evolve(world, services=evolve(world.services, policy=Policy(facts_at_once=10)))
    ann = await world.account()
    id = await world.start(ann, await world.workflow(ann, *[data(f"d{n}") for n in range(25)]))
    run = await read(world, ann, id)
    assert (run.status, len(run.step_results), run.worker) == (S.RUNNING, 10, None)
    while (await read(world, ann, id)).status is S.RUNNING:
        await world.take()
    assert (await read(world, ann, id)).completed_steps == 25


async def test_one_of_a_group_waits_for_its_place(world: World) -> None:
    """A claim lets it in, in its order. CC-1, EX-34."""
    ann = await world.account()
    flow = await world.workflow(ann, data("a", 1), concurrency=Concurrency(1))
    id = await world.start(ann, flow)
    assert (await read(world, ann, id)).status is S.PENDING
    await world.take()
    assert (await read(world, ann, id)).status is S.COMPLETED


async def test_what_needs_a_worker_waits_for_it(world: World) -> None:
    """Nothing of it has been decided: PENDING says that nobody works at it. EX-1, EX-34."""
    ann = await world.account()
    id = await world.start(ann, await world.workflow(ann, data("a", 1), code("b")))
    run = await read(world, ann, id)
    assert (run.status, dict(run.step_results), run.due_at) == (S.PENDING, {}, run.accepted_at)
    _, (job,) = await world.take()
    assert job.step_name == "b"
