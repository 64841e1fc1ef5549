"""A family of executions has one promise: that of what started its root. EX-24, EX-26."""

import pytest

from usecases.conftest import World, code
from usecases.test_children import child_of, read, sub
from wfcore.instants import HOUR, MINUTE, SECOND
from wfcore.model.execution import ExecutionStatus, TriggerSource
from wfcore.model.workflow import Retry
from wfcore.usecases import running, sweeping

S = ExecutionStatus


async def generations(world: World, depth: int, source: TriggerSource) -> list[str]:
    """A family in which each execution but the last waits for its child; the root comes first."""
    ann = await world.account()
    await world.workflow(ann, code("work"), name="0")
    for number in range(1, depth):
        retry = Retry(2, SECOND)
        above = sub(workflow=str(number - 1), retry=retry)
        workflow = await world.workflow(ann, above, name=str(number))
    ids = [await world.start(ann, workflow, source=source)]
    for _ in range(depth - 1):
        await world.take("dead")
        ids.append((await child_of(world, ids[-1])).id)
    return ids


@pytest.mark.parametrize("depth", [2, 4])
@pytest.mark.parametrize("source", [TriggerSource.OPEN_API, TriggerSource.WEBHOOK])
async def test_what_a_caller_started_is_not_resumed_in_its_children(
    world: World, source: TriggerSource, depth: int
) -> None:
    """
    However deep the step was that was cut off: it never begins again, also not because a parent
    would try again, and the whole family ends. EX-14, EX-24, EX-26.
    """
    ids = await generations(world, depth, source)
    assert (await world.take("dead"))[0].execution_id == ids[-1]
    for pause in (MINUTE, 5 * MINUTE):
        world.clock.advance(pause)
        await sweeping.sweep(world.services)
    for above in reversed(ids[:-1]):
        lease, jobs = await world.take("alive")
        assert (lease.execution_id, jobs) == (above, ())
    for id in ids:
        run = await read(world, id)
        assert run.status is S.FAILED
        assert "Execution interrupted" in (run.error or "")
    world.clock.advance(HOUR)
    assert not await running.claim(world.services, "alive", 9)


@pytest.mark.parametrize(
    "source", [TriggerSource.MANUAL, TriggerSource.SCHEDULE, TriggerSource.DELAYED_COMPLETION]
)
async def test_a_grandchild_is_resumed_where_its_root_is(
    world: World, source: TriggerSource
) -> None:
    """By hand, by schedule or behind another one: the root says it for all below it. EX-24."""
    ids = await generations(world, 3, source)
    await world.take("dead")
    world.clock.advance(MINUTE)
    await sweeping.sweep(world.services)
    lease, (job,) = await world.take("alive")
    assert (lease.execution_id, job.attempt) == (ids[-1], 2)
