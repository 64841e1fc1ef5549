"""Triggers when a workflow is applied again, and timers that cannot or must not fire."""

from collections.abc import Sequence

import pytest
from attrs import evolve

from wfcore.model.access import OPERATOR
from wfcore.model.trigger import Chain, Missed, Schedule, TriggerRow, TriggerState
from wfcore.model.workflow import Concurrency, Variable
from wfcore.testing.builders import timer
from wfcore.time import HOUR, MINUTE, SECOND
from wfcore.usecases.upkeep import sweeping
from wfcore.usecases.workflows import firing, workflows
from wfcore.usecases.workflows.triggers import list_triggers, next_fires

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


async def test_applying_again_keeps_what_stays_the_same(world: World) -> None:
    """The number of runs, pending timers and the next instant stay; the new terms hold. SH-5."""
    ann = await world.account()
    first = await world.workflow(ann, code("a"), name="first")
    chain = Chain("first", 10, max_runs=2)
    then = await world.workflow(ann, code("b"), name="then", triggers=(chain, HOURLY))
    await complete(world, ann, first)
    world.clock.advance(10 * SECOND)
    await sweeping.sweep(world.services)
    await run_one(world)
    await complete(world, ann, first)
    before = {one.trigger.id for one in await _all(world, then)}
    changed = (evolve(HOURLY, missed=Missed.ONCE), Chain("first", 99, max_runs=3))
    await world.workflow(ann, code("c"), name="then", triggers=changed)
    after = await _all(world, then)
    assert {one.trigger.id for one in after} == before
    world.clock.advance(10 * SECOND)
    assert len(await sweeping.sweep(world.services)) == 1
    by_kind = {type(one.trigger.spec): one for one in await _all(world, then)}
    assert by_kind[Chain].trigger.runs == 2
    assert by_kind[Chain].trigger.spec == changed[1]
    assert by_kind[Schedule].standing.next_at == NEXT_HOUR


async def test_a_trigger_that_is_left_out_takes_its_timers_along(world: World) -> None:
    """Pending starts of a removed trigger do not happen, new instants begin anew. SH-5."""
    ann = await world.account()
    first = await world.workflow(ann, code("a"), name="first")
    triggers = (Chain("first", 10), HOURLY)
    then = await world.workflow(ann, code("b"), name="then", triggers=triggers)
    await complete(world, ann, first)
    later = Schedule("5 * * * *")
    await world.workflow(ann, code("b"), name="then", triggers=(later,))
    to(world, NEXT_HOUR)
    assert list(await sweeping.sweep(world.services)) == []
    (one,) = await _all(world, then)
    assert (one.trigger.spec, one.standing.next_at) == (later, NEXT_HOUR + 5 * MINUTE)
    await workflows.delete_workflow(world.services, OPERATOR, then)
    assert await sweeping.next_deadline(world.services) is None
    assert not (await list_triggers(world.services, OPERATOR, PAGE)).rows


async def test_a_timer_without_a_trigger_is_dropped(world: World) -> None:
    """A completion that raced with the removal of a trigger starts nothing. SH-5."""
    ann = await world.account()
    first = await world.workflow(ann, code("a"), name="first")
    then = await world.workflow(ann, code("b"), name="then", triggers=(Chain("first"),))
    await world.start(ann, first)
    lease, _ = await world.take()
    async with world.services.store.unit() as late:
        (trigger,) = await late.triggers.of_workflow(then)
        await world.workflow(ann, code("b"), name="then")
        late.put(timer("x", trigger_id=trigger.id, due_at=world.clock.now()))
        await late.commit()
    await world.finish(lease, "a")
    assert list(await sweeping.sweep(world.services)) == []
    assert await sweeping.next_deadline(world.services) is None


async def _all(world: World, workflow_id: str) -> Sequence[TriggerRow]:
    return (await list_triggers(world.services, OPERATOR, PAGE, workflow_id)).rows


async def test_what_cannot_start_is_told(world: World) -> None:
    """A start whose variables are no good is refused with its reason, not for ever tried. SH-6."""
    ann = await world.account()
    key = Concurrency(1, "{{ variables.v }}")
    unset = {"v": Variable("v")}
    flow = await world.workflow(
        ann, code("a"), triggers=(HOURLY,), variables=unset, concurrency=key
    )
    to(world, NEXT_HOUR)
    assert [one.refusal for one in await sweeping.sweep(world.services)] == ["INVALID_INPUT"]
    assert [entry.reason for entry in await skipped(world)] == ["INVALID_INPUT"]
    assert (await shown(world, flow)).standing.next_at == NEXT_HOUR + HOUR


async def test_the_next_fires_of_all_schedules_are_in_order(world: World) -> None:
    """As many as are asked for; none of what is paused, waits for another, or cannot be read."""
    ann = await world.account()
    hourly = await world.workflow(ann, code("a"), name="hourly", triggers=(HOURLY,))
    await world.workflow(ann, code("b"), name="then", triggers=(Chain("hourly"),))
    seen = [(await shown(world, hourly), name) for name in ("one", "other")]
    for most in (1, 2, 5):
        fires = next_fires(world.services, seen, most)
        first = NEXT_HOUR
        assert [at for at, _, _ in fires] == [first + n // 2 * HOUR for n in range(most)]
        assert [name for _, _, name in fires] == ["one", "other", "one", "other", "one"][:most]
    without = evolve(world.services, calendar=None)
    assert len(next_fires(without, seen, 5)) == 2
    paused = evolve(seen[0][0], standing=evolve(seen[0][0].standing, state=TriggerState.PAUSED))
    assert next_fires(world.services, [(paused, "one")], 5) == []


async def test_a_schedule_that_cannot_be_read_here_waits(world: World) -> None:
    """It is tried again, by whoever can, and keeps no other trigger from starting. SH-1."""
    ann = await world.account()
    first = await world.workflow(ann, code("a"), name="first")
    flow = await world.workflow(ann, code("b"), triggers=(HOURLY,))
    await world.workflow(ann, code("c"), name="then", triggers=(Chain("first", 2_805),))
    await complete(world, ann, first)
    to(world, NEXT_HOUR + 10 * SECOND)
    without = evolve(world.services, calendar=None)
    ends = [one.refusal for one in await sweeping.sweep(without)]
    assert sorted(map(str, ends)) == ["None", "UNREADABLE"]
    assert list(await sweeping.sweep(world.services)) == []
    world.clock.advance(MINUTE)
    assert [one.refusal for one in await sweeping.sweep(world.services)] == [None]
    assert len(await runs_of(world, flow)) == 1
    assert (await shown(world, flow)).standing.next_at == NEXT_HOUR + HOUR


async def test_very_many_due_timers_leave_room_for_other_duties(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One sweep fires a batch, the next one the rest; the scheduler is told to come again. CH-1."""
    monkeypatch.setattr(firing, "BATCH", 2)
    ann = await world.account()
    first = await world.workflow(ann, code("a"), name="first")
    await world.workflow(ann, code("b"), name="then", triggers=(Chain("first"),))
    for _ in range(5):
        await complete(world, ann, first)
    assert [len(await sweeping.sweep(world.services)) for _ in range(4)] == [2, 2, 1, 0]


async def test_a_crash_between_firing_and_its_commit_loses_and_doubles_nothing(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A start and its timer are one unit: cut off before the commit, both are as before. SH-1."""
    ann = await world.account()
    first = await world.workflow(ann, code("a"), name="first")
    triggers = (Chain("first"), HOURLY)
    then = await world.workflow(ann, code("b"), name="then", triggers=triggers)
    await complete(world, ann, first)
    to(world, NEXT_HOUR)

    class Crash(Exception):
        pass

    async def crashing(*parts: object, **named: object) -> object:
        await enqueue(*parts, **named)  # type: ignore[arg-type]
        raise Crash

    enqueue = firing.enqueue
    monkeypatch.setattr(firing, "enqueue", crashing)
    for _ in range(3):
        with pytest.raises(Crash):
            await sweeping.sweep(world.services)
    monkeypatch.undo()
    assert not await runs_of(world, then)
    assert len(await sweeping.sweep(world.services)) == 2
    assert len(await runs_of(world, then)) == 2
