"""
Admission of a request: credentials, account status, scope, rate, in this order.

The audit log records each refusal with its reason; the caller learns only the refusal.
"""

from collections.abc import Collection, Sequence
from contextlib import suppress

from attrs import frozen

from wfcore.errors import (
    AccountBlocked,
    AuthReason,
    PersonalLinkOver,
    Stale,
    StoreUnavailable,
    Unauthenticated,
)
from wfcore.model.access import Account, ApiKey, Guest, Principal, Scope, Visitor
from wfcore.rules.auth import api_key
from wfcore.rules.auth.access import person, require_active, require_admin, require_scope
from wfcore.rules.auth.api_key import bears_key
from wfcore.rules.auth.rate_limit import Quota, nearly_used, verdict, windows
from wfcore.rules.auth.session import is_look_alike
from wfcore.rules.auth.signed_links import Keyring, PersonalLink, read_personal_token
from wfcore.rules.mailbox import same_name
from wfcore.time import EpochMs
from wfcore.usecases.audit.auditing import Origin, note_denial
from wfcore.usecases.notices.telling import tell_quota
from wfcore.usecases.services import Services
from wfcore.usecases.signing import keys_in


@frozen
class Credentials:
    """All values in a request that may contain a key. Never shown."""

    authorization: Sequence[str] = ()
    x_api_key: Sequence[str] = ()
    query: Sequence[str] = ()

    @property
    def is_ours(self) -> bool:
        """Whether the values contain a key of this service, valid or not. AU-10."""
        return bears_key(self.authorization, self.x_api_key, self.query)

    def __repr__(self) -> str:
        return "Credentials(...)"


@frozen
class AdmittedCaller:
    """The caller, and the remaining quota."""

    who: Principal
    quota: Quota


async def authenticate(services: Services, carried: Credentials, scope: Scope) -> Principal:
    """
    The account and key that *carried* identifies. AU-1 to AU-4.

    Raises `Unauthenticated`, `AccountBlocked`. Counts and records nothing.
    """
    ways = carried.authorization, carried.x_api_key, carried.query
    presented = api_key.presented(*map(tuple, ways))
    async with services.store.view() as view:
        stored = await view.get(ApiKey, presented.id)
        key = api_key.check(stored, presented, services.clock.now())
        account = await view.get(Account, key.account_id)
    if account is None:
        raise Unauthenticated(AuthReason.UNKNOWN_KEY, key.account_id, key.id)
    who = Principal(account, key)
    require_active(account, key.id)
    require_scope(who, scope)
    return who


async def admit(
    services: Services, carried: Credentials, scope: Scope, origin: Origin
) -> AdmittedCaller:
    """
    Authenticate and count one request against the key's quota. RL-1 to RL-4.

    Raises `Unauthenticated`, `AccountBlocked` (both noted in the audit log), `RateLimited`.
    """
    try:
        who = await authenticate(services, carried, scope)
    except (Unauthenticated, AccountBlocked) as refusal:
        await note_denial(services, "api.request", refusal, origin)
        raise
    assert who.key is not None
    return AdmittedCaller(who, await take(services, f"key:{who.key.id}", who.account))


async def admit_operator(services: Services, carried: Credentials, origin: Origin) -> Principal:
    """
    The operator with the key of scope ADMIN in *carried*; no quota counts these requests. AC-8.

    Raises `Unauthenticated`, `AccountBlocked` (both noted in the audit log), `Forbidden`.
    """
    try:
        who = await authenticate(services, carried, Scope.ADMIN)
    except (Unauthenticated, AccountBlocked) as refusal:
        await note_denial(services, "admin.request", refusal, origin)
        raise
    return require_admin(who, services.policy.operators)


async def recognise(services: Services, visitor: Visitor, scopes: Collection[Scope]) -> Principal:
    """
    The account that *visitor* acts for. AU-10.

    Raises `Unauthenticated` (no such account, or not all *scopes* are granted), `AccountBlocked`.
    """
    async with services.store.view() as view:
        account = await view.get(Account, visitor.account)
        account = account or await view.accounts.by_email(same_name(visitor.account))
    if account is None or is_look_alike(visitor.account):
        raise Unauthenticated(AuthReason.SESSION_INVALID)
    who = person(account, visitor.scopes, services.policy.operators)
    require_active(account)
    for scope in scopes:
        require_scope(who, scope)
    return who


async def admit_visitor(
    services: Services, visitor: Visitor, scope: Scope, origin: Origin
) -> AdmittedCaller:
    """
    Recognise *visitor* and count one request against the account's quota. AU-10, RL-1.

    Raises `Unauthenticated`, `AccountBlocked` (both noted in the audit log), `RateLimited`.
    """
    try:
        who = await recognise(services, visitor, {scope})
    except (Unauthenticated, AccountBlocked) as refusal:
        await note_denial(services, "api.request", refusal, origin)
        raise
    return AdmittedCaller(who, await take(services, f"account:{who.account.id}", who.account))


def _said_by(keys: Keyring, token: str, now: EpochMs) -> PersonalLink:
    """The content of a personal link, whichever key signed the link. Raises `PersonalLinkOver`."""
    refusal = PersonalLinkOver()
    for key, made in keys.tried(token):
        try:
            return read_personal_token(key, made, now)
        except PersonalLinkOver as refused:
            refusal = refused if refused.expired else refusal
    raise refusal


async def admit_guest(services: Services, token: str) -> Guest:
    """
    The guest of a personal link. Counts and stores nothing. PL-1, PL-2.

    Raises `PersonalLinkOver`; `AccountBlocked` if an account with that email is blocked.
    """
    async with services.store.view() as view:
        said = _said_by(await keys_in(view, services), token, services.clock.deadline_now())
        account = await view.accounts.by_email(same_name(said.email))
    if account is not None:
        require_active(account)
    return Guest(same_name(said.email), said.approval_id, account.id if account else None)


async def take(services: Services, subject: str, account: Account) -> Quota:
    """Count one request for *subject* by the account's plan. Raises `RateLimited`. RL-4."""
    now = services.store.now()
    asked = windows(account.plan, now)
    taken = await services.counters.take(subject, asked, now)
    quota, near = verdict(asked=asked, taken=taken, now=now), nearly_used(asked, taken)
    if near is not None:
        with suppress(StoreUnavailable, Stale):  # the request counts, whether it is told or not
            await tell_quota(services, subject, account, near)
    return quota
