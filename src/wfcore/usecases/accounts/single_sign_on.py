"""
Signing in with an identity provider: the redirect there and the return. SE-9.

While a person is at the provider, only the browser keeps the attempt, signed and for ten minutes.
The server stores nothing, so that a redirect costs nothing and leaves nothing behind.
"""

import json
from collections.abc import Mapping
from contextlib import suppress
from hmac import compare_digest

from attrs import frozen

from wfcore.errors import (
    AccountBlocked,
    AccountExists,
    AuthReason,
    NotFound,
    Unauthenticated,
    Unvouched,
)
from wfcore.model.access import Account, Identity, Principal, SignOnTerms
from wfcore.model.json import JsonObject
from wfcore.ports.identity import IdentityProvider, SignOnAttempt
from wfcore.rules.auth.access import require_active
from wfcore.rules.auth.session import SignInMethod, require_vouched
from wfcore.rules.auth.signed_links import Keyring, read_signed, signed
from wfcore.rules.limits import SIGN_ON
from wfcore.time import EpochMs, later
from wfcore.usecases.accounts.accounts import create_account, find_account
from wfcore.usecases.accounts.groups import follow_provider
from wfcore.usecases.accounts.sessions import TOKEN_LENGTH, SignedIn, put_session
from wfcore.usecases.audit.auditing import Origin, note, note_denial
from wfcore.usecases.services import Services
from wfcore.usecases.signing import signing_keys
from wfcore.usecases.unit_of_work import retried

_PURPOSE = "sign-on"
LONGEST_NEXT = 600
"""
The most characters of the requested page: proxies accept 8 KB of cookies, which must hold several
attempts and the session.
"""
_BY_PROVIDER: JsonObject = {"by": "oidc"}


@frozen
class Departure:
    """
    The redirect to the provider: its URL, the cookie value for the browser, and the `state` that
    distinguishes this sign-in from other sign-ins in the same browser.
    """

    url: str
    kept: str
    state: str

    def __repr__(self) -> str:
        return "Departure(...)"


async def leave_for(
    services: Services, provider: IdentityProvider, redirect_uri: str, next: str
) -> Departure:
    """
    The redirect to *provider*. The sign-in returns to the page *next*; a *next* that is too long is
    dropped. Raises `NotReady`.
    """
    attempt = SignOnAttempt(*(services.tokens.text(TOKEN_LENGTH) for _ in range(3)))
    url = await provider.address(attempt, redirect_uri)
    next = next if len(json.dumps(next)) <= LONGEST_NEXT else ""
    text = json.dumps([attempt.state, attempt.nonce, attempt.verifier, next])
    until = later(services.clock.now(), SIGN_ON)
    keys = await signing_keys(services)
    kept = keys.signed(lambda key: signed(key, _PURPOSE, text, until))
    return Departure(url, kept, attempt.state)


async def come_back(
    services: Services,
    provider: IdentityProvider,
    terms: SignOnTerms,
    redirect_uri: str,
    query: Mapping[str, str],
    kept: str | None,
    origin: Origin,
    previous: str | None = None,
) -> tuple[SignedIn, str]:
    """
    A new session for the person who returned with *query*, and the page to open. *kept*: the
    attempt that the browser kept. The session of the token *previous* ends. The groups that *terms*
    name follow the provider. SE-5, SE-9, AP-50.

    Raises `Unvouched`, `AccountBlocked`, `TooManyLogins`, `NotReady`.
    """
    services.login_traffic.admit(origin.ip, services.clock.now(), SignInMethod.LINK)
    try:
        attempt, next = _attempt(await signing_keys(services), kept, query, services.clock.now())
        identity = await provider.identity(attempt, redirect_uri, query.get("code", ""))
        account = await _account_of(services, identity, terms, origin)
        begun = await _begin(services, account, origin, previous, identity, terms)
        services.login_traffic.succeeded(origin.ip, account.id, SignInMethod.LINK)
        return begun, next
    except Unvouched:
        denied = Unauthenticated(AuthReason.SESSION_INVALID)
        await note_denial(services, "session.create", denied, origin)
        raise
    except AccountBlocked as refusal:
        await note_denial(services, "session.create", refusal, origin)
        raise


def _attempt(
    keys: Keyring, kept: str | None, query: Mapping[str, str], now: EpochMs
) -> tuple[SignOnAttempt, str]:
    """
    The attempt that the browser kept, if it matches the response of the provider. Raises
    `Unvouched`.
    """
    read = (read_signed(key, _PURPOSE, made) for key, made in keys.tried(kept or ""))
    found = next((one for one in read if one is not None), None)
    if found is None or now >= found[1]:
        raise Unvouched("The sign-in took too long, or was begun in another browser; begin again")
    state, nonce, verifier, back = json.loads(found[0])
    if not compare_digest(state.encode(), query.get("state", "").encode()):
        raise Unvouched("This answer is of another sign-in; begin again")
    if "error" in query or not query.get("code"):
        raise Unvouched("The sign-in was not completed at the provider")
    return SignOnAttempt(state, nonce, verifier), back


async def _account_of(
    services: Services, identity: Identity, terms: SignOnTerms, origin: Origin
) -> Account:
    email = require_vouched(identity, terms)
    with suppress(NotFound):
        return await find_account(services, email)
    if not terms.create:
        raise Unvouched("There is no account with your e-mail here; ask whoever runs this server")
    with suppress(AccountExists):  # another tab was faster
        return await create_account(services, email, origin=origin)
    return await find_account(services, email)


@retried
async def _begin(
    services: Services,
    account: Account,
    origin: Origin,
    previous: str | None,
    identity: Identity,
    terms: SignOnTerms,
) -> SignedIn:
    async with services.store.unit() as unit:
        found = await unit.get(Account, account.id) or account
        require_active(found)
        begun, who = put_session(services, unit, found, previous), Principal(found)
        note(services, unit, "session.create", who, None, origin, _BY_PROVIDER)
        await follow_provider(services, unit, who, identity.groups, terms.groups, origin)
        await unit.commit()
    return begun
