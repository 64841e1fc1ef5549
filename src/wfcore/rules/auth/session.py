"""Console sessions: how long they last, and when a login is locked."""

from collections import Counter
from enum import StrEnum
from ipaddress import IPv6Address, IPv6Network, ip_address
from unicodedata import normalize

from attrs import define, evolve, field

from wfcore.errors import (
    AuthReason,
    LinkOver,
    TooManyAttempts,
    TooManyLogins,
    Unauthenticated,
    Unvouched,
)
from wfcore.model.access import Account, Identity, Login, LoginLink, Session, SignOnTerms
from wfcore.rules.limits import (
    LINKS_EACH,
    LOGIN_TRIES,
    LOGIN_WINDOW,
    LOGINS_EACH,
    LOGINS_IN_ALL,
    SESSION_IDLE,
    SESSION_MAX,
)
from wfcore.rules.mailbox import same_name
from wfcore.time import HOUR, MINUTE, EpochMs, later


def require_alive(session: Session | None, now: EpochMs) -> Session:
    """The session, unless it was idle for 12 h or is 7 days old. Raises `Unauthenticated`. SE-1."""
    if (
        session is None
        or now >= session.last_seen_at + SESSION_IDLE
        or now >= session.created_at + SESSION_MAX
    ):
        account_id = session.account_id if session else None
        raise Unauthenticated(AuthReason.SESSION_INVALID, account_id)
    return session


def require_current(session: Session, account: Account) -> None:
    """
    Raises `Unauthenticated` if all sessions of *account* were ended after the password check that
    started *session*. SE-4.
    """
    if session.epoch != account.session_epoch:
        raise Unauthenticated(AuthReason.SESSION_INVALID, account.id)


def signed_out(account: Account) -> Account:
    """The account with all of its sessions ended, including those that are just starting. SE-4."""
    return evolve(account, session_epoch=account.session_epoch + 1)


def is_current(session: Session, account: Account, now: EpochMs) -> bool:
    """Whether *session* still opens the console for *account*."""
    try:
        require_current(require_alive(session, now), account)
    except Unauthenticated:
        return False
    return True


def require_good(link: LoginLink | None, account: Account | None, now: EpochMs) -> Account:
    """
    The account that *link* signs in. Raises `LinkOver` for a link that does not exist, has expired,
    or was made before all sessions were ended. SE-7.
    """
    if link is None or account is None or now >= link.expires_at:
        raise LinkOver
    if link.epoch != account.session_epoch:
        raise LinkOver
    return account


def require_vouched(identity: Identity, terms: SignOnTerms) -> str:
    """
    The email that a provider confirms, in lower case. Raises `Unvouched` for an email that the
    provider did not verify, for a domain outside the terms, and for an email that would become
    another person's in lower case. SE-9.
    """
    email = same_name(identity.email)
    name, _, domain = email.rpartition("@")
    if identity.verified is not True or not name or is_look_alike(identity.email):
        raise Unvouched("The provider has not verified your e-mail")
    if terms.domains and domain not in terms.domains:
        raise Unvouched(f"E-mails of {domain} are not admitted here")
    return email


def is_look_alike(email: str) -> bool:
    """
    Whether lower case without blanks turns the email into another email, as a Kelvin sign becomes a
    k.
    """
    return email.strip().lower().isascii() and not email.isascii()


def touched(session: Session, now: EpochMs) -> Session | None:
    """
    The session with the present time as its last use; None if that was recorded within the last
    minute.
    """
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
    The login record after one more failure. The tenth failure within 15 minutes locks the login for
    15 minutes. SE-2.

    The id is derived from the login name, so that unknown names are locked like known ones.
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


_NEIGHBOURS = 64
"""
The prefix length of an IPv6 network that counts as one client, who may use every address in the
network.
"""


class SignInMethod(StrEnum):
    """The ways to sign in. The logins of each way are counted separately. SE-6."""

    PASSWORD = "password"  # noqa: S105 - the name of a way
    LINK = "link"
    """A link, or an identity provider. What the client sends cannot be guessed."""
    MAIL = "mail"
    """The request for a link by mail."""


@define
class LoginTraffic:
    """
    Counts the logins of the current minute in one process. SE-6.

    Refused logins do not count, so that one address can neither use up the limit that all share nor
    fill this record with addresses. Successful logins are taken back, once a minute for each
    account: so an office behind one address can sign in on Monday morning, but nobody can keep the
    processor busy with one valid password.
    """

    _minute: EpochMs = EpochMs(-1)
    _of: Counter[tuple[SignInMethod, str]] = field(factory=Counter)
    _signed_in: set[tuple[SignInMethod, str]] = field(factory=set)

    def admit(
        self, address: str | None, now: EpochMs, way: SignInMethod = SignInMethod.PASSWORD
    ) -> None:
        """Count one login from *address*. Raises `TooManyLogins`."""
        minute = EpochMs(now - now % MINUTE)
        if minute != self._minute:
            self._minute = minute
            self._of.clear()
            self._signed_in.clear()
        client = way, one_client(address or "")
        in_all = sum(count for (one, _), count in self._of.items() if one is way)
        if self._of[client] >= LOGINS_EACH or in_all >= LOGINS_IN_ALL:
            raise TooManyLogins(-(-(minute + MINUTE - now) // 1_000))
        self._of[client] += 1

    def succeeded(
        self, address: str | None, account_id: str, way: SignInMethod = SignInMethod.PASSWORD
    ) -> None:
        """Take back the count of an admitted login that signed in *account_id*."""
        client = way, one_client(address or "")
        if (way, account_id) not in self._signed_in and self._of[client] > 0:
            self._signed_in.add((way, account_id))
            self._of[client] -= 1


def normal_password(password: str) -> str:
    """
    The form of a password that is hashed: the same letters are the same password on every keyboard.
    SE-11.
    """
    return normalize("NFC", password)


_LONGEST_EMAIL = 320


@define
class LinkTraffic:
    """
    Counts the links that were requested in the current hour in one process: 5 for each email, known
    or unknown. SE-10.
    """

    _hour: EpochMs = EpochMs(-1)
    _of: Counter[str] = field(factory=Counter)

    def admits(self, email: str, now: EpochMs) -> bool:
        """Count one more link for *email*. Returns False if the limit is reached."""
        hour = EpochMs(now - now % HOUR)
        if hour != self._hour:
            self._hour = hour
            self._of.clear()
        name = same_name(email)[:_LONGEST_EMAIL]
        self._of[name] += 1
        return self._of[name] <= LINKS_EACH


def one_client(address: str) -> str:
    """
    The unit that counts as one client: an IPv4 address, or the /64 network of an IPv6 address.
    """
    try:
        found = ip_address(address)
    except ValueError:
        return address
    if not isinstance(found, IPv6Address):
        return str(found)
    return str(found.ipv4_mapped or IPv6Network((int(found), _NEIGHBOURS), strict=False))
