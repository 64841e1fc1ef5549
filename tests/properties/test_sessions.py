"""Console sessions and locked logins. Contract §6."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wfcore.errors import AuthReason, Unauthenticated
from wfcore.instants import DAY, HOUR, MINUTE, EpochMs
from wfcore.rules.limits import LOGIN_TRIES, LOGIN_WINDOW, SESSION_IDLE, SESSION_MAX
from wfcore.rules.session import login_window, require_alive, touched
from wfcore.testing import builders
from wfcore.testing.strategies import instants


def test_the_lengths():
    """SE-1, SE-2: 12 h idle, 7 days at most; ten tries in 15 minutes."""
    assert (SESSION_IDLE, SESSION_MAX) == (12 * HOUR, 7 * DAY)
    assert (LOGIN_TRIES, LOGIN_WINDOW) == (10, 15 * MINUTE)


@given(instants(), st.integers(0, 8 * DAY), st.integers(0, 13 * HOUR))
def test_a_session_ends_by_idling_and_by_age(created_at, seen_after, idle):
    """SE-1: the millisecond before either end it lives, from then on it does not."""
    last_seen_at = EpochMs(created_at + seen_after)
    session = builders.session(created_at=created_at, last_seen_at=last_seen_at)
    end = min(last_seen_at + SESSION_IDLE, created_at + SESSION_MAX)
    for now in (last_seen_at + idle, end - 1, end, end + 1):
        if now < end:
            assert require_alive(session, EpochMs(now)) is session
        else:
            with pytest.raises(Unauthenticated) as refused:
                require_alive(session, EpochMs(now))
            assert refused.value.reason is AuthReason.SESSION_INVALID


@given(instants())
def test_no_session_is_an_invalid_one(now):
    """SE-1: an unknown cookie and an old one look alike."""
    with pytest.raises(Unauthenticated):
        require_alive(None, now)


@given(instants(), st.integers(0, 5 * MINUTE))
def test_a_session_is_written_once_a_minute_at_most(seen, by):
    """SE-1: being seen prolongs it, never its age."""
    session = builders.session(created_at=seen, last_seen_at=seen)
    now = EpochMs(seen + by)
    later = touched(session, now)
    if by < MINUTE:
        assert later is None
    else:
        assert (later.last_seen_at, later.created_at) == (now, session.created_at)


@given(instants())
def test_failures_are_counted_in_aligned_quarters_of_an_hour(now):
    """SE-2: the window holds the instant, and its limit is ten."""
    window = login_window(now)
    assert window.start <= now < window.end
    assert (window.start % LOGIN_WINDOW, window.end - window.start) == (0, LOGIN_WINDOW)
    assert window.limit == LOGIN_TRIES
    assert login_window(window.end).start == window.end
