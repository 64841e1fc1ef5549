"""Console sessions and locked logins."""

import pytest
from attrs import evolve
from hypothesis import example, given
from hypothesis import strategies as st

from wfcore.errors import AuthReason, LinkOver, TooManyAttempts, Unauthenticated, Unvouched
from wfcore.model.access import Identity, Login, LoginLink, SignOnTerms
from wfcore.rules.auth.session import (
    failed,
    is_current,
    require_alive,
    require_current,
    require_good,
    require_unlocked,
    require_vouched,
    signed_out,
    touched,
)
from wfcore.rules.limits import LOGIN_TRIES, LOGIN_WINDOW, SESSION_IDLE, SESSION_MAX
from wfcore.testing import builders
from wfcore.testing.builders import NOW
from wfcore.testing.strategies.values import instants
from wfcore.time import DAY, HOUR, MINUTE, EpochMs


def test_the_lengths():
    """SE-1, SE-2: 12 h idle, 7 days at most; ten tries in 15 minutes."""
    assert (SESSION_IDLE, SESSION_MAX) == (12 * HOUR, 7 * DAY)
    assert (LOGIN_TRIES, LOGIN_WINDOW) == (10, 15 * MINUTE)


@given(
    instants(),
    st.integers(0, 8 * DAY) | st.sampled_from((0, 7 * DAY - 12 * HOUR, 7 * DAY)),
    st.integers(0, 13 * HOUR),
)
@example(NOW, 7 * DAY - 1, 1)
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
            told = (refused.value.reason, refused.value.account_id)
            assert told == (AuthReason.SESSION_INVALID, session.account_id)


@given(instants(), st.integers(-2, 2), st.integers(0, 2), st.integers(0, 2))
def test_a_link_signs_in_before_its_end_and_the_end_of_all_sessions(now, left, made, epoch):
    """SE-7: up to the millisecond before either; whom it signs in is the account as it is now."""
    account = builders.account(session_epoch=epoch)
    link = LoginLink("link", account.id, now, EpochMs(now + left), made)
    if left > 0 and made == epoch:
        assert require_good(link, account, now) == account
    else:
        with pytest.raises(LinkOver):
            require_good(link, account, now)


@pytest.mark.parametrize("gone", ["link", "account"])
def test_a_link_that_is_gone_or_whose_account_is_signs_nobody_in(gone):
    """SE-7: both look like a link that was used."""
    account = builders.account()
    link = LoginLink("link", account.id, NOW, EpochMs(NOW + 1))
    with pytest.raises(LinkOver):
        require_good(None if gone == "link" else link, None if gone == "account" else account, NOW)


@pytest.mark.parametrize(
    ("email", "domains", "signs_in"),
    [
        (" Ann@Example.ORG ", (), "ann@example.org"),
        ("ann@example.org", ("example.com", "example.org"), "ann@example.org"),
        ("ann@b@example.org", ("example.org",), "ann@b@example.org"),
    ],
)
def test_an_email_that_is_vouched_for_signs_in(email, domains, signs_in):
    """SE-9: in lower case; the domain is what follows the last @."""
    terms = SignOnTerms(frozenset(domains))
    assert require_vouched(Identity(email, True), terms) == signs_in


@pytest.mark.parametrize(
    ("email", "verified", "why"),
    [
        ("ann@example.org", False, "The provider has not verified your e-mail"),
        ("ann@example.org", "yes", "The provider has not verified your e-mail"),
        ("@example.org", True, "The provider has not verified your e-mail"),
        ("example.org", True, "The provider has not verified your e-mail"),
        (
            "ann@example.org.evil.example",
            True,
            "E-mails of example.org.evil.example are not admitted here",
        ),
        ("ann@example.org@evil.example", True, "E-mails of evil.example are not admitted here"),
    ],
)
def test_nobody_else_signs_in(email, verified, why):
    """SE-9: not verified, no email, or of another domain; the person reads which of these."""
    with pytest.raises(Unvouched) as refused:
        require_vouched(Identity(email, verified), SignOnTerms(frozenset({"example.org"})))
    assert str(refused.value) == why


@given(instants())
def test_no_session_is_an_invalid_one(now):
    """SE-1: an unknown cookie and an old one look alike."""
    with pytest.raises(Unauthenticated):
        require_alive(None, now)


@given(st.integers(0, 9), st.integers(0, 9))
def test_a_session_is_of_the_account_as_it_is_now(began, ended):
    """SE-4: it opens nothing once all were ended, and none that an older password began does."""
    account = builders.account(session_epoch=ended)
    session = builders.session(epoch=began)
    assert is_current(session, account, NOW) == (began == ended)
    assert not is_current(session, account, EpochMs(NOW + SESSION_IDLE))
    if began == ended:
        require_current(session, account)
    else:
        with pytest.raises(Unauthenticated) as refused:
            require_current(session, account)
        told = (refused.value.reason, refused.value.account_id)
        assert told == (AuthReason.SESSION_INVALID, account.id)


@given(st.integers(0, 9))
def test_signing_out_everywhere_ends_what_there_is_and_what_there_was(epoch):
    """SE-4: no session of before is current again, however often all are ended."""
    before = account = builders.account(session_epoch=epoch)
    for _ in range(3):
        account = signed_out(account)
        assert account == evolve(before, session_epoch=account.session_epoch)
        assert account.session_epoch > epoch
        epoch = account.session_epoch


@given(instants(), st.integers(0, 5 * MINUTE))
@example(NOW, MINUTE)
def test_a_session_is_written_once_a_minute_at_most(seen, by):
    """SE-1: being seen prolongs it, never its age."""
    session = builders.session(created_at=seen, last_seen_at=seen)
    now = EpochMs(seen + by)
    later = touched(session, now)
    if by < MINUTE:
        assert later is None
    else:
        assert later == evolve(session, last_seen_at=now)


@given(instants(), st.lists(st.integers(0, 5 * MINUTE), min_size=12, max_size=40))
def test_ten_failures_within_fifteen_minutes_lock_for_fifteen(start, gaps):
    """SE-2: a login is locked exactly from its tenth failure within the window, for the window."""
    login, now, counted = None, start, []
    for gap in gaps:
        now += gap
        if login is not None and login.locked_until is not None and now < login.locked_until:
            with pytest.raises(TooManyAttempts) as refused:
                require_unlocked(login, now)
            back = now + refused.value.retry_after_s * 1_000
            assert back - 1_000 < login.locked_until <= back
            continue
        require_unlocked(login, now)
        counted = [at for at in counted if at > now - LOGIN_WINDOW] + [now]
        login = failed(login, "login_1", now)
        if len(counted) == LOGIN_TRIES:
            assert login.locked_until == now + LOGIN_WINDOW
            counted = []
        else:
            assert login.locked_until is None


@given(instants(), st.integers(0, LOGIN_TRIES - 1), st.integers(0, 9))
def test_a_failure_is_noted_and_nothing_else(now, before, version):
    """SE-2: the failures that count with their instants, or none and the end of the lock."""
    earlier = (NOW,) * before
    login = builders.login("login_9", failures=earlier, version=version, locked_until=NOW)
    locks = before == LOGIN_TRIES - 1
    assert failed(login, "login_9", NOW) == Login(
        "login_9",
        () if locks else (*earlier, NOW),
        NOW,
        EpochMs(NOW + 15 * MINUTE) if locks else None,
        version,
    )
    assert failed(None, "login_9", now) == Login("login_9", (now,), now)


def test_a_login_without_failures_is_open():
    """SE-2: a name that nobody tried is not locked."""
    require_unlocked(None, 0)


def test_a_lock_ends_at_its_instant():
    """SE-2: the millisecond before it is locked for another second."""
    login = builders.login(locked_until=NOW)
    require_unlocked(login, NOW)
    with pytest.raises(TooManyAttempts) as refused:
        require_unlocked(login, EpochMs(NOW - 1))
    assert refused.value.retry_after_s == 1


def test_failures_further_apart_than_the_window_do_not_add_up():
    """SE-2: nine failures, and a tenth a quarter of an hour after the first: open."""
    login = None
    for n in range(LOGIN_TRIES - 1):
        login = failed(login, "login_1", n)
    assert failed(login, "login_1", LOGIN_WINDOW - 1).locked_until is not None
    assert failed(login, "login_1", LOGIN_WINDOW).locked_until is None
