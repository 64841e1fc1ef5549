"""Console sessions: how long they last, and when a login is locked. Contract §6."""

from attrs import evolve

from wfcore.errors import AuthReason, TooManyAttempts, Unauthenticated
from wfcore.instants import MINUTE, EpochMs
from wfcore.model.access import Session
from wfcore.model.window import Taken, Window
from wfcore.rules.limits import LOGIN_TRIES, LOGIN_WINDOW, SESSION_IDLE, SESSION_MAX


def require_alive(session: Session | None, now: EpochMs) -> Session:
    """The session, unless it idled for 12 h or is 7 days old. Raises `Unauthenticated`. SE-1."""
    if (
        session is None
        or now >= session.last_seen_at + SESSION_IDLE
        or now >= session.created_at + SESSION_MAX
    ):
        account_id = session.account_id if session else None
        raise Unauthenticated(AuthReason.SESSION_INVALID, account_id)
    return session


def touched(session: Session, now: EpochMs) -> Session | None:
    """The session seen now, once a minute at most; None: nothing worth storing."""
    if now - session.last_seen_at < MINUTE:
        return None
    return evolve(session, last_seen_at=now)


def login_window(now: EpochMs) -> Window:
    """
    The window that failed logins of one name are counted in: 15 minutes, aligned. SE-2.

    The tenth failure fills it and locks the login until the window after it has gone by.
    """
    start = now - now % LOGIN_WINDOW
    return Window("login", EpochMs(start), EpochMs(start + LOGIN_WINDOW), LOGIN_TRIES)


def require_unlocked(window: Window, taken: Taken, now: EpochMs) -> None:
    """Raises `TooManyAttempts` while the window is full. SE-2."""
    if taken.full:
        raise TooManyAttempts(max(-(-(window.end - now) // 1_000), 1))
