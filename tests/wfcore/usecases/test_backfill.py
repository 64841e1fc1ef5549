"""Backfills: a schedule is started for instants that passed, each at most once. SH-11."""

import asyncio
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wfcore.errors import Forbidden, InvalidInput, NotFound
from wfcore.model.access import OPERATOR, Permission, Principal, Tier
from wfcore.model.execution import TriggerSource
from wfcore.model.trigger import Chain, Refusal
from wfcore.model.workflow import Concurrency, OnLimit
from wfcore.rules.triggers.schedule import MOST_BACKFILLED, instants
from wfcore.time import DAY, HOUR, MINUTE, EpochMs
from wfcore.usecases.accounts import accounts
from wfcore.usecases.audit import auditing
from wfcore.usecases.executions import executions
from wfcore.usecases.upkeep import sweeping
from wfcore.usecases.workflows import triggers, workflows
from wfcore.usecases.workflows.backfilling import BackfillResult, backfill, preview_backfill

from .conftest import World, code
from .triggering import HOURLY, NEXT_HOUR, runs_of, shown, to

PERIOD = EpochMs(NEXT_HOUR - 5 * HOUR), EpochMs(NEXT_HOUR - 2 * HOUR)
WITHIN = [NEXT_HOUR - 5 * HOUR, NEXT_HOUR - 4 * HOUR, NEXT_HOUR - 3 * HOUR]


async def scheduled(world: World, **more: object) -> tuple[Principal, str, str]:
    """An account, its workflow with a schedule, and the trigger."""
    ann = await world.account()
    flow = await world.workflow(ann, code("a"), triggers=(HOURLY,), **more)
    return ann, flow, (await shown(world, flow)).trigger.id


async def asked(world: World, trigger: str) -> Sequence[BackfillResult]:
    return await backfill(world.services, OPERATOR, trigger, *PERIOD)


async def test_each_instant_of_the_period_is_started(world: World) -> None:
    """From its beginning on and before its end, as the schedule would; the audit log says who."""
    _, flow, trigger = await scheduled(world)
    planned = await preview_backfill(world.services, OPERATOR, trigger, *PERIOD)
    assert [(one.at, one.execution_id, one.refusal) for one in planned] == [
        (at, None, None) for at in WITHIN
    ]
    assert not await runs_of(world, flow)
    started = await asked(world, trigger)
    runs = await runs_of(world, flow)
    assert {one.execution_id for one in started} == {run.id for run in runs}
    assert {run.trigger_source for run in runs} == {TriggerSource.SCHEDULE}
    assert {run.trigger_id for run in runs} == {trigger}
    _, (first, *_) = await executions.read_events(
        world.services, OPERATOR, started[0].execution_id, 0
    )
    assert first.data["scheduledFor"] == WITHIN[0]
    entries = await auditing.read_audit(world.services, EpochMs(0), None, 1_000)
    (entry,) = [one for one in entries if one.event == "trigger.backfill"]
    assert entry.details == {"from": PERIOD[0], "until": PERIOD[1], "instants": 3}
    assert (await shown(world, flow)).trigger.runs == 3


async def test_nothing_is_started_twice(world: World) -> None:
    """Asked again, and by several at one moment, each instant has one execution."""
    _, flow, trigger = await scheduled(world)
    ends = await asyncio.gather(*(asked(world, trigger) for _ in range(4)))
    again = await asked(world, trigger)
    assert len(await runs_of(world, flow)) == 3
    assert [sum(one.now for one in same) for same in zip(*ends, strict=True)] == [1, 1, 1]
    assert [one.now for one in again] == [False] * 3
    assert len({tuple(one.execution_id for one in end) for end in (*ends, again)}) == 1


async def test_what_the_schedule_started_is_not_started_again(world: World) -> None:
    """An instant that fired is not made up for, and one that was made up for does not fire."""
    _, flow, trigger = await scheduled(world)
    to(world, NEXT_HOUR)
    (fired,) = await sweeping.sweep(world.services)
    to(world, NEXT_HOUR + MINUTE)
    period = EpochMs(NEXT_HOUR), EpochMs(NEXT_HOUR + 1)
    (same,) = await backfill(world.services, OPERATOR, trigger, *period)
    assert (same.execution_id, same.now) == (fired.execution_id, False)
    to(world, NEXT_HOUR + HOUR)
    period = EpochMs(NEXT_HOUR + HOUR - 1), EpochMs(NEXT_HOUR + HOUR)
    assert await backfill(world.services, OPERATOR, trigger, *period) == []
    world.clock.advance(1)
    period = EpochMs(NEXT_HOUR + HOUR), EpochMs(NEXT_HOUR + HOUR + 1)
    (made_up,) = await backfill(world.services, OPERATOR, trigger, *period)
    await sweeping.sweep(world.services)
    assert made_up.now
    assert len(await runs_of(world, flow)) == 2
    assert (await shown(world, flow)).standing.next_at == NEXT_HOUR + 2 * HOUR


async def test_the_conditions_are_those_of_the_schedule(world: World) -> None:
    """Paused, over the plan, or over the limit of executions: it says so, and starts nothing."""
    limit = Concurrency(1, on_limit=OnLimit.SKIP)
    ann, flow, trigger = await scheduled(world, concurrency=limit)
    await triggers.pause_trigger(world.services, OPERATOR, trigger)
    assert {one.refusal for one in await asked(world, trigger)} == {Refusal.PAUSED}
    await triggers.resume_trigger(world.services, OPERATOR, trigger)
    await accounts.set_account(world.services, OPERATOR, ann.account.id, plan=Tier.FREE)
    planned = await preview_backfill(world.services, OPERATOR, trigger, *PERIOD)
    assert {one.refusal for one in planned} == {Refusal.PLAN_LIMIT}
    assert {one.refusal for one in await asked(world, trigger)} == {Refusal.PLAN_LIMIT}
    await accounts.set_account(world.services, OPERATOR, ann.account.id, plan=Tier.PRO)
    found = [one.refusal for one in await asked(world, trigger)]
    assert found == [None, Refusal.LIMIT_REACHED, Refusal.LIMIT_REACHED]
    assert len(await runs_of(world, flow)) == 1


@pytest.mark.parametrize(
    ("since", "until"),
    [
        (PERIOD[1], PERIOD[0]),
        (PERIOD[0], PERIOD[0]),
        (PERIOD[0], EpochMs(NEXT_HOUR)),
        (EpochMs(NEXT_HOUR - 300 * HOUR), PERIOD[1]),
    ],
    ids=["backwards", "empty", "ahead", "too long"],
)
async def test_the_period_is_past_and_bounded(world: World, since: EpochMs, until: EpochMs) -> None:
    """Otherwise the error names the end, and nothing is started, shown or audited."""
    _, flow, trigger = await scheduled(world)
    for call in (preview_backfill, backfill):
        with pytest.raises(InvalidInput, match="until"):
            await call(world.services, OPERATOR, trigger, since, until)
    assert not await runs_of(world, flow)
    entries = await auditing.read_audit(world.services, EpochMs(0), None, 1_000)
    assert not [one for one in entries if one.event == "trigger.backfill"]


async def test_it_needs_edit_and_a_schedule(world: World) -> None:
    """Who may not see the workflow sees no trigger, who may not edit it is refused."""
    ann, flow, trigger = await scheduled(world)
    bob = await world.account("bob@example.org")
    with pytest.raises(NotFound):
        await backfill(world.services, bob, trigger, *PERIOD)
    await workflows.share_workflow(
        world.services, OPERATOR, flow, bob.account.id, Permission.EXECUTE
    )
    with pytest.raises(Forbidden):
        await preview_backfill(world.services, bob, trigger, *PERIOD)
    then = await world.workflow(ann, code("b"), name="then", triggers=(Chain(flow),))
    with pytest.raises(InvalidInput, match="chain"):
        await backfill(world.services, ann, (await shown(world, then)).trigger.id, *PERIOD)


@given(step=st.integers(1, DAY), since=st.integers(0, 10 * DAY), length=st.integers(0, 10 * DAY))
def test_instants_are_those_of_the_schedule_in_the_period(
    step: int, since: int, length: int
) -> None:
    """In order, each once, inside; and all of them, unless there are too many."""
    until = since + length
    found = instants(
        lambda after: EpochMs((after // step + 1) * step), EpochMs(since), EpochMs(until)
    )
    every = range(-(-since // step) * step, until, step)
    assert list(found) == list(every[: MOST_BACKFILLED + 1])
