"""The contract of quota counters: a test class to inherit from, with a fixture `counters`."""

import asyncio

from wfcore.model.access import Admission, Window
from wfcore.ports.counters import Counters
from wfcore.testing.builders import NOW
from wfcore.testing.contracts.awaited import Awaited
from wfcore.time import DAY, MINUTE, EpochMs


def minute(limit: int | None, start: int = NOW) -> Window:
    """The minute window around *start*."""
    begin = EpochMs(start - start % MINUTE)
    return Window("minute", begin, EpochMs(begin + MINUTE), limit)


def day(limit: int | None, start: int = NOW) -> Window:
    """The day window around *start*."""
    begin = EpochMs(start - start % DAY)
    return Window("day", begin, EpochMs(begin + DAY), limit)


class CountersContract(Awaited):
    """Subclasses provide a fixture `counters`: empty counters, closed after the test."""

    async def test_exactly_the_limit_is_admitted(self, counters: Counters) -> None:
        """Of many concurrent calls exactly `limit` are admitted."""
        windows = (minute(30), day(1_000))
        ends = await asyncio.gather(*(counters.take("k", windows, NOW) for _ in range(100)))
        assert sum(end.admitted for end in ends) == 30
        assert {end.counts for end in ends if end.admitted} == {(n, n) for n in range(1, 31)}
        assert {end for end in ends if not end.admitted} == {Admission(("minute",), (30, 30))}

    async def test_a_refusal_counts_nowhere(self, counters: Counters) -> None:
        """If one window is full, a call counts in no window."""
        assert (await counters.take("k", (minute(1), day(2)), NOW)).counts == (1, 1)
        for _ in range(3):
            assert await counters.take("k", (minute(1), day(2)), NOW) == Admission(
                ("minute",), (1, 1)
            )
        later = EpochMs(NOW + MINUTE)
        windows = (minute(1, later), day(2, later))
        assert await counters.take("k", windows, later) == Admission((), (1, 2))
        assert await counters.take("k", windows, later) == Admission(("minute", "day"), (1, 2))

    async def test_no_limit_counts_all_the_same(self, counters: Counters) -> None:
        """A window without a limit counts and never fills."""
        for count in (1, 2, 3):
            windows = (minute(None), day(None))
            assert await counters.take("k", windows, NOW) == Admission((), (count, count))

    async def test_one_window_or_none_will_do(self, counters: Counters) -> None:
        """A call may count in any number of windows, also in none."""
        assert await counters.take("k", (minute(1),), NOW) == Admission((), (1,))
        assert await counters.take("k", (), NOW) == Admission((), ())
        assert await counters.take("k", (minute(1),), NOW) == Admission(("minute",), (1,))

    async def test_a_limit_that_shrinks_or_is_zero_admits_none(self, counters: Counters) -> None:
        """A lower limit of a new plan holds at once; limit 0 admits nothing."""
        assert (await counters.take("k", (minute(5),), NOW)).admitted
        assert await counters.take("k", (minute(1),), NOW) == Admission(("minute",), (1,))
        assert await counters.take("z", (minute(0),), NOW) == Admission(("minute",), (0,))

    async def test_subjects_do_not_share(self, counters: Counters) -> None:
        """Each subject has its own counts."""
        windows = (minute(1),)
        assert (await counters.take("a", windows, NOW)).admitted
        assert (await counters.take("b", windows, NOW)).admitted
        assert not (await counters.take("a", windows, NOW)).admitted

    async def test_a_clock_set_back_grants_nothing(self, counters: Counters) -> None:
        """After the clock was in a later window, an earlier window is as full as before."""
        await counters.take("k", (minute(1),), NOW)
        later = EpochMs(NOW + 10 * MINUTE)
        await counters.take("k", (minute(1, later),), later)
        await counters.trim(EpochMs(NOW - DAY))
        assert not (await counters.take("k", (minute(1),), NOW)).admitted

    async def test_trimming_forgets_what_is_over(self, counters: Counters) -> None:
        """Windows that ended before the instant are deleted; later windows are kept."""
        later = EpochMs(NOW + 10 * MINUTE)
        await counters.take("k", (minute(1),), NOW)
        await counters.take("k", (minute(1, later),), later)
        await counters.trim(later)
        assert (await counters.take("k", (minute(1),), NOW)).admitted
        assert not (await counters.take("k", (minute(1, later),), later)).admitted

    async def test_the_last_use_is_known_to_a_minute(self, counters: Counters) -> None:
        """`last_used` is at most a minute before the last admission; refusals do not change it."""
        assert await counters.last_used("k") is None
        at = EpochMs(NOW + 12_345)
        await counters.take("k", (minute(1, at), day(9, at)), at)
        used = await counters.last_used("k")
        assert used is not None
        assert at - MINUTE <= used <= at
        later = EpochMs(at + 3 * MINUTE)
        await counters.take("k", (minute(0, later), day(9, later)), later)
        assert await counters.last_used("k") == used

    async def test_looking_counts_nothing(self, counters: Counters) -> None:
        """
        `peek_counts` counts nothing, and returns the number of calls that each window has admitted.
        """
        windows = (minute(2), day(9))
        assert await counters.peek_counts("k", windows) == (0, 0)
        await counters.take("k", windows, NOW)
        await counters.take("k", (day(9),), NOW)
        assert (
            await counters.peek_counts("k", windows)
            == await counters.peek_counts("k", windows)
            == (1, 2)
        )
        assert await counters.peek_counts("other", windows) == (0, 0)

    async def test_closing_twice_is_fine(self, counters: Counters) -> None:
        """`close` may be called twice."""
        await counters.close()
        await counters.close()
