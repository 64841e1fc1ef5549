"""
The contracts of hints within a process and between processes, as test classes to inherit from.

The contracts need pytest-asyncio in auto mode.
"""

import asyncio
from collections.abc import Callable

from wfcore.ports.hints import Hint, HintKind, Hints, Wakeup
from wfcore.testing.contracts.awaited import Awaited

PATIENCE_S = 60
"""The seconds after which a test gives up an expected event."""
LONG_MS = 600_000


async def _rest(wakeup: Wakeup, execution_id: str, timeout_ms: int = LONG_MS) -> None:
    with wakeup.follow(execution_id) as rest:
        await rest(timeout_ms)


class WakeupContract(Awaited):
    """
    The promises of `wfcore.ports.hints.Wakeup`. Subclasses provide a fixture `wakeup` without
    listeners.
    """

    async def test_a_hint_that_nobody_hears_is_no_accident(self, wakeup: Wakeup) -> None:
        """
        A hint without listeners is no error, because hints are sent after the commit, when nothing
        may fail any more.
        """
        for _ in range(3):
            wakeup.runner()
            wakeup.timer()
            wakeup.stop("exec_unknown")
            wakeup.reload("exec_unknown")
            wakeup.events("exec_unknown")

    async def test_whoever_listens_hears_each_hint(self, wakeup: Wakeup) -> None:
        """Every listener gets the hints of its kinds, with the execution's id if there is one."""
        heard: list[object] = []
        ran, fell_due = asyncio.Event(), asyncio.Event()
        for _ in range(2):
            wakeup.listen(stop=heard.append, reload=heard.append)
        wakeup.listen(runner=ran.set)
        wakeup.listen(timer=fell_due.set)
        wakeup.stop("exec_1")
        wakeup.reload("exec_2")
        wakeup.runner()
        wakeup.timer()
        async with asyncio.timeout(PATIENCE_S):
            await asyncio.gather(ran.wait(), fell_due.wait())
            while len(heard) < 4:  # noqa: ASYNC110 - those of other processes take their time
                await asyncio.sleep(0.001)
        assert heard == ["exec_1", "exec_1", "exec_2", "exec_2"]

    async def test_all_who_rest_can_be_released(self, wakeup: Wakeup) -> None:
        """A stopping process can wake all waiting followers, whichever executions they follow."""
        resting = [asyncio.create_task(_rest(wakeup, f"exec_{n}")) for n in (1, 1, 2)]
        await asyncio.sleep(0)
        async with asyncio.timeout(PATIENCE_S):
            wakeup.release()
            await asyncio.gather(*resting)

    async def test_resting_ends_with_its_time(self, wakeup: Wakeup) -> None:
        """Without a hint, waiting ends after the given time."""
        async with asyncio.timeout(PATIENCE_S):
            await _rest(wakeup, "exec_1", 1)

    async def test_every_follower_is_woken(self, wakeup: Wakeup) -> None:
        """A log that grew wakes all of its followers, long before their time is over."""
        followers = [asyncio.create_task(_rest(wakeup, "exec_1")) for _ in range(5)]
        await asyncio.sleep(0)
        async with asyncio.timeout(PATIENCE_S):
            wakeup.events("exec_1")
            await asyncio.gather(*followers)

    async def test_what_is_told_while_a_follower_looks_is_not_missed(self, wakeup: Wakeup) -> None:
        """A hint that arrives after `follow` and before the wait ends the wait at once."""
        with wakeup.follow("exec_1") as rest:
            async with asyncio.timeout(PATIENCE_S):
                for _ in range(3):
                    wakeup.events("exec_1")
                    await rest(LONG_MS)

    async def test_a_log_may_grow_again_and_again(self, wakeup: Wakeup) -> None:
        """A follower that waits again is woken again."""
        async with asyncio.timeout(PATIENCE_S):
            for _ in range(50):
                follower = asyncio.create_task(_rest(wakeup, "exec_1"))
                await asyncio.sleep(0)
                wakeup.events("exec_1")
                await follower

    async def test_a_follower_that_left_is_missed_by_nobody(self, wakeup: Wakeup) -> None:
        """A follower may stop waiting at any time; other followers are still woken."""
        gone, stays = (asyncio.create_task(_rest(wakeup, "exec_1")) for _ in range(2))
        await asyncio.sleep(0)
        gone.cancel()
        await asyncio.wait((gone,))
        async with asyncio.timeout(PATIENCE_S):
            wakeup.events("exec_1")
            await stays
        wakeup.events("exec_1")


class HintsContract(Awaited):
    """
    The promises of `wfcore.ports.hints.Hints`. Subclasses provide a fixture `new_hints`: each call
    returns the hints of one more process.
    """

    async def test_what_one_tells_all_others_hear(self, new_hints: Callable[[], Hints]) -> None:
        """A hint arrives at every other process with its kind and id, and not at its sender."""
        teller, *others = (new_hints() for _ in range(3))
        heard: list[set[Hint]] = [set(), set(), set()]
        told = {
            Hint(HintKind.DUE),
            Hint(HintKind.RELOAD, "exec_1"),
            Hint(HintKind.EVENTS, "exec_2"),
        }
        hearing = [
            asyncio.create_task(one.hear(into.add))
            for one, into in zip((teller, *others), heard, strict=True)
        ]
        try:
            async with asyncio.timeout(PATIENCE_S):
                while not all(told <= one for one in heard[1:]):
                    await teller.tell(told)  # what came before they listened is lost
                    await asyncio.sleep(0.01)
        finally:
            for one in hearing:
                one.cancel()
            await asyncio.gather(*hearing, return_exceptions=True)
        assert heard == [set(), told, told]

    async def test_telling_nobody_is_no_accident(self, new_hints: Callable[[], Hints]) -> None:
        """
        A hint without receivers is no error, because hints are sent after the commit, when nothing
        may fail any more.
        """
        await new_hints().tell([Hint(HintKind.TIMER), Hint(HintKind.RELOAD, "exec_1")])
        await new_hints().tell([])
