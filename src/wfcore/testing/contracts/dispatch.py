"""
The contract of queues that tell workers what is due, as a test class to inherit from.

Needs pytest-asyncio in auto mode.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from contextlib import asynccontextmanager

from wfcore.ports.queue import DispatchQueue, DueDelivery, DueExecution
from wfcore.testing.contracts.awaited import Awaited
from wfcore.time import DurationMs

PATIENCE_S = 60
"""After so long, what should have come by itself does not come."""
LATER_MS = DurationMs(400)
GPU = "label:gpu"

NewDispatch = Callable[[], DispatchQueue]


@asynccontextmanager
async def connected(dispatch: DispatchQueue) -> AsyncIterator[DispatchQueue]:
    """*dispatch*, which is up, and is ended afterwards."""
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
    """Take until there are as many as *wanted*."""
    found: list[DueDelivery] = []
    async with asyncio.timeout(PATIENCE_S):
        while len(found) < wanted:
            found += await dispatch.take(wanted - len(found), able)
    return found


def ids_of(found: Collection[DueDelivery]) -> list[str]:
    """Their executions, in order."""
    return sorted(one.execution_id for one in found)


class DispatchContract(Awaited):
    """
    Subclasses provide a fixture `new_dispatch`: each call gives another handle on one queue, which
    is empty at first, as another process would have it. Its `keep_s` should be a fraction of a
    second: some tests wait until a delivery that nobody keeps comes again.
    """

    async def test_what_one_process_tells_another_one_takes(
        self, new_dispatch: NewDispatch
    ) -> None:
        """Each execution that is told is delivered, with how often it was."""
        async with connected(new_dispatch()) as teller, connected(new_dispatch()) as taker:
            assert await teller.tell([DueExecution(f"exec_{n}", f"k{n}") for n in range(3)])
            found = await taken(taker, 3)
            assert ids_of(found) == ["exec_0", "exec_1", "exec_2"]
            assert {one.tries for one in found} == {1}
            for one in found:
                await one.settle()

    async def test_each_message_goes_to_one_of_several(self, new_dispatch: NewDispatch) -> None:
        """Two that take at the same time share what there is; nothing is delivered to both."""
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
        """An execution that is due in a while is delivered, and after one that is due now."""
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
        A delivery that is neither settled nor kept, by a process that has ended, is delivered to
        somebody else. One that was settled is not.
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
        """A delivery that is put back is delivered again, to anybody, and says so."""
        async with connected(new_dispatch()) as dispatch:
            await dispatch.tell([DueExecution("exec_1", "1")])
            (first,) = await taken(dispatch, 1)
            await first.put_back(DurationMs(1))
            (again,) = await taken(dispatch, 1)
            assert again.execution_id == "exec_1"
            assert again.tries > 1
            await again.settle()

    async def test_what_becomes_due_again_is_told_again(self, new_dispatch: NewDispatch) -> None:
        """An execution that is due once more, while it is delivered, is delivered once more."""
        async with connected(new_dispatch()) as dispatch:
            await dispatch.tell([DueExecution("exec_1", "1:1")])
            (first,) = await taken(dispatch, 1)
            await dispatch.tell([DueExecution("exec_1", "1:2")])
            await first.settle()
            (second,) = await taken(dispatch, 1)
            assert second.execution_id == "exec_1"
            await second.settle()

    async def test_who_is_able_gets_it(self, new_dispatch: NewDispatch) -> None:
        """What only a worker with a label can do is delivered to one that carries it."""
        async with connected(new_dispatch()) as dispatch:
            await dispatch.tell([DueExecution("exec_1", "1", needs=(GPU,))])
            (one,) = await taken(dispatch, 1, frozenset({GPU}))
            assert one.execution_id == "exec_1"
            await one.settle()

    async def test_keeping_and_settling_may_come_too_late(self, new_dispatch: NewDispatch) -> None:
        """What is said of a delivery that is settled already does no harm."""
        async with connected(new_dispatch()) as dispatch:
            await dispatch.tell([DueExecution("exec_1", "1")])
            (one,) = await taken(dispatch, 1)
            for _ in range(2):
                await one.settle()
                await one.keep()

    async def test_without_a_connection_nothing_is_raised(self, new_dispatch: NewDispatch) -> None:
        """Before it is up, and after it has ended, telling says that it could not."""
        dispatch = new_dispatch()
        assert not dispatch.up
        assert not await dispatch.tell([DueExecution("exec_1", "1")])
        async with connected(dispatch):
            assert (await dispatch.gauges())["wfcore_dispatch_up"] == 1
        assert not dispatch.up
        assert not await dispatch.tell([DueExecution("exec_1", "1")])

    async def test_without_room_nothing_is_asked_for(self, new_dispatch: NewDispatch) -> None:
        """Whoever has no room does not wait, and what comes all the same is put back for others."""
        async with connected(new_dispatch()) as full, connected(new_dispatch()) as other:
            await full.tell([DueExecution("exec_1", "1")])
            found: Sequence[DueDelivery] = ()
            async with asyncio.timeout(PATIENCE_S):
                while not found:
                    for one in await full.take(0):
                        await one.put_back(DurationMs(1))
                    found = await other.take(1)
            await found[0].settle()
