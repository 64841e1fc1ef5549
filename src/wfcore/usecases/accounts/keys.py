"""API keys, managed by the operator. A key's text is returned once."""

from collections.abc import Collection, Sequence

from attrs import evolve, frozen

from wfcore.errors import Conflict, InvalidInput, NotFound
from wfcore.model.access import OPERATOR, Account, ApiKey, Principal, Scope, Unrestricted
from wfcore.model.webhook import Webhook
from wfcore.rules.approval.people import bound_to
from wfcore.rules.auth.access import refuse_admin_key
from wfcore.rules.auth.api_key import (
    PREFIX,
    RANDOM_LENGTH,
    compose,
    hash_secret,
    require_room,
    secret_of,
)
from wfcore.rules.callback import SECRET_LENGTH, SECRET_PREFIX
from wfcore.rules.limits import ROTATION_OVERLAP
from wfcore.rules.webhooks.webhook import check_name
from wfcore.time import DurationMs, EpochMs, later
from wfcore.usecases.audit.auditing import UNKNOWN, Origin, note
from wfcore.usecases.services import Services
from wfcore.usecases.unit_of_work import retried


@frozen
class IssuedKey:
    """A key with its text, which is not stored, and its callback secret if the secret is new."""

    key: ApiKey
    text: str
    callback_secret: str | None = None

    def __repr__(self) -> str:
        return f"IssuedKey({self.key.id})"


@retried
async def create_key(
    services: Services,
    account_id: str,
    name: str,
    scopes: Collection[Scope],
    expires_in: DurationMs | None = None,
    origin: Origin = UNKNOWN,
    *,
    on_host: bool = False,
    approvers: Sequence[str] = (),
) -> IssuedKey:
    """
    A new key of an account. A key of scope ADMIN needs an operator's account and *on_host*. AC-8.
    *approvers*: the only people whom the key may ask through gates. GT-5.

    The account's record is read first and put unchanged, so that of two units that both saw room
    only one unit commits. Raises `NotFound`, `InvalidInput`, `Conflict` (no room, LM-11).
    """
    now = services.clock.now()
    if not scopes:
        raise InvalidInput("scope", "at least one is needed")
    async with services.store.unit() as unit:
        account = await unit.get(Account, account_id)
        if account is None:
            raise NotFound("Account")
        refuse_admin_key(account, scopes, services.policy.operators, on_host)
        require_room(account.plan, await unit.keys.of_account(account_id), now)
        unit.put(account)
        id = services.ids.new(PREFIX, now).partition("_")[2]
        text = compose(id, services.tokens.text(RANDOM_LENGTH))
        key = ApiKey(
            id=id,
            account_id=account_id,
            name=check_name(name),
            scopes=frozenset(scopes),
            secret_hash=hash_secret(secret_of(text)),
            created_at=now,
            expires_at=later(now, expires_in) if expires_in is not None else None,
            callback_secret=_new_callback_secret(services),
            approvers=bound_to(approvers),
        )
        unit.put(key)
        note(services, unit, "key.create", Principal(account), id, origin)
        await unit.commit()
    return IssuedKey(key, text, key.callback_secret)


def _new_callback_secret(services: Services) -> str:
    return SECRET_PREFIX + services.tokens.text(SECRET_LENGTH)


@retried
async def revoke_key(
    services: Services, who: Principal | Unrestricted, key_id: str, origin: Origin = UNKNOWN
) -> ApiKey:
    """
    Revoke a key of *who* (an operator: a key of anybody) from the next request on.
    Revoking a revoked key changes nothing. Raises `NotFound`. AU-3.
    """
    now = services.clock.now()
    async with services.store.unit() as unit:
        key = _own(await unit.get(ApiKey, key_id), who)
        if key.revoked_at is not None:
            return key
        key = evolve(key, revoked_at=now)
        unit.put(key)
        note(services, unit, "key.revoke", who, key_id, origin)
        await unit.commit()
    return key


@retried
async def rotate_key(
    services: Services,
    who: Principal | Unrestricted,
    key_id: str,
    overlap: DurationMs = ROTATION_OVERLAP,
    origin: Origin = UNKNOWN,
    *,
    on_host: bool = False,
) -> IssuedKey:
    """
    A new secret for the key, under the same id; the old secret stays valid for *overlap*. AU-7. The
    rotation of a key of scope ADMIN needs *on_host*. AC-8.

    Raises `NotFound`, `Conflict` (revoked), `InvalidInput`.
    """
    now = services.clock.now()
    async with services.store.unit() as unit:
        key = _own(await unit.get(ApiKey, key_id), who)
        if key.revoked_at is not None:
            raise Conflict("A revoked key cannot be rotated")
        owner = await unit.get(Account, key.account_id)
        if owner is not None:
            refuse_admin_key(owner, key.scopes, services.policy.operators, on_host)
        text = compose(key_id, services.tokens.text(RANDOM_LENGTH))
        rotated = evolve(
            key,
            secret_hash=hash_secret(secret_of(text)),
            previous_hash=key.secret_hash,
            previous_until=later(now, overlap),
            callback_secret=key.callback_secret or _new_callback_secret(services),
        )
        unit.put(rotated)
        note(services, unit, "key.rotate", who, key_id, origin)
        await unit.commit()
    is_new = key.callback_secret is None
    return IssuedKey(rotated, text, rotated.callback_secret if is_new else None)


def _own(key: ApiKey | None, who: Principal | Unrestricted) -> ApiKey:
    sees = who is OPERATOR or who.operator or (key is not None and key.account_id == who.account.id)
    if key is None or not sees:
        raise NotFound("Key")
    return key


async def read_key(
    services: Services, who: Principal, key_id: str
) -> tuple[ApiKey, Sequence[Webhook]]:
    """A key of *who* (an operator: a key of anybody) and its webhooks. Raises `NotFound`."""
    async with services.store.view() as view:
        key = _own(await view.get(ApiKey, key_id), who)
        hooks = await view.webhooks.all_of_owner(key.account_id)
    return key, [hook for hook in hooks if hook.api_key_id == key.id]


async def find_key(services: Services, key_id: str) -> ApiKey | None:
    """The key with that id, revoked or not."""
    async with services.store.view() as view:
        return await view.get(ApiKey, key_id)


async def list_keys(services: Services, account_id: str) -> Sequence[ApiKey]:
    """The keys of an account, newest first, with the time of their last use."""
    async with services.store.view() as view:
        keys = await view.keys.of_account(account_id)
    return [evolve(key, last_used_at=await _last_used(services, key)) for key in keys]


async def _last_used(services: Services, key: ApiKey) -> EpochMs | None:
    return await services.counters.last_used(f"key:{key.id}") or key.last_used_at
