"""Operations on accounts and on the credentials of people and programs: keys, secrets, sessions."""

from collections.abc import Sequence

from attrs import asdict

from wfcore.errors import InvalidInput
from wfcore.model.access import OPERATOR, Account, AccountStatus, Scope, Tier
from wfcore.model.page import PageRequest
from wfcore.rules.auth.access import person
from wfcore.rules.limits import ROTATION_OVERLAP
from wfcore.time import MINUTE, DurationMs
from wfcore.usecases import inviting
from wfcore.usecases.accounts import accounts, keys, passkeys, sessions
from wfcore.usecases.accounts.keys import IssuedKey
from wfcore.usecases.administration import lookup
from wfcore.usecases.administration.operator import Answer, Operator, checked_size, listed, shown
from wfcore.usecases.upkeep import deleting_accounts as deleting
from wfcore.wire.common import account_view
from wfcore.wire.converter import plain
from wfcore.wire.operating import key_view, passkey_view


async def create_account(
    at: Operator,
    email: str,
    plan: Tier | None = None,
    password: str | None = None,
    operator: bool = False,
) -> Answer:
    """A new active account. With a password it may use the console."""
    made = await accounts.create_account(
        at.services,
        email,
        plan,
        password,
        origin=at.origin,
        operator=operator,
        on_host=at.on_host,
    )
    return _account(made)


async def invite_account(at: Operator, email: str, groups: Sequence[str] = ()) -> Answer:
    """
    Invite a person: an account, a member of `groups`, and a link that signs the person in once,
    within a day.
    """
    made = await inviting.invite(at.services, OPERATOR, email, groups, at.origin)
    token = await sessions.issue_login_link(
        at.services, OPERATOR, made.id, at.origin, inviting.INVITATION
    )
    return {**_account(made), "url": f"{at.base_url}/in/{token}"}


async def set_account(
    at: Operator,
    account: str,
    plan: Tier | None = None,
    status: AccountStatus | None = None,
    operator: bool | None = None,
    language: str | None = None,
    failure_channels: Sequence[str] | None = None,
    password: str | None = None,
) -> Answer:
    """Change plan, status, password, language or channels, or make it an operator."""
    found = await lookup.account(at.services, account)
    changed = await accounts.set_account(
        at.services,
        OPERATOR,
        found.id,
        plan=plan,
        status=status,
        password=password,
        operator=operator,
        language=language,
        failure_channels=failure_channels,
        origin=at.origin,
        on_host=at.on_host,
    )
    return _account(changed)


async def list_accounts(at: Operator, limit: int = 50) -> Answer:
    """All accounts, newest first."""
    page = PageRequest(1, checked_size(limit))
    found = await accounts.list_accounts(at.services, page)
    rows = [{**plain(account_view(one)), "createdAt": one.created_at} for one in found.rows]
    return {"items": rows, "total": found.total}


async def preview_deletion(at: Operator, account: str) -> Answer:
    """What deleting an account would take along; `going`: executions that have not ended."""
    found = await lookup.account(at.services, account)
    counts = asdict(await deleting.read_belongings(at.services, found.id))
    return {"id": found.id, "email": found.email, **counts}


async def delete_account(at: Operator, account: str, cancel: bool = False) -> Answer:
    """
    Delete an account with its workflows, executions, keys, webhooks, shares and sessions; refused
    while executions are going, unless `cancel`. The audit log stays.
    """
    found = await lookup.account(at.services, account)
    gone = await deleting.delete_account(at.services, found.id, cancel=cancel, origin=at.origin)
    return {"id": found.id, "email": found.email, **asdict(gone)}


def _account(account: Account) -> Answer:
    channels = list(account.failure_channels)
    document = {**plain(account_view(account)), "operator": account.operator}
    return document | ({"failureChannels": channels} if channels else {})


async def create_key(
    at: Operator,
    account: str,
    name: str,
    scopes: Sequence[Scope],
    expires_in: int | None = None,
    approvers: Sequence[str] = (),
) -> Answer:
    """
    A new key, with what it may do; `expiresIn` in milliseconds. Its text is shown once.
    `approvers`: the only people whom it may ask through gates.
    """
    owner = await lookup.account(at.services, account)
    lasts = None if expires_in is None else DurationMs(expires_in)
    issued = await keys.create_key(
        at.services,
        owner.id,
        name,
        scopes,
        lasts,
        at.origin,
        on_host=at.on_host,
        approvers=approvers,
    )
    return _issued(issued)


async def rotate_key(at: Operator, id: str, overlap: int = ROTATION_OVERLAP) -> Answer:
    """A new secret under the same id; the old one stays good for `overlap` milliseconds."""
    lasts = DurationMs(max(overlap, 0))
    return _issued(
        await keys.rotate_key(at.services, OPERATOR, id, lasts, at.origin, on_host=at.on_host)
    )


async def revoke_key(at: Operator, id: str) -> Answer:
    """Refuse a key from the next request on."""
    return shown(key_view(await keys.revoke_key(at.services, OPERATOR, id, at.origin)))


async def list_keys(at: Operator, account: str) -> Answer:
    """The keys of an account, newest first, with when they were last used."""
    owner = await lookup.account(at.services, account)
    found = await keys.list_keys(at.services, owner.id)
    return {**listed(map(key_view, found)), "email": owner.email}


def _issued(issued: IssuedKey) -> Answer:
    return shown(key_view(issued.key, issued.text, issued.callback_secret))


async def set_secret(at: Operator, account: str, name: str, value: str) -> Answer:
    """Set a named secret, for steps that begin from now on."""
    owner = await lookup.account(at.services, account)
    await accounts.set_secret(at.services, OPERATOR, owner.id, name, value, at.origin)
    return {"ok": True}


async def list_secrets(at: Operator, account: str) -> Answer:
    """Names of the secrets of an account, and when each was set."""
    owner = await lookup.account(at.services, account)
    found = await accounts.list_secrets(at.services, owner.id)
    return listed({"name": one.name, "updatedAt": one.updated_at} for one in found)


async def delete_secret(at: Operator, account: str, name: str) -> Answer:
    """Delete a secret; steps that list it fail from then on."""
    owner = await lookup.account(at.services, account)
    await accounts.delete_secret(at.services, OPERATOR, owner.id, name, at.origin)
    return {"ok": True}


async def list_sessions(at: Operator, account: str) -> Answer:
    """The console sessions of an account that have not ended, newest first."""
    owner = await lookup.account(at.services, account)
    return listed(
        {"id": one.id, "createdAt": one.created_at, "lastSeenAt": one.last_seen_at}
        for one in await sessions.list_sessions(at.services, owner.id)
    )


async def end_sessions(at: Operator, account: str, id: str | None = None) -> Answer:
    """Sign an account out everywhere, or end the one session `id`; from the next request on."""
    owner = await lookup.account(at.services, account)
    if id is None:
        await sessions.end_sessions(at.services, OPERATOR, owner.id, at.origin)
    else:
        await sessions.end_session(at.services, owner.id, id, at.origin)
    return {"ok": True}


async def issue_login_link(at: Operator, account: str, minutes: int = 15) -> Answer:
    """A link that signs the account in at the console: once, and within so many minutes."""
    owner = await lookup.account(at.services, account)
    if not at.on_host and person(owner, frozenset(), at.services.policy.operators).operator:
        fix = "an operator gets a link on the server's host alone: wfcore login"  # AC-10
        raise InvalidInput("account", fix)
    lasts = DurationMs(minutes * MINUTE)
    token = await sessions.issue_login_link(at.services, OPERATOR, owner.id, at.origin, lasts)
    return {"url": f"{at.base_url}/in/{token}"}


async def list_passkeys(at: Operator, account: str) -> Answer:
    """The passkeys of an account, in the order of their registration, with their public keys."""
    owner = await lookup.account(at.services, account)
    found = await passkeys.list_passkeys(at.services, owner.id)
    return listed(passkey_view(one, owner.id) for one in found)


async def remove_passkey(at: Operator, account: str, id: str) -> Answer:
    """
    Remove a passkey that its person has lost; they are told by mail. Without its last passkey the
    account signs in with its password alone. Receipts stay valid.
    """
    owner = await lookup.account(at.services, account)
    if not at.on_host and person(owner, frozenset(), at.services.policy.operators).operator:
        fix = "an operator's is removed on the server's host alone: wfcore passkey remove"  # AC-10
        raise InvalidInput("account", fix)
    await passkeys.remove_passkey(at.services, OPERATOR, owner.id, id, at.origin)
    return {"ok": True}
