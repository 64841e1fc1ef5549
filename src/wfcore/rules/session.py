"""Console sessions: how long they last, and when a login is locked. Contract §6."""

from attrs import evolve

from wfcore.errors import AuthReason, TooManyAttempts, Unauthenticated
from wfcore.instants import MINUTE, EpochMs, later
from wfcore.model.access import Login, Session
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


def require_unlocked(login: Login | None, now: EpochMs) -> None:
    """Raises `TooManyAttempts` while the login is locked. SE-2."""
    until = login.locked_until if login else None
    if until is not None and now < until:
        raise TooManyAttempts(-(-(until - now) // 1_000))


def failed(login: Login | None, id: str, now: EpochMs) -> Login:
    """
    The login after one more failure. The tenth within 15 minutes locks it for 15. SE-2.

    The id is that of the login name, so that unknown names lock like known ones.
    """
    before = login.failures if login else ()
    recent = (*(at for at in before if at > now - LOGIN_WINDOW), now)
    locks = len(recent) >= LOGIN_TRIES
    return Login(
        id,
        () if locks else recent,
        now,
        later(now, LOGIN_WINDOW) if locks else None,
        login.version if login else 0,
    )
