"""Who is told of an execution that nobody can run, and when nobody is. NT-9."""

import pytest
from attrs import evolve

from wfcore.model.access import OPERATOR
from wfcore.model.notice import NoticeKind, NoticeStatus
from wfcore.testing import builders as make
from wfcore.testing.contracts.keeping import keep
from wfcore.testing.fakes_running import NotedNotifier
from wfcore.time import HOUR, MINUTE, EpochMs
from wfcore.usecases.executions.executions import cancel_execution
from wfcore.usecases.nodes import tell_of_waiting
from wfcore.usecases.upkeep.retention import run_upkeep

from .conftest import World, code
from .test_notices import ANN, EVE, ensured, send, stored, with_channels

FOREVER = EpochMs(1 << 52)
ABLE = ("language:bash",)


@pytest.fixture
def told(world: World) -> World:
    """The world with mail and a room."""
    return with_channels(world)


async def waiting(world: World) -> str:
    """An execution that only a node with a label runs; there is one without."""
    ann = await ensured(world, ANN)
    await keep(world.services.store, make.node(able=ABLE, seen_until=FOREVER))
    flow = await world.workflow(ann, evolve(code("train"), labels=("gpu",)))
    return await world.start(ann, flow)


async def test_what_nobody_can_run_is_told_once_after_a_while(told: World) -> None:
    """NT-9: the workflow's owner learns what it needs, five minutes after it was due, once."""
    run_id = await waiting(told)
    assert await tell_of_waiting(told.services) == 0
    told.clock.advance(5 * MINUTE)
    assert [await tell_of_waiting(told.services) for _ in range(2)] == [1, 0]
    (message,) = await send(told, NotedNotifier())
    (line,) = message.lines
    assert (message.to, line.kind) == (ANN, NoticeKind.EXECUTION_WAITING)
    assert line.path == f"/executions/{run_id}"
    assert "label gpu" in str(line.about["needs"])


@pytest.mark.parametrize("before", [True, False])
async def test_nothing_is_told_once_somebody_can_run_it(told: World, before: bool) -> None:
    """NT-9: a node that is able appears before the notice is written, or before it is sent."""
    await waiting(told)
    told.clock.advance(5 * MINUTE)
    if not before:
        assert await tell_of_waiting(told.services) == 1
    await keep(told.services.store, make.node("worker_2", able=None, seen_until=FOREVER))
    if before:
        assert await tell_of_waiting(told.services) == 0
    assert await send(told, NotedNotifier()) == []
    assert [one.status for one in await stored(told)] == [NoticeStatus.DROPPED] * (not before)


async def test_what_ended_or_waits_for_a_place_is_not_told(told: World) -> None:
    """NT-9: an execution that was cancelled, and one that is only queued."""
    await cancel_execution(told.services, OPERATOR, await waiting(told))
    ann = await ensured(told, ANN)
    await told.start(ann, await told.workflow(ann, code("one"), name="other"))
    told.clock.advance(HOUR)
    assert await tell_of_waiting(told.services) == 0


async def test_rooms_for_failures_are_told_of_it_too(told: World) -> None:
    """NT-9: `WFCORE_FAILURE_CHANNELS`, and the operators' mail; on the way past what is queued."""
    policy = evolve(
        told.services.policy,
        failure_channels=("mail", "finance"),
        operators=frozenset({EVE}),
    )
    world = evolve(told, services=evolve(told.services, policy=policy))
    await waiting(world)
    world.clock.advance(5 * MINUTE)
    await run_upkeep(world.services)
    assert sorted(one.to for one in await send(world, NotedNotifier())) == ["", ANN, EVE]
