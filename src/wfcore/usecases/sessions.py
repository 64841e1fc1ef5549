"""Console sessions: signing in, staying in, signing out. Contract §6."""

from hashlib import sha256

from attrs import frozen

from wfcore.errors import AccountBlocked, AuthReason, TooManyAttempts, Unauthenticated
from wfcore.model.access import Account, Principal, Session
from wfcore.rules.access import require_active
from wfcore.rules.session import failed, require_alive, require_unlocked, touched
from wfcore.usecases._retry import retried
from wfcore.usecases.auditing import Origin, note, note_denial
from wfcore.usecases.services import Services

TOKEN_LENGTH = 43


@frozen
class SignedIn:
    """A new session; the token is for the cookie and is not kept anywhere."""

    account: Account
    token: str

    def __repr__(self) -> str:
        return f"SignedIn({self.account.id})"


def session_id(token: str) -> str:
    """What is stored of a cookie's token."""
    return sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


async def sign_in(services: Services, email: str, password: str, origin: Origin) -> SignedIn:
    """
    A session for the right password. SE-1, SE-2.

    Ten failures in 15 minutes lock that login, the right password too. An unknown email
    takes as long as a known one.

    Raises `TooManyAttempts`, `Unauthenticated`, `AccountBlocked`.
    """
    login = session_id(email.strip().lower())
    try:
        await _require_unlocked(services, login)
        account = await _verified(services, email, password)
        if account is None:
            await _note_failure(services, login)
            raise Unauthenticated(AuthReason.SESSION_INVALID)
        require_active(account)
    except (Unauthenticated, AccountBlocked, TooManyAttempts) as refusal:
        await note_denial(services, "session.create", refusal, origin)
        raise
    return await _begin(services, account, login, origin)


async def _require_unlocked(services: Services, login: str) -> None:
    async with services.store.view() as view:
        require_unlocked(await view.logins.get(login), services.clock.now())


@retried
async def _note_failure(services: Services, login: str) -> None:
    async with services.store.unit() as unit:
        known = await unit.logins.get(login)
        unit.logins.put(failed(known, login, services.clock.now()))
        await unit.commit()


@retried
async def _begin(services: Services, account: Account, login: str, origin: Origin) -> SignedIn:
    """A new session; what failed before is forgiven."""
    now, token = services.clock.now(), services.tokens.text(TOKEN_LENGTH)
    async with services.store.unit() as unit:
        unit.sessions.put(Session(session_id(token), account.id, now, now))
        unit.logins.delete(login)
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
    """
    Who a cookie's token stands for. Raises `Unauthenticated`, `AccountBlocked`.
    """
    if not token:
        raise Unauthenticated(AuthReason.SESSION_INVALID)
    now = services.clock.now()
    async with services.store.unit() as unit:
        session = require_alive(await unit.sessions.get(session_id(token)), now)
        account = await unit.accounts.get(session.account_id)
        if account is None:
            raise Unauthenticated(AuthReason.SESSION_INVALID)
        require_active(account)
        seen = touched(session, now)
        if seen is not None:
            unit.sessions.put(seen)
            await unit.commit()
    return Principal(account)


async def sign_out(services: Services, token: str, origin: Origin) -> None:
    """End the session. Ending one that is gone is fine."""
    async with services.store.unit() as unit:
        session = await unit.sessions.get(session_id(token))
        if session is None:
            return
        unit.sessions.delete(session.id)
        account = await unit.accounts.get(session.account_id)
        note(
            services, unit, "session.delete", Principal(account) if account else None, None, origin
        )
        await unit.commit()
