"""
The contract of queues that tell workers about due executions, as a test class to inherit from.

The contract needs pytest-asyncio in auto mode.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from contextlib import asynccontextmanager

from wfcore.ports.queue import DispatchQueue, DueDelivery, DueExecution
from wfcore.testing.contracts.awaited import Awaited
from wfcore.time import DurationMs

PATIENCE_S = 60
"""The seconds after which a test gives up an expected event."""
LATER_MS = DurationMs(400)
GPU = "label:gpu"

NewDispatch = Callable[[], DispatchQueue]


@asynccontextmanager
async def connected(dispatch: DispatchQueue) -> AsyncIterator[DispatchQueue]:
    """Connect *dispatch* for the block, and end the connection afterwards."""
    came_up = asyncio.Event()
    running = asyncio.create_task(dispatch.run(came_up.set))
    try:
        async with asyncio.timeout(PATIENCE_S):
            while not dispatch.up:
                await came_up.wait()
                came_up.clear()
        yield dispatch
    finally:
        running.cancel()
        await asyncio.wait((running,))


async def taken(
    dispatch: DispatchQueue, wanted: int, able: Collection[str] | None = None
) -> Sequence[DueDelivery]:
    """Take deliveries until there are as many as *wanted*; return the deliveries."""
    found: list[DueDelivery] = []
    async with asyncio.timeout(PATIENCE_S):
        while len(found) < wanted:
            found += await dispatch.take(wanted - len(found), able)
    return found


def ids_of(found: Collection[DueDelivery]) -> list[str]:
    """The ids of the delivered executions, sorted."""
    return sorted(one.execution_id for one in found)


class DispatchContract(Awaited):
    """
    The promises of `wfcore.ports.queue.DispatchQueue`.

    Subclasses provide a fixture `new_dispatch`. Each call returns another handle on one queue, as
    in another process; the queue is empty at first. `keep_s` of the queue should be a fraction of a
    second, because some tests wait until an unkept delivery comes again.
    """

    async def test_what_one_process_tells_another_one_takes(
        self, new_dispatch: NewDispatch
    ) -> None:
        """
        Each execution that one process tells is delivered to another process, with its number of
        tries.
        """
        async with connected(new_dispatch()) as teller, connected(new_dispatch()) as taker:
            assert await teller.tell([DueExecution(f"exec_{n}", f"k{n}") for n in range(3)])
            found = await taken(taker, 3)
            assert ids_of(found) == ["exec_0", "exec_1", "exec_2"]
            assert {one.tries for one in found} == {1}
            for one in found:
                await one.settle()

    async def test_each_message_goes_to_one_of_several(self, new_dispatch: NewDispatch) -> None:
        """
        Two processes that take at the same time share the deliveries; no delivery goes to both.
        """
        async with connected(new_dispatch()) as one, connected(new_dispatch()) as other:
            await one.tell([DueExecution(f"exec_{n}", f"k{n}") for n in range(6)])
            found: dict[str, DueDelivery] = {}
            twice = 0

            async def take(dispatch: DispatchQueue) -> None:
                nonlocal twice
                while len(found) < 6:
                    for each in await dispatch.take(2):
                        await each.settle()
                        twice += each.execution_id in found and each.tries == 1
                        found[each.execution_id] = each

            async with asyncio.timeout(PATIENCE_S):
                await asyncio.gather(take(one), take(other))
            assert sorted(found) == [f"exec_{n}" for n in range(6)]
            assert not twice

    async def test_what_is_due_later_comes_later(self, new_dispatch: NewDispatch) -> None:
        """An execution that is due later is delivered after an execution that is due now."""
        async with connected(new_dispatch()) as dispatch:
            await dispatch.tell(
                [DueExecution("exec_late", "late", LATER_MS), DueExecution("exec_now", "now")]
            )
            first, second = [(await taken(dispatch, 1))[0] for _ in range(2)]
            assert (first.execution_id, second.execution_id) == ("exec_now", "exec_late")
            await first.settle()
            await second.settle()

    async def test_what_nobody_keeps_comes_again(self, new_dispatch: NewDispatch) -> None:
        """
        If a process ends, its unsettled deliveries go to another process. Settled deliveries do not
        come again.
        """
        async with connected(new_dispatch()) as gone:
            await gone.tell([DueExecution("exec_lost", "1"), DueExecution("exec_done", "2")])
            for one in await taken(gone, 2):
                if one.execution_id == "exec_done":
                    await one.settle()
        async with connected(new_dispatch()) as other:
            (again,) = await taken(other, 1)
            assert again.execution_id == "exec_lost"
            await again.settle()

    async def test_what_is_put_back_comes_again(self, new_dispatch: NewDispatch) -> None:
        """A delivery that is put back is delivered again, to any process, with a higher count."""
        async with connected(new_dispatch()) as dispatch:
            await dispatch.tell([DueExecution("exec_1", "1")])
            (first,) = await taken(dispatch, 1)
            await first.put_back(DurationMs(1))
            (again,) = await taken(dispatch, 1)
            assert again.execution_id == "exec_1"
            assert again.tries > 1
            await again.settle()

    async def test_what_becomes_due_again_is_told_again(self, new_dispatch: NewDispatch) -> None:
        """An execution that becomes due again during its delivery is delivered once more."""
        async with connected(new_dispatch()) as dispatch:
            await dispatch.tell([DueExecution("exec_1", "1:1")])
            (first,) = await taken(dispatch, 1)
            await dispatch.tell([DueExecution("exec_1", "1:2")])
            await first.settle()
            (second,) = await taken(dispatch, 1)
            assert second.execution_id == "exec_1"
            await second.settle()

    async def test_who_is_able_gets_it(self, new_dispatch: NewDispatch) -> None:
        """An execution that needs a label is delivered to a worker with that label."""
        async with connected(new_dispatch()) as dispatch:
            await dispatch.tell([DueExecution("exec_1", "1", needs=(GPU,))])
            (one,) = await taken(dispatch, 1, frozenset({GPU}))
            assert one.execution_id == "exec_1"
            await one.settle()

    async def test_keeping_and_settling_may_come_too_late(self, new_dispatch: NewDispatch) -> None:
        """Keeping or settling a delivery that is settled already does no harm."""
        async with connected(new_dispatch()) as dispatch:
            await dispatch.tell([DueExecution("exec_1", "1")])
            (one,) = await taken(dispatch, 1)
            for _ in range(2):
                await one.settle()
                await one.keep()

    async def test_without_a_connection_nothing_is_raised(self, new_dispatch: NewDispatch) -> None:
        """Without a connection, before the start and after the end, `tell` returns False."""
        dispatch = new_dispatch()
        assert not dispatch.up
        assert not await dispatch.tell([DueExecution("exec_1", "1")])
        async with connected(dispatch):
            assert (await dispatch.gauges())["wfcore_dispatch_up"] == 1
        assert not dispatch.up
        assert not await dispatch.tell([DueExecution("exec_1", "1")])

    async def test_without_room_nothing_is_asked_for(self, new_dispatch: NewDispatch) -> None:
        """A process without room does not wait. A delivery that comes all the same is put back."""
        async with connected(new_dispatch()) as full, connected(new_dispatch()) as other:
            await full.tell([DueExecution("exec_1", "1")])
            found: Sequence[DueDelivery] = ()
            async with asyncio.timeout(PATIENCE_S):
                while not found:
                    for one in await full.take(0):
                        await one.put_back(DurationMs(1))
                    found = await other.take(1)
            await found[0].settle()
