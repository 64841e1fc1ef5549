"""Quota windows: aligned, exact at their boundaries, and honest about when to come back."""

from datetime import UTC, datetime

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from wfcore.errors import InvalidInput, RateLimited
from wfcore.model.access import Admission, Tier, Window
from wfcore.rules.auth.rate_limit import Count, Ledger, Quota, nearly_used, verdict, windows
from wfcore.rules.limits import REQUESTS
from wfcore.rules.webhooks.webhook import utc_date
from wfcore.testing.strategies.values import instants
from wfcore.time import DAY, MINUTE, EpochMs

plans = st.sampled_from(Tier)


@pytest.mark.parametrize(
    ("plan", "per_minute", "per_day"),
    [
        (Tier.FREE, 60, 2_000),
        (Tier.PRO, 300, 50_000),
        (Tier.TEAM, 1_200, 500_000),
        (Tier.ENTERPRISE, 6_000, None),
    ],
)
def test_the_quotas_of_the_plans(plan, per_minute, per_day):
    """RL-1: the numbers of the table, one window each."""
    assert REQUESTS[plan] == (per_minute, per_day)
    minute, day = windows(plan, EpochMs(0))
    assert (minute.kind, minute.limit, day.kind, day.limit) == (
        "minute",
        per_minute,
        "day",
        per_day,
    )


@given(plans, instants())
def test_windows_are_aligned_and_hold_the_instant(plan, now):
    """RL-2: the epoch minute and the UTC date, neither sliding."""
    minute, day = windows(plan, now)
    for window, length in ((minute, MINUTE), (day, DAY)):
        assert window.start <= now < window.end
        assert window.end - window.start == length
        assert window.start % length == 0
    assert utc_date(day.start) == utc_date(now) == utc_date(EpochMs(day.end - 1))
    assert utc_date(day.end) > utc_date(now)
    start = datetime.fromtimestamp(minute.start / 1_000, UTC)
    assert (start.second, start.microsecond) == (0, 0)


@given(plans, instants())
def test_a_window_s_end_is_the_start_of_the_next(plan, now):
    """RL-2: at the boundary itself everything is fresh."""
    for before, after in zip(
        windows(plan, now), windows(plan, windows(plan, now)[0].end), strict=True
    ):
        assert after.start in (before.start, before.end)
    minute, day = windows(plan, now)
    assert windows(plan, minute.end)[0].start == minute.end
    assert windows(plan, day.end)[1].start == day.end
    assert windows(plan, EpochMs(minute.end - 1))[0] == minute
    assert windows(plan, EpochMs(day.end - 1))[1] == day


@given(plans, instants(), st.sets(st.sampled_from(["minute", "day"]), min_size=1))
def test_retry_after_reaches_exactly_the_boundary(plan, now, full):
    """RL-3: whole seconds, enough to be in the next window, and not one more."""
    asked = windows(plan, now)
    with pytest.raises(RateLimited) as refused:
        verdict(asked=asked, taken=Admission(tuple(sorted(full)), (0, 0)), now=now)
    end = next(window.end for window in asked if window.kind == refused.value.window)
    wait_ms = refused.value.retry_after_s * 1_000
    assert now + wait_ms - 1_000 < end <= now + wait_ms
    assert refused.value.retry_after_s >= 1


@given(plans, instants())
def test_with_both_windows_full_the_day_is_reported(plan, now):
    """RL-3: coming back in a minute would be no use."""
    asked = windows(plan, now)
    for full in (("minute", "day"), ("day", "minute"), ("day",)):
        with pytest.raises(RateLimited) as refused:
            verdict(asked=asked, taken=Admission(full, (0, 0)), now=now)
        assert (refused.value.window, refused.value.limit) == ("day", asked[1].limit or 0)


@given(plans, instants(), st.data())
def test_a_success_tells_what_is_left_of_the_tighter_window(plan, now, data):
    """RL-6: the window with fewer requests left, and its limit."""
    asked = windows(plan, now)
    counts = tuple(data.draw(st.integers(1, window.limit or 10**9)) for window in asked)
    quota = verdict(asked=asked, taken=Admission((), counts), now=now)
    left = {w.kind: w.limit - n for w, n in zip(asked, counts, strict=True) if w.limit}
    assert quota.remaining == min(left.values()) == left[quota.window] >= 0
    assert quota.limit == next(window.limit for window in asked if window.kind == quota.window)


def test_of_two_windows_with_as_much_left_the_minute_is_told():
    """RL-6: it is the one that is fresh again sooner."""
    asked = windows(Tier.FREE, EpochMs(0))
    quota = verdict(asked=asked, taken=Admission((), (1, 1_941)), now=EpochMs(0))
    assert quota == Quota(60, 59, "minute")


def test_an_admission_that_counted_other_windows_is_none():
    """RL-6: what is left is never told of half the windows."""
    asked = windows(Tier.FREE, EpochMs(0))
    with pytest.raises(InvalidInput, match="taken: has 1 counts for 2 windows"):
        verdict(asked=asked, taken=Admission((), (1,)), now=EpochMs(0))


def test_windows_without_limits_have_nothing_to_tell():
    """It is said so; and nothing can be given in the wrong order."""
    unlimited = (Window("minute", EpochMs(0), EpochMs(60_000), None),)
    with pytest.raises(InvalidInput, match="asked: no window has a limit"):
        verdict(asked=unlimited, taken=Admission((), (1,)), now=EpochMs(0))
    with pytest.raises(TypeError):
        verdict(Admission((), (1,)), unlimited, EpochMs(0))


@given(st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 3 * MINUTE)), max_size=200))
def test_a_ledger_admits_as_many_as_each_window_has_room_for(asked):
    """RL-4: by subject and window; what one window refuses takes from no other."""
    ledger, admitted = Ledger(), dict[tuple[str, str, int], int]()
    for subject, at in asked:
        minute, day = windows(Tier.FREE, EpochMs(at))
        narrow = [evolve(minute, limit=3), evolve(day, limit=5)]
        keys = [(subject, one.kind, one.start) for one in narrow]
        counts = tuple(admitted.get(key, 0) for key in keys)
        full = tuple(
            one.kind for one, count in zip(narrow, counts, strict=True) if count >= one.limit
        )
        assert ledger.peek_counts(subject, narrow) == counts
        taken = ledger.take(subject, narrow)
        if full:
            assert taken == Admission(full, counts)
        else:
            assert taken == Admission((), tuple(count + 1 for count in counts))
            admitted |= dict(zip(keys, taken.counts, strict=True))
        assert ledger.peek_counts(subject, narrow) == tuple(admitted.get(key, 0) for key in keys)


def test_a_ledger_forgets_what_is_over():
    """RL-4: a window that ended before that instant, and no other."""
    ledger = Ledger()
    minute, day = windows(Tier.PRO, EpochMs(0))
    ledger.take("a", [minute, day])
    ledger.trim(minute.end)
    assert ledger.peek_counts("a", [minute, day]) == (1, 1)
    ledger.trim(EpochMs(minute.end + 1))
    assert ledger.counts == {("a", "day", day.start): Count(1, day.end)}


@pytest.mark.parametrize("limit", [1, 5, 10, 15, 100, 1_000])
def test_that_a_tenth_of_the_day_is_left_is_told_once(limit: int) -> None:
    """NT-3: after one request of each day, whichever window comes first; never if it is full."""
    day = Window("day", EpochMs(0), EpochMs(DAY), limit)
    minute = Window("minute", EpochMs(0), EpochMs(MINUTE), limit)
    counts = range(1, limit + 1)
    told = [n for n in counts if nearly_used((minute, day), Admission((), (0, n))) == day]
    assert told == [limit - limit // 10]
    assert nearly_used((day, minute), Admission((), (told[0], 0))) == day
    assert nearly_used((minute, day), Admission((), (told[0], 0))) is None, "a minute is over soon"
    assert nearly_used((minute, day), Admission(("minute",), (limit, told[0]))) is None
    unlimited = evolve(day, limit=None)
    assert nearly_used((minute, unlimited), Admission((), (0, told[0]))) is None
