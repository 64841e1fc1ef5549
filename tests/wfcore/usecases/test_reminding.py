"""Reminders of open approvals: at their time, once, over restarts and among many sweepers."""

import asyncio
from pathlib import Path

from attrs import evolve

from wfcore.model.access import OPERATOR
from wfcore.model.approval import DecisionSource
from wfcore.model.event import Event, EventKind
from wfcore.rules.approval.machine import Approve
from wfcore.time import DAY, HOUR, EpochMs
from wfcore.usecases.approvals import approvals, deciding
from wfcore.usecases.approvals.deciding import Decide
from wfcore.usecases.executions import executions
from wfcore.usecases.upkeep import sweeping

from .conftest import World, a_world, review

BEFORE = (HOUR, 8 * HOUR)


async def asked(world: World, reminders: tuple[int, ...] = BEFORE) -> str:
    """An execution that waits a day at an approval with reminders."""
    ann = await world.account()
    run_id = await world.start(ann, await world.workflow(ann, review(reminders=reminders)))
    await world.take()
    return run_id


async def told(world: World, run_id: str) -> list[Event]:
    _, events = await executions.read_events(world.services, OPERATOR, run_id, 0)
    return [event for event in events if event.kind is EventKind.APPROVAL_REMINDER]


async def test_reminders_come_at_their_times(world: World) -> None:
    """Not a millisecond earlier, each once, with how much time is left. AP-20."""
    run_id, asked_at = await asked(world), world.clock.now()
    for before, count in ((8 * HOUR, 1), (HOUR, 2)):
        assert await sweeping.next_deadline(world.services) == asked_at + DAY - before
        world.clock.advance(asked_at + DAY - before - 1 - world.clock.now())
        await sweeping.sweep(world.services)
        assert len(await told(world, run_id)) == count - 1
        world.clock.advance(1)
        for _ in range(2):
            await sweeping.sweep(world.services)
        *_, last = found = await told(world, run_id)
        assert len(found) == count
        assert (last.data["before"], last.data["expiresAt"]) == (before, asked_at + DAY)
    assert await sweeping.next_deadline(world.services) == asked_at + DAY


async def test_of_many_sweepers_one_tells(world: World) -> None:
    """Twenty sweeps at once tell each reminder once. AP-20."""
    run_id = await asked(world)
    world.clock.advance(DAY - 1)
    await asyncio.gather(*(sweeping.sweep(world.services) for _ in range(20)))
    assert [event.data["before"] for event in await told(world, run_id)] == [8 * HOUR, HOUR]


async def test_many_are_told_in_one_sweep(world: World) -> None:
    """A sweep goes on until nothing is due, however much that is. AP-20."""
    ann = await world.account()
    workflow = await world.workflow(ann, review(reminders=(HOUR,)))
    runs = [await world.start(ann, workflow) for _ in range(103)]
    for _ in runs:
        await world.take()
    world.clock.advance(DAY - HOUR)
    await sweeping.sweep(world.services)
    assert [len(await told(world, run_id)) for run_id in runs] == [1] * 103


async def test_nobody_is_reminded_of_what_is_over(world: World) -> None:
    """After a decision, a cancel or the expiry there is no reminder any more. AP-20."""
    decided, cancelled, expired = [await asked_again(world, n) for n in range(3)]
    (approval,) = await approvals.approvals_of(world.services, OPERATOR, decided)
    yes = Decide(approval.id, Approve(), DecisionSource.API)
    await deciding.decide_approval(world.services, OPERATOR, yes)
    await executions.cancel_execution(world.services, OPERATOR, cancelled)
    world.clock.advance(DAY)
    await sweeping.sweep(world.services)
    for run_id in (decided, cancelled, expired):
        assert await told(world, run_id) == []


async def asked_again(world: World, number: int) -> str:
    ann = await world.account(f"ann{number}@example.org")
    run_id = await world.start(ann, await world.workflow(ann, review(reminders=BEFORE)))
    await world.take()
    return run_id


async def test_a_clock_that_jumps_reminds_nobody_early(world: World) -> None:
    """Reminders are held against the time that expiries are held against. AP-20."""
    run_id = await asked(world)
    world.clock.advance(DAY - HOUR)
    held = EpochMs(world.clock.now() - DAY)
    clock = Held(world, held)
    await sweeping.sweep(evolve(world.services, clock=clock))
    assert await told(world, run_id) == []


class Held:
    """A wall clock that went on, and deadlines that are held."""

    def __init__(self, world: World, at: EpochMs) -> None:
        self.now, self._at = world.clock.now, at

    def deadline_now(self) -> EpochMs:
        return self._at

    service_now = deadline_now


async def test_a_restart_neither_repeats_nor_forgets(tmp_path: Path) -> None:
    """What was told stays told, and what was due while nobody ran is told at once. AP-20."""
    async with a_world(None, tmp_path) as before:
        run_id = await asked(before)
        before.clock.advance(DAY - 8 * HOUR)
        await sweeping.sweep(before.services)
    async with a_world(None, tmp_path) as after:
        after.clock.advance(DAY - 1)
        for _ in range(2):
            await sweeping.sweep(after.services)
        assert [event.data["before"] for event in await told(after, run_id)] == [8 * HOUR, HOUR]
