"""Another attempt, or the end: `retry` and `continueOnError`. DF-9, EX-10."""

import pytest
from attrs import evolve
from hypothesis import example, given
from hypothesis import strategies as st

from wfcore.model.execution import StepStatus
from wfcore.model.workflow import ApprovalStep, DelayStep, Retry
from wfcore.rules.backoff import JITTER, Backoff, draw
from wfcore.rules.execution import machine as facts
from wfcore.rules.execution.retry import (
    after_failure,
    end_badly,
    lasting_postponement,
    postponement,
)
from wfcore.testing import builders
from wfcore.testing.builders import NOW, code_step
from wfcore.time import DAY, DurationMs

delays = st.integers(0, 10**9).map(DurationMs)
backoffs = st.floats(1, 10)


def failed(step, attempts, id="exec_1", **how):
    result = builders.step_result(StepStatus.RUNNING, attempts=attempts)
    run = builders.execution(id, step_results={"work": result})
    return after_failure(run, step, "work", "no", NOW, **how)


def step_with(*retry, **fields):
    return builders.code_step("work", retry=Retry(*retry), **fields)


@given(st.integers(1, 50), delays, backoffs, st.booleans(), st.booleans())
def test_a_step_has_exactly_its_attempts(attempts, delay, backoff, tolerated, timed_out):
    """DF-9: every attempt before the last is followed by another, the last one by the end."""
    step = step_with(attempts, delay, backoff, continue_on_error=tolerated)
    for attempt in range(1, attempts):
        assert isinstance(failed(step, attempt, timed_out=timed_out), facts.StepRetrying)
    last = failed(step, attempts, timed_out=timed_out)
    assert last == end_badly(step, "work", "no", timed_out)


@given(st.integers(2, 6), st.integers(1, 5), delays, st.sampled_from([1.0, 1.5, 2.0, 3.0]))
def test_the_nth_wait_grows_by_the_backoff(attempts, attempt, delay, backoff):
    """DF-9: `delay * backoff^(n-1)` after the n-th failure, up to a quarter more, at most a day."""
    fact = failed(step_with(max(attempts, attempt + 1), delay, backoff), attempt)
    stated = delay * backoff ** (attempt - 1)
    assert int(min(stated, DAY)) <= fact.retry_at - NOW <= min(stated * (1 + JITTER), DAY)


@given(st.integers(1, 9), delays, backoffs, st.sampled_from(["exec_1", "exec_2"]))
def test_the_wait_is_the_stated_one_and_what_was_drawn(attempt, delay, backoff, id):
    """DF-9: drawn anew for each execution, step and attempt; the failure is told with it."""
    drawn = draw("/".join((id, "work", str(attempt))))
    longest = delay * backoff ** (attempt - 1) * (1 + JITTER * drawn)
    told = facts.StepRetrying("work", "no", NOW + int(min(longest, DAY)))
    assert failed(step_with(attempt + 1, delay, backoff), attempt, id=id) == told


@pytest.mark.parametrize(("delay", "wait"), [(0, 0), (1, DAY)])
def test_a_wait_without_end_is_a_day(delay, wait):
    """DF-9: where the stated wait is beyond all numbers; nothing stays nothing."""
    fact = failed(step_with(2_000, DurationMs(delay), 10.0), 1_999)
    assert fact.retry_at == NOW + wait


@pytest.mark.parametrize("step", [DelayStep("work", 5), ApprovalStep("work"), code_step("work")])
def test_where_nothing_is_said_the_first_failure_is_final(step):
    """DF-9: of a step without `retry`, and of one that can have none."""
    run = builders.execution(step_results={"work": builders.step_result(StepStatus.RUNNING)})
    assert after_failure(run, step, "work", "no", NOW) == facts.StepFailed("work", "no", steps=0)


@given(st.integers(1, 10**6), delays, st.floats(0, 1e300))
def test_no_backoff_is_too_large_to_compute(attempt, delay, backoff):
    """DF-9: however many attempts, the wait is between nothing and a day."""
    fact = failed(step_with(attempt + 1, delay, backoff), attempt)
    assert 0 <= fact.retry_at - NOW <= DAY


@given(st.integers(0, 200), st.integers(1, 9))
def test_what_could_not_begin_begins_again_with_longer_and_longer_waits(postponed, attempt):
    """EX-27: a quarter of a second, twice as long each time, 30 s at most; and never an end."""
    result = builders.step_result(StepStatus.RUNNING, attempts=attempt, postponed=postponed)
    run = builders.execution(step_results={"work": result})
    fact = postponement(run, "work", "no room", NOW)
    stated = min(250 * 2**postponed, 30_000)
    assert (fact.step_name, fact.why) == ("work", "no room")
    drawn = draw(f"exec_1/work+{postponed}/{attempt}")
    assert fact.retry_at - NOW == int(stated * (1 + JITTER * drawn))


@given(st.integers(0, 40), st.integers(1, 9), st.booleans())
@example(14, 1, False)
@example(15, 1, False)
def test_what_time_does_not_cure_is_tried_so_many_times(postponed, attempt, tolerated):
    """EX-27: until then as any other, in words that say so; then the step has failed for good."""
    result = builders.step_result(StepStatus.RUNNING, attempts=attempt, postponed=postponed)
    run = builders.execution(step_results={"work": result})
    step = evolve(step_with(9, DurationMs(5)), continue_on_error=tolerated)
    fact = lasting_postponement(run, step, "work", "no mounts", NOW)
    tries = postponed + 1
    if tries < 16:
        told = f"no mounts (try {tries} of 16; after the last one the step fails)"
        assert fact == postponement(run, "work", told, NOW)
    else:
        said = f"could not be started in {tries} tries: no mounts"
        assert fact == facts.StepFailed("work", said, False, steps=1 if tolerated else 0)


def test_what_failed_together_does_not_come_back_together():
    """DF-9: the draw is the same for the same attempt, and spreads executions, steps, attempts."""
    step = step_with(3, DurationMs(100_000))
    waits = [failed(step, 1, id=f"exec_{n}").retry_at - NOW for n in range(200)]
    assert waits == [failed(step, 1, id=f"exec_{n}").retry_at - NOW for n in range(200)]
    assert len(set(waits)) > 190
    assert 100_000 <= min(waits) < 102_500
    assert 122_500 < max(waits) <= 125_000
    assert len({draw(f"exec_1/{key}/{attempt}") for key in "ab" for attempt in (1, 2)}) == 4


@given(st.integers(1, 10**4), st.floats(0, 10), st.floats(10, 100), st.floats(0, 1))
def test_waits_grow_to_the_longest_and_are_spread(tried, first, longest, drawn):
    """Each wait is at least the one before and its jitter at most a quarter, however many tries."""
    backoff = Backoff(first, longest)
    wait = backoff.wait(tried)
    assert backoff.wait(1) == first
    assert wait <= backoff.wait(tried + 1) <= longest
    assert wait <= backoff.wait(tried, drawn) <= wait * (1 + JITTER)
    assert not first or backoff.wait(10**4) == longest
    assert backoff.wait(tried, 1.0) == wait * (1 + JITTER)


@given(st.integers(1, 5), st.integers(1, 5), st.booleans())
def test_a_permanent_failure_is_not_tried_again(attempts, attempt, timed_out):
    """DF-9: what cannot get better ends at once."""
    step = step_with(attempts)
    fact = failed(step, min(attempt, attempts), permanent=True, timed_out=timed_out)
    assert fact == facts.StepFailed("work", "no", timed_out, steps=0)


@given(st.text(), st.booleans())
def test_a_tolerated_failure_is_done_with(error, timed_out):
    """EX-10: `continueOnError` makes a final failure the step's alone."""
    tolerated = end_badly(step_with(continue_on_error=True), "work", error, timed_out)
    assert tolerated == facts.StepFailed("work", error, timed_out, steps=1)
    deadly = end_badly(step_with(), "work", error, timed_out)
    assert deadly == facts.StepFailed("work", error, timed_out, steps=0)
