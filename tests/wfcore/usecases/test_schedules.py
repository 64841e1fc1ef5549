"""Schedules: every instant starts once, whoever fires, and never without saying why."""

import asyncio
from datetime import UTC, datetime

import pytest
from attrs import evolve

from wfcore.errors import InvalidDefinition
from wfcore.model.access import OPERATOR, AccountStatus, Tier
from wfcore.model.execution import TriggerSource
from wfcore.model.trigger import Chain, Missed, Refusal, Schedule, TriggerState
from wfcore.time import DAY, HOUR, MINUTE, SECOND, EpochMs
from wfcore.usecases.accounts import accounts
from wfcore.usecases.executions import executions
from wfcore.usecases.services import Policy
from wfcore.usecases.upkeep import sweeping

from .conftest import World, code
from .triggering import HOURLY, NEXT_HOUR, complete, runs_of, shown, skipped, to


async def test_a_schedule_starts_at_its_instants(world: World) -> None:
    """From the next instant after it was applied, once for each. SH-1."""
    ann = await world.account()
    flow = await world.workflow(ann, code("a"), triggers=(HOURLY,))
    assert ("timer", None) in world.hints.told
    assert await sweeping.next_deadline(world.services) == NEXT_HOUR
    to(world, NEXT_HOUR - 1)
    assert list(await sweeping.sweep(world.services)) == []
    for number in range(3):
        to(world, NEXT_HOUR + number * HOUR)
        assert len(await sweeping.sweep(world.services)) == 1
        assert list(await sweeping.sweep(world.services)) == []
    runs = await runs_of(world, flow)
    assert [run.trigger_source for run in runs] == [TriggerSource.SCHEDULE] * 3
    assert [run.accepted_at for run in runs] == [NEXT_HOUR + n * HOUR for n in range(3)]
    one = await shown(world, flow)
    assert (one.trigger.runs, one.standing.next_at) == (3, NEXT_HOUR + 3 * HOUR)


async def test_one_instant_starts_once_whoever_fires(world: World) -> None:
    """Many sweepers at one instant start one execution. SH-1."""
    ann = await world.account()
    flow = await world.workflow(ann, code("a"), triggers=(HOURLY,))
    for number in range(5):
        to(world, NEXT_HOUR + number * HOUR)
        fired = await asyncio.gather(*(sweeping.sweep(world.services) for _ in range(8)))
        assert sum(map(len, fired)) == 1
    assert len(await runs_of(world, flow)) == 5


async def test_daylight_saving(world: World) -> None:
    """In the night of 31 March 2024 half past two comes at three, on 27 October once. SH-2."""
    ann = await world.account()
    schedule = Schedule("30 2 * * *", "Europe/Berlin")
    flow = await world.workflow(ann, code("a"), triggers=(schedule,))
    for day in ("2024-03-31", "2024-10-27"):
        runs_before = len(await runs_of(world, flow))
        midnight = _instant(day)
        to(world, midnight - 2 * HOUR)
        await sweeping.sweep(world.services)
        for minute in range(0, 8 * 60, 10):
            to(world, midnight - 2 * HOUR + minute * MINUTE)
            await sweeping.sweep(world.services)
        runs = (await runs_of(world, flow))[runs_before:]
        wanted = {"2024-03-31": 60, "2024-10-27": 30}[day]
        assert [run.accepted_at for run in runs] == [midnight + wanted * MINUTE]


def _instant(day: str) -> int:
    return int(datetime.fromisoformat(day).replace(tzinfo=UTC).timestamp()) * 1_000


@pytest.mark.parametrize(
    ("said", "policy", "starts"),
    [
        (None, Missed.SKIP, 0),
        (None, Missed.ONCE, 1),
        (Missed.SKIP, Missed.ONCE, 0),
        (Missed.ONCE, Missed.SKIP, 1),
    ],
)
async def test_what_was_missed(
    world: World, said: Missed | None, policy: Missed, starts: int
) -> None:
    """After a night without a server: nothing, or one start, as it is set. SH-4."""
    ann = await world.account()
    set_so = evolve(world, services=evolve(world.services, policy=Policy(missed=policy)))
    flow = await set_so.workflow(ann, code("a"), triggers=(evolve(HOURLY, missed=said),))
    to(world, NEXT_HOUR + 9 * HOUR + MINUTE + 1)
    await sweeping.sweep(set_so.services)
    assert len(await runs_of(world, flow)) == starts
    assert [one.reason for one in await skipped(world)] == ["MISSED"] * (1 - starts)
    assert (await shown(world, flow)).standing.next_at == NEXT_HOUR + 10 * HOUR
    to(world, NEXT_HOUR + 10 * HOUR)
    await sweeping.sweep(set_so.services)
    assert len(await runs_of(world, flow)) == starts + 1


async def test_a_little_late_is_on_time(world: World) -> None:
    """Within the grace an instant counts, and of several only the latest. SH-3."""
    ann = await world.account()
    flow = await world.workflow(ann, code("a"), triggers=(Schedule("* * * * *"),))
    to(world, NEXT_HOUR + 30 * SECOND)
    await sweeping.sweep(world.services)
    (run,) = await runs_of(world, flow)
    _, (event,) = await executions.read_events(world.services, OPERATOR, run.id, 0)
    assert event.data["scheduledFor"] == NEXT_HOUR


async def test_a_clock_that_jumps_fires_nothing_early(world: World) -> None:
    """Due is what is due by the clock of deadlines, which does not follow a jump at once. SH-8."""

    class Jumped:
        def now(self) -> EpochMs:
            return EpochMs(world.clock.now() + DAY)

        def deadline_now(self) -> EpochMs:
            return world.clock.now()

        service_now = deadline_now

    ann = await world.account()
    flow = await world.workflow(ann, code("a"), triggers=(HOURLY,))
    jumped = evolve(world.services, clock=Jumped())
    assert list(await sweeping.sweep(jumped)) == []
    to(world, NEXT_HOUR)
    assert len(await sweeping.sweep(jumped)) == 1
    assert (await shown(world, flow)).standing.next_at == NEXT_HOUR + HOUR


async def test_a_schedule_needs_a_plan(world: World) -> None:
    """On FREE it cannot be applied; after a downgrade it does not fire and says why. SH-7."""
    ann = await world.account(plan=Tier.FREE)
    with pytest.raises(InvalidDefinition, match="plan PRO"):
        await world.workflow(ann, code("a"), triggers=(HOURLY,))
    await accounts.set_account(world.services, OPERATOR, ann.account.id, plan=Tier.PRO)
    flow = await world.workflow(ann, code("a"), triggers=(HOURLY,))
    await accounts.set_account(world.services, OPERATOR, ann.account.id, plan=Tier.FREE)
    for number in range(3):
        to(world, NEXT_HOUR + number * HOUR)
        assert [one.refusal for one in await sweeping.sweep(world.services)] == ["PLAN_LIMIT"]
    one = await shown(world, flow)
    assert one.standing.state is TriggerState.BLOCKED
    assert "PRO" in (one.standing.why or "")
    assert [entry.reason for entry in await skipped(world)] == ["PLAN_LIMIT"]
    await accounts.set_account(world.services, OPERATOR, ann.account.id, plan=Tier.TEAM)
    to(world, NEXT_HOUR + 3 * HOUR)
    assert [one.refusal for one in await sweeping.sweep(world.services)] == [None]
    assert (await shown(world, flow)).standing.state is TriggerState.ACTIVE


async def test_a_chain_needs_no_plan(world: World) -> None:
    """Chains are for every plan. SH-7."""
    ann = await world.account(plan=Tier.FREE)
    first = await world.workflow(ann, code("a"), name="first")
    await world.workflow(ann, code("b"), name="then", triggers=(Chain("first"),))
    await complete(world, ann, first)
    assert [one.refusal for one in await sweeping.sweep(world.services)] == [None]


@pytest.mark.parametrize("status", [AccountStatus.DISABLED, AccountStatus.LOCKED])
async def test_a_blocked_account_starts_nothing(world: World, status: AccountStatus) -> None:
    """Neither by schedule nor by chain. AC-1."""
    ann = await world.account()
    first = await world.workflow(ann, code("a"), name="first")
    triggers = (HOURLY, Chain("first", 10))
    await world.workflow(ann, code("b"), name="then", triggers=triggers)
    await complete(world, ann, first)
    await accounts.set_account(world.services, OPERATOR, ann.account.id, status=status)
    to(world, NEXT_HOUR)
    ends = await sweeping.sweep(world.services)
    assert [one.refusal for one in ends] == [Refusal.ACCOUNT_BLOCKED] * 2
