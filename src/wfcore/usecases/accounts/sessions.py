"""Console sessions: sign-in, use, sign-out."""

from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256

from attrs import evolve, frozen

from wfcore.errors import (
    AccountBlocked,
    AuthReason,
    InvalidInput,
    NotFound,
    PasskeyAwaited,
    TooManyAttempts,
    Unauthenticated,
)
from wfcore.model.access import (
    OPERATOR,
    Account,
    AccountStatus,
    Login,
    LoginLink,
    Principal,
    Session,
    Unrestricted,
)
from wfcore.model.json import JsonObject
from wfcore.model.notice import NoticeKind
from wfcore.ports.notices import Message, NoticeLine, Notifier
from wfcore.ports.store import Unit
from wfcore.rules.auth.access import person, require_active
from wfcore.rules.auth.session import (
    SignInMethod,
    failed,
    is_current,
    normal_password,
    require_alive,
    require_current,
    require_good,
    require_unlocked,
    signed_out,
    touched,
)
from wfcore.rules.limits import LOGIN_LINK, LOGIN_LINK_MAX
from wfcore.rules.mailbox import same_name
from wfcore.rules.notices.facts import MAIL
from wfcore.time import MINUTE, DurationMs, EpochMs, later
from wfcore.usecases.audit.auditing import Origin, note, note_denial
from wfcore.usecases.services import Services
from wfcore.usecases.unit_of_work import retried

TOKEN_LENGTH = 43


@frozen
class SignedIn:
    """A new session. The token is for the cookie and is not stored."""

    account: Account
    token: str

    def __repr__(self) -> str:
        return f"SignedIn({self.account.id})"


def session_id(token: str) -> str:
    """The stored part of a cookie's token: its hash."""
    return sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


async def sign_in(
    services: Services, email: str, password: str, origin: Origin, previous: str | None = None
) -> SignedIn:
    """
    A new session for the correct password; the session of the token *previous* ends. SE-1, SE-2,
    SE-5.

    Ten failures in 15 minutes lock that login, even for the correct password. An unknown email
    takes as long as a known email. Logins above the limit per minute are neither checked nor
    recorded, because they would flood the audit log. SE-6.

    Raises `TooManyLogins`, `TooManyAttempts`, `Unauthenticated`, `AccountBlocked`, `NotReady`;
    `PasskeyAwaited` for the correct password of an account that also asks for a passkey. SR-5.
    """
    services.login_traffic.admit(origin.ip, services.clock.now())
    login = session_id(same_name(email))
    try:
        await _require_unlocked(services, login)
        account = await _verified(services, email, password)
        if account is None:
            await _note_failure(services, login)
            raise Unauthenticated(AuthReason.SESSION_INVALID)
        require_active(account)
        if account.passkey_required:
            raise PasskeyAwaited(account.id)
        begun = await _begin(services, account, login, origin, previous)
        services.login_traffic.succeeded(origin.ip, account.id)
        return begun
    except (Unauthenticated, AccountBlocked, TooManyAttempts) as refusal:
        await note_denial(services, "session.create", refusal, origin)
        raise


async def _require_unlocked(services: Services, login: str) -> None:
    async with services.store.view() as view:
        require_unlocked(await view.get(Login, login), services.clock.now())


@retried
async def _note_failure(services: Services, login: str) -> None:
    async with services.store.unit() as unit:
        known = await unit.get(Login, login)
        unit.put(failed(known, login, services.clock.now()))
        await unit.commit()


@retried
async def _begin(
    services: Services, account: Account, login: str, origin: Origin, previous: str | None
) -> SignedIn:
    """
    A new session. Earlier failures are forgiven unless the login was locked meanwhile, so that
    passwords tried concurrently count like passwords tried one after another.
    """
    async with services.store.unit() as unit:
        require_unlocked(await unit.get(Login, login), services.clock.now())
        unit.discard(Login, login)
        begun = put_session(services, unit, account, previous)
        note(services, unit, "session.create", Principal(account), None, origin)
        await unit.commit()
    return begun


def put_session(services: Services, unit: Unit, account: Account, previous: str | None) -> SignedIn:
    """
    A new session of *account*. The session of the token *previous* ends. SE-5. The first session
    ends an invitation. AC-12.
    """
    if account.invited_at is not None:
        unit.put(evolve(account, invited_at=None))
    now, token = services.clock.now(), services.tokens.text(TOKEN_LENGTH)
    unit.put(Session(session_id(token), account.id, now, now, account.session_epoch))
    if previous:
        unit.discard(Session, session_id(previous))
    return SignedIn(account, token)


@retried
async def issue_login_link(
    services: Services,
    who: Principal | Unrestricted,
    account_id: str,
    origin: Origin,
    lasts: DurationMs = LOGIN_LINK,
) -> str:
    """
    The token of a new link that signs an account in once; only its hash is stored. SE-7.

    Raises `NotFound`, `AccountBlocked`, `InvalidInput` (*lasts* over a day).
    """
    if not 0 < lasts <= LOGIN_LINK_MAX:
        raise InvalidInput("minutes", f"must be from 1 to {LOGIN_LINK_MAX // MINUTE}")
    now, token = services.clock.now(), services.tokens.text(TOKEN_LENGTH)
    async with services.store.unit() as unit:
        account = await unit.get(Account, account_id)
        if account is None:
            raise NotFound("Account")
        require_active(account)
        expires_at = later(now, lasts)
        unit.put(LoginLink(session_id(token), account.id, now, expires_at, account.session_epoch))
        note(services, unit, "login_link.create", who, account.id, origin)
        await unit.commit()
    return token


async def mail_login_link(
    services: Services,
    who: Principal | Unrestricted,
    notifier: Notifier,
    email: str,
    origin: Origin,
    lasts: DurationMs = LOGIN_LINK,
) -> None:
    """
    Mail a sign-in link to the active account with *email*, if there is one. SE-10. *who*: the
    person who sends the link to somebody else.

    Call this function in the background: neither the response nor its time may reveal whether the
    account exists. The message is sent at once and never stored, because the link is a credential.
    Raises the errors of the notifier.
    """
    async with services.store.view() as view:
        account = await view.accounts.by_email(same_name(email))
    if account is None or account.status is not AccountStatus.ACTIVE:
        return
    now = services.clock.now()
    token = await issue_login_link(services, who, account.id, origin, lasts)
    about: JsonObject = {"expiresAt": later(now, lasts)}
    line = NoticeLine(NoticeKind.SIGN_IN_LINK, f"/in/{token}", about)
    language = account.language or services.policy.language
    await notifier.send(
        Message(services.ids.new("ntc", now), MAIL, account.email, language, (line,))
    )


async def account_of_link(services: Services, token: str) -> Account:
    """
    The account that a link would sign in. The link stays valid, because mail scanners also open
    links. SE-7.

    Raises `LinkOver`.
    """
    async with services.store.view() as view:
        link = await view.get(LoginLink, session_id(token))
        account = await view.get(Account, link.account_id) if link else None
    return require_good(link, account, services.clock.now())


async def sign_in_by_link(
    services: Services, token: str, origin: Origin, previous: str | None = None
) -> SignedIn:
    """
    A new session for the token of a link. The link is used up, and the session of the token
    *previous* ends. SE-5 to SE-7.

    Raises `LinkOver`, `AccountBlocked`, `TooManyLogins`.
    """
    services.login_traffic.admit(origin.ip, services.clock.now(), SignInMethod.LINK)
    try:
        begun = await _use_link(services, token, origin, previous)
        services.login_traffic.succeeded(origin.ip, begun.account.id, SignInMethod.LINK)
        return begun
    except AccountBlocked as refusal:
        await note_denial(services, "session.create", refusal, origin)
        raise


@retried
async def _use_link(
    services: Services, token: str, origin: Origin, previous: str | None
) -> SignedIn:
    async with services.store.unit() as unit:
        link = await unit.get(LoginLink, session_id(token))
        found = await unit.get(Account, link.account_id) if link else None
        account = require_good(link, found, services.clock.now())
        require_active(account)
        unit.delete(link)  # compared: of two clicks at once the second finds it gone
        begun = put_session(services, unit, account, previous)
        note(services, unit, "session.create", Principal(account), None, origin, _BY_LINK)
        await unit.commit()
    return begun


_BY_LINK: JsonObject = {"by": "link"}


async def _verified(services: Services, email: str, password: str) -> Account | None:
    async with services.store.view() as view:
        account = await view.accounts.by_email(same_name(email))
    hashed = account.password_hash if account else None
    right = await services.passwords.verify(normal_password(password), hashed)
    return account if right else None


async def require_session(services: Services, token: str | None) -> None:
    """
    Check that the session of *token* is valid. The check does not count as use and does not extend
    the session. Raises the errors of `session_of`.
    """
    async with services.store.view() as view:
        found = await view.get(Session, session_id(token or ""))
        session = require_alive(found, services.clock.now())
        account = await view.get(Account, session.account_id)
    if account is None:
        raise Unauthenticated(AuthReason.SESSION_INVALID)
    require_active(account)
    require_current(session, account)


@retried
async def session_of(services: Services, token: str | None) -> Principal:
    """The principal of a cookie's token. Raises `Unauthenticated`, `AccountBlocked`."""
    if not token:
        raise Unauthenticated(AuthReason.SESSION_INVALID)
    now = services.clock.now()
    async with services.store.unit() as unit:
        session = require_alive(await unit.get(Session, session_id(token)), now)
        account = await unit.get(Account, session.account_id)
        if account is None:
            raise Unauthenticated(AuthReason.SESSION_INVALID)
        require_active(account)
        require_current(session, account)
        seen = touched(session, now)
        if seen is not None:
            unit.put(seen)
            await unit.commit()
    return person(account, frozenset(), services.policy.operators)


@retried
async def sign_out(services: Services, token: str, origin: Origin) -> None:
    """End the session. Does nothing if the session has ended."""
    async with services.store.unit() as unit:
        session = await unit.get(Session, session_id(token))
        if session is None:
            return
        unit.discard(Session, session.id)
        account = await unit.get(Account, session.account_id)
        note(
            services, unit, "session.delete", Principal(account) if account else None, None, origin
        )
        await unit.commit()


async def list_sessions(services: Services, account_id: str) -> Sequence[Session]:
    """The open sessions of an account, newest first. Raises `NotFound`."""
    now = services.clock.now()
    async with services.store.view() as view:
        account = await view.get(Account, account_id)
        if account is None:
            raise NotFound("Account")
        found = await view.sessions.of_account(account_id)
    return [session for session in found if is_current(session, account, now)]


async def last_seen(services: Services, ids: Iterable[str]) -> Mapping[str, EpochMs]:
    """When each account among *ids* was last seen in a session that has not ended."""
    found: dict[str, EpochMs] = {}
    for id in ids:
        seen = [one.last_seen_at for one in await list_sessions(services, id)]
        if seen:
            found[id] = max(seen)
    return found


@retried
async def end_sessions(
    services: Services, who: Principal | Unrestricted, account_id: str, origin: Origin
) -> None:
    """End every session of an account, from the next request on. SE-4. Raises `NotFound`."""
    async with services.store.unit() as unit:
        account = await unit.get(Account, account_id)
        if account is None:
            raise NotFound("Account")
        unit.put(signed_out(account))
        note(services, unit, "session.end_all", who, account_id, origin)
        await unit.commit()


@retried
async def end_session(services: Services, account_id: str, id: str, origin: Origin) -> None:
    """End one session of an account. Raises `NotFound`."""
    async with services.store.unit() as unit:
        session = await unit.get(Session, id)
        if session is None or session.account_id != account_id:
            raise NotFound("Session")
        unit.discard(Session, id)
        note(services, unit, "session.end", OPERATOR, account_id, origin, {"session": id})
        await unit.commit()
