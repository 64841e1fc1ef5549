"""Another attempt, or the end: `retry` and `continueOnError`. DF-9, EX-10."""

from hypothesis import given
from hypothesis import strategies as st

from wfcore.instants import DAY, DurationMs
from wfcore.model.workflow import Retry
from wfcore.rules import execution_machine as facts
from wfcore.rules.proceed import after_failure, end_badly
from wfcore.testing import builders
from wfcore.testing.builders import NOW

delays = st.integers(0, 10**9).map(DurationMs)
backoffs = st.floats(1, 10)


def failed(step, attempts, permanent=False, timed_out=False):
    return after_failure(step, attempts, "no", NOW, permanent=permanent, timed_out=timed_out)


def step_with(*retry, **fields):
    return builders.code_step("work", retry=Retry(*retry), **fields)


@given(st.integers(1, 50), delays, backoffs, st.booleans(), st.booleans())
def test_a_step_has_exactly_its_attempts(attempts, delay, backoff, tolerated, timed_out):
    """DF-9: every attempt before the last is followed by another, the last one by the end."""
    step = step_with(attempts, delay, backoff, continue_on_error=tolerated)
    for attempt in range(1, attempts):
        assert isinstance(failed(step, attempt, timed_out=timed_out), facts.StepRetrying)
    last = failed(step, attempts, timed_out=timed_out)
    assert last == end_badly(step, "no", timed_out)


@given(st.integers(2, 6), st.integers(1, 5), delays, st.sampled_from([1.0, 1.5, 2.0, 3.0]))
def test_the_nth_wait_grows_by_the_backoff(attempts, attempt, delay, backoff):
    """DF-9: `delay * backoff^(n-1)` after the n-th failure, never over a day."""
    fact = failed(step_with(max(attempts, attempt + 1), delay, backoff), attempt)
    assert fact.retry_at - NOW == int(min(delay * backoff ** (attempt - 1), DAY))


@given(st.integers(1, 10**6), delays, st.floats(0, 1e300))
def test_no_backoff_is_too_large_to_compute(attempt, delay, backoff):
    """DF-9: however many attempts, the wait is between nothing and a day."""
    fact = failed(step_with(attempt + 1, delay, backoff), attempt)
    assert 0 <= fact.retry_at - NOW <= DAY


@given(st.integers(1, 5), st.integers(1, 5), st.booleans())
def test_a_permanent_failure_is_not_tried_again(attempts, attempt, timed_out):
    """DF-9: what cannot get better ends at once."""
    step = step_with(attempts)
    fact = failed(step, min(attempt, attempts), permanent=True, timed_out=timed_out)
    assert fact == facts.Broke("no", "work", timed_out)


@given(st.text(), st.booleans())
def test_a_tolerated_failure_is_a_way_on(error, timed_out):
    """EX-10: `continueOnError` makes a final failure the step's alone."""
    tolerated = step_with(continue_on_error=True)
    assert end_badly(tolerated, error, timed_out) == facts.StepFailed("work", error)
    assert end_badly(step_with(), error, timed_out) == facts.Broke(error, "work", timed_out)
