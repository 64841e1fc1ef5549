"""Passkeys of accounts: registering, naming, removing, signing in and confirming. SR-3 to SR-7."""

from collections.abc import Sequence

from attrs import evolve, frozen

from wfcore.errors import (
    AccountBlocked,
    AuthReason,
    Forbidden,
    InvalidInput,
    NotConfirmed,
    NotFound,
    Unauthenticated,
)
from wfcore.model.access import OPERATOR, Account, Caller, Principal, Session, Unrestricted
from wfcore.model.json import JsonObject
from wfcore.model.page import PageRequest
from wfcore.model.passkey import Assertion, Passkey, Registration, RelyingParty
from wfcore.ports.store import Unit
from wfcore.rules.auth.access import person, require_active, require_operator
from wfcore.rules.auth.passkeys import (
    Nonce,
    NonceUse,
    new_nonce,
    origin_fault,
    passkey_of,
    read_nonce,
    relying_party,
    renamed,
    require_recent,
    usable_passkeys,
    used,
    with_nonce_taken,
    with_passkey,
    without_passkey,
)
from wfcore.rules.auth.session import SignInMethod
from wfcore.rules.receipt import challenge_of, signature_fault
from wfcore.usecases.accounts.accounts import list_accounts
from wfcore.usecases.accounts.sessions import SignedIn, put_session, session_id
from wfcore.usecases.audit.auditing import Origin, note, note_denial, note_refusal
from wfcore.usecases.notices.telling import tell_passkeys
from wfcore.usecases.services import Services
from wfcore.usecases.signing import keys_in, signing_keys
from wfcore.usecases.unit_of_work import retried

_RANDOM = 22
"""Base62 characters of a nonce: 131 bits."""
_PAGE = 200
_BY_PASSKEY: JsonObject = {"by": "passkey"}


def party_of(services: Services) -> RelyingParty | None:
    """The names under which browsers know this server; None: it has no passkeys. SR-7."""
    return relying_party(services.policy.public_url)


def _party(services: Services) -> RelyingParty:
    if (party := party_of(services)) is None:
        raise NotConfirmed("the operator must set WFCORE_PUBLIC_URL to an https address first")
    return party


async def give_nonce(services: Services, use: NonceUse, account_id: str = "") -> Nonce:
    """A nonce for one confirmation of an account; nothing is stored. SR-3."""
    random, now = services.tokens.text(_RANDOM), services.clock.deadline_now()
    return new_nonce(await signing_keys(services), use, account_id, random, now)


@frozen
class RegistrationRequest:
    """A request for a new passkey of *account*, to be answered by the browser."""

    nonce: Nonce
    party: RelyingParty
    account: Account


async def begin_registration(services: Services, who: Principal) -> RegistrationRequest:
    """A request for a new passkey. Raises `NotConfirmed` if the server has no passkeys. SR-4."""
    nonce = await give_nonce(services, NonceUse.REGISTER, who.account.id)
    return RegistrationRequest(nonce, _party(services), who.account)


@retried
async def register_passkey(
    services: Services,
    who: Principal,
    session: str | None,
    answer: Registration,
    name: str,
    origin: Origin,
) -> Passkey:
    """
    A new passkey of the account. *session*: the token of the cookie. SR-4.

    Raises `NotConfirmed`, also for a sign-in that was over five minutes ago; `InvalidInput`,
    `Conflict`.
    """
    now, party = services.clock.deadline_now(), _party(services)
    async with services.store.unit() as unit:
        await _require_recent(services, unit, session)
        account = await _account(unit, who.account.id)
        nonce = read_nonce(await keys_in(unit, services), NonceUse.REGISTER, answer.nonce, now)
        if nonce.account_id != account.id:
            raise NotConfirmed("it was begun for another account")
        made = services.passkeys.material(answer, nonce.challenge, party)
        account = with_passkey(with_nonce_taken(account, nonce, now), made, name, party.id, now)
        passkey = account.passkeys[-1]
        await _change(services, unit, account, "register", passkey, origin, who)
        await unit.commit()
    return passkey


async def _require_recent(services: Services, unit: Unit, token: str | None) -> None:
    session = await unit.get(Session, session_id(token or ""))
    if session is None:
        raise NotConfirmed("it needs a sign-in at this page")
    require_recent(session, services.clock.now())


async def _account(unit: Unit, account_id: str) -> Account:
    account = await unit.get(Account, account_id)
    if account is None:
        raise NotFound("Account")
    return account


async def _change(
    services: Services,
    unit: Unit,
    account: Account,
    verb: str,
    passkey: Passkey,
    origin: Origin,
    who: Principal | Unrestricted,
) -> None:
    """Put the account, with the entry in the audit log and the mail to its person. SR-5."""
    unit.put(account)
    about: JsonObject = {"credentialId": passkey.id, "name": passkey.name}
    note(services, unit, f"passkey.{verb}", who, account.id, origin, about)
    if verb != "rename":
        await tell_passkeys(services, unit, account, verb, passkey.name)


@retried
async def rename_passkey(
    services: Services, who: Principal, id: str, name: str, origin: Origin
) -> None:
    """Give a passkey of the caller another name. Raises `NotFound`, `InvalidInput`."""
    async with services.store.unit() as unit:
        account = renamed(await _account(unit, who.account.id), id, name)
        await _change(services, unit, account, "rename", passkey_of(account, id), origin, who)
        await unit.commit()


@retried
async def remove_passkey(
    services: Services,
    who: Principal | Unrestricted,
    account_id: str,
    id: str,
    origin: Origin,
    session: str | None = None,
) -> None:
    """
    Remove a passkey: by its person, or by an operator for a person who has lost it. *session*: the
    token of the cookie of *who*. Receipts stay valid. SR-5.

    Raises `NotFound`; `Forbidden` for another operator's, which is removed on the host alone
    (AC-10); `NotConfirmed` for a sign-in that was over five minutes ago, because without the last
    passkey a password signs in alone.
    """
    async with services.store.unit() as unit:
        if isinstance(who, Principal):
            await _require_recent(services, unit, session)
        before = await _account(unit, account_id)
        if who is not OPERATOR and who.account.id != account_id:
            require_operator(who)
            if person(before, frozenset(), services.policy.operators).operator:
                raise Forbidden("An operator's is removed on the host: wfcore passkey remove")
        passkey = passkey_of(before, id)
        account = without_passkey(before, id)
        await _change(services, unit, account, "remove", passkey, origin, who)
        await unit.commit()


@retried
async def require_passkey(
    services: Services, who: Principal, session: str | None, on: bool, origin: Origin
) -> None:
    """
    Let a password sign in only together with a passkey, or alone again. SR-5.

    Raises `NotConfirmed` for an old sign-in, `InvalidInput` without a passkey.
    """
    async with services.store.unit() as unit:
        await _require_recent(services, unit, session)
        account = await _account(unit, who.account.id)
        if on and not usable_passkeys(account, party_of(services)):
            raise InvalidInput("passkeyRequired", "needs a passkey; register one first")
        unit.put(evolve(account, passkey_required=on))
        note(services, unit, "passkey.require", who, account.id, origin, {"required": on})
        await unit.commit()


async def list_passkeys(services: Services, account_id: str) -> Sequence[Passkey]:
    """The passkeys of an account, in the order of their registration. Raises `NotFound`."""
    async with services.store.view() as view:
        account = await view.get(Account, account_id)
    if account is None:
        raise NotFound("Account")
    return account.passkeys


async def all_passkeys(services: Services) -> Sequence[Passkey]:
    """The passkeys of all accounts."""
    found: list[Passkey] = []
    page: PageRequest | None = PageRequest(size=_PAGE)
    while page is not None:
        listed = await list_accounts(services, page)
        found += [passkey for one in listed.rows for passkey in one.passkeys]
        page = listed.rest
    return found


async def sign_in_by_passkey(
    services: Services, answer: Assertion, origin: Origin, previous: str | None = None
) -> SignedIn:
    """
    A new session for a passkey, alone or after the password; the session of the token *previous*
    ends. SE-5, SR-5.

    Raises `NotConfirmed`, `AccountBlocked`, `TooManyLogins`. Refusals are in the audit log.
    """
    services.login_traffic.admit(origin.ip, services.clock.now(), SignInMethod.LINK)
    try:
        begun = await _sign_in(services, answer, origin, previous)
    except (NotConfirmed, AccountBlocked) as refused:
        denied = Unauthenticated(AuthReason.SIGNATURE_MISMATCH)
        denial = refused if isinstance(refused, AccountBlocked) else denied
        await note_denial(services, "session.create", denial, origin)
        raise
    services.login_traffic.succeeded(origin.ip, begun.account.id, SignInMethod.LINK)
    return begun


@retried
async def _sign_in(
    services: Services, answer: Assertion, origin: Origin, previous: str | None
) -> SignedIn:
    async with services.store.unit() as unit:
        keys, now = await keys_in(unit, services), services.clock.deadline_now()
        try:
            nonce = read_nonce(keys, NonceUse.AFTER_PASSWORD, answer.nonce, now)
        except NotConfirmed:
            nonce = read_nonce(keys, NonceUse.SIGN_IN, answer.nonce, now)
        account = await unit.get(Account, nonce.account_id or answer.user)
        if account is None:
            raise NotConfirmed("no account here has this passkey")
        require_active(account)
        if account.passkey_required and not nonce.account_id:
            raise NotConfirmed("this account signs in with its password first")
        account = _confirmed(services, account, answer, nonce, nonce.challenge).account
        unit.put(account)
        begun = put_session(services, unit, account, previous)
        note(services, unit, "session.create", Principal(account), None, origin, _BY_PASSKEY)
        await unit.commit()
    return begun


@frozen
class Confirmed:
    """
    A confirmation that counts and is taken. `account`: after the use; `digests`: of the statements
    that it confirms.
    """

    account: Account
    passkey: Passkey
    nonce: Nonce
    answer: Assertion
    digests: tuple[str, ...] = ()


def _confirmed(
    services: Services, account: Account, answer: Assertion, nonce: Nonce, challenge: bytes
) -> Confirmed:
    """
    The confirmation of *challenge* by a passkey of *account*, with the nonce taken. Raises
    `NotConfirmed`. SR-3.
    """
    party, now = _party(services), services.clock.deadline_now()
    try:
        passkey = passkey_of(account, answer.credential_id)
    except NotFound:
        raise NotConfirmed("it is no passkey of this account, or was removed") from None
    verifies = services.passkeys.verifies
    fault = signature_fault(answer, passkey, challenge, party.id, verifies)
    if (fault := fault or origin_fault(answer, party)) is not None:
        raise NotConfirmed(fault)
    after = used(with_nonce_taken(account, nonce, now), passkey, answer, now)
    return Confirmed(after, passkey, nonce, answer)


async def take_confirmation(
    services: Services, who: Caller, answer: Assertion, digests: Sequence[str], origin: Origin
) -> Confirmed:
    """
    The confirmation of statements by a passkey of the caller's account; it is taken once. SR-3.

    Raises `NotConfirmed`, which the audit log records.
    """
    try:
        return await _take(services, who, answer, digests)
    except NotConfirmed as refused:
        account = who.account_id or who.identity
        await note_refusal(services, "passkey.confirm", who, account, refused, origin)
        raise


@retried
async def _take(
    services: Services, who: Caller, answer: Assertion, digests: Sequence[str]
) -> Confirmed:
    async with services.store.unit() as unit:
        keys, now = await keys_in(unit, services), services.clock.deadline_now()
        nonce = read_nonce(keys, NonceUse.APPROVE, answer.nonce, now)
        if nonce.account_id != who.account_id:
            raise NotConfirmed("it was begun for another account")
        account = await _account(unit, nonce.account_id)
        require_active(account)
        made = _confirmed(services, account, answer, nonce, challenge_of(digests))
        unit.put(made.account)
        await unit.commit()
    return evolve(made, digests=tuple(digests))
