"""Console sessions: signing in, staying in, signing out. Contract §6."""

from collections.abc import Sequence
from hashlib import sha256

from attrs import frozen

from wfcore.errors import (
    AccountBlocked,
    AuthReason,
    NotFound,
    TooManyAttempts,
    Unauthenticated,
)
from wfcore.model.access import Account, Login, Principal, Session
from wfcore.rules.auth.access import require_active
from wfcore.rules.auth.session import (
    failed,
    is_current,
    require_alive,
    require_current,
    require_unlocked,
    signed_out,
    touched,
)
from wfcore.usecases.audit.auditing import Origin, note, note_denial
from wfcore.usecases.services import Services
from wfcore.usecases.unit_of_work import retried

TOKEN_LENGTH = 43


@frozen
class SignedIn:
    """A new session; the token is for the cookie and is not stored."""

    account: Account
    token: str

    def __repr__(self) -> str:
        return f"SignedIn({self.account.id})"


def session_id(token: str) -> str:
    """The part of a cookie's token that is stored: its hash."""
    return sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


async def sign_in(
    services: Services, email: str, password: str, origin: Origin, previous: str | None = None
) -> SignedIn:
    """
    A new session for the correct password; the session of the token *previous* ends. SE-1, SE-2,
    SE-5.

    Ten failures in 15 minutes lock that login, for the correct password too. An unknown email takes
    as long as a known one. Logins over the limit of a minute are neither checked nor recorded,
    since they would flood the audit log next. SE-6.

    Raises `TooManyLogins`, `TooManyAttempts`, `Unauthenticated`, `AccountBlocked`, `NotReady`.
    """
    services.login_traffic.admit(origin.ip, services.clock.now())
    login = session_id(email.strip().lower())
    try:
        await _require_unlocked(services, login)
        account = await _verified(services, email, password)
        if account is None:
            await _note_failure(services, login)
            raise Unauthenticated(AuthReason.SESSION_INVALID)
        require_active(account)
        return await _begin(services, account, login, origin, previous)
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
    now, token = services.clock.now(), services.tokens.text(TOKEN_LENGTH)
    async with services.store.unit() as unit:
        require_unlocked(await unit.get(Login, login), now)
        unit.put(Session(session_id(token), account.id, now, now, account.session_epoch))
        if previous:
            unit.discard(Session, session_id(previous))
        unit.discard(Login, login)
        note(services, unit, "session.create", Principal(account), None, origin)
        await unit.commit()
    return SignedIn(account, token)


async def _verified(services: Services, email: str, password: str) -> Account | None:
    async with services.store.view() as view:
        account = await view.accounts.by_email(email.strip().lower())
    hashed = account.password_hash if account else None
    fits = await services.passwords.verify(password, hashed)
    return account if fits else None


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
    return Principal(account)


async def sign_out(services: Services, token: str, origin: Origin) -> None:
    """End the session; does nothing if it has ended."""
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


@retried
async def end_sessions(
    services: Services, account_id: str, origin: Origin, who: Principal | None = None
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
        note(services, unit, "session.end", None, account_id, origin, {"session": id})
        await unit.commit()
