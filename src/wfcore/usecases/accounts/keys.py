"""API keys, as the operator manages them. Contract §7. A key's text is returned once."""

from collections.abc import Collection, Sequence

from attrs import evolve, frozen

from wfcore.errors import Conflict, InvalidInput, NotFound
from wfcore.model.access import Account, ApiKey, Principal, Scope
from wfcore.rules.auth.api_key import ID_LENGTH, RANDOM_LENGTH, compose, hash_secret, secret_of
from wfcore.rules.callback import SECRET_LENGTH, SECRET_PREFIX
from wfcore.rules.limits import ROTATION_OVERLAP
from wfcore.rules.webhooks.webhook import check_name
from wfcore.time import DurationMs, EpochMs, later
from wfcore.usecases.audit.auditing import UNKNOWN, Origin, note
from wfcore.usecases.services import Services
from wfcore.usecases.unit_of_work import retried


@frozen
class IssuedKey:
    """A key with its text, which is not stored, and its callback secret if that is new."""

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
) -> IssuedKey:
    """A new key of an account. Raises `NotFound`, `InvalidInput`."""
    now = services.clock.now()
    if not scopes:
        raise InvalidInput("scope", "at least one is needed")
    async with services.store.unit() as unit:
        account = await unit.get(Account, account_id)
        if account is None:
            raise NotFound("Account")
        id = services.tokens.text(ID_LENGTH)
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
        )
        unit.put(key)
        note(services, unit, "key.create", Principal(account), id, origin)
        await unit.commit()
    return IssuedKey(key, text, key.callback_secret)


def _new_callback_secret(services: Services) -> str:
    return SECRET_PREFIX + services.tokens.text(SECRET_LENGTH)


@retried
async def revoke_key(services: Services, key_id: str, origin: Origin = UNKNOWN) -> ApiKey:
    """
    Revoke a key from the next request on; doing so again changes nothing. Raises `NotFound`. AU-3.
    """
    now = services.clock.now()
    async with services.store.unit() as unit:
        key = await unit.get(ApiKey, key_id)
        if key is None:
            raise NotFound("Key")
        if key.revoked_at is not None:
            return key
        key = evolve(key, revoked_at=now)
        unit.put(key)
        note(services, unit, "key.revoke", None, key_id, origin)
        await unit.commit()
    return key


@retried
async def rotate_key(
    services: Services,
    key_id: str,
    overlap: DurationMs = ROTATION_OVERLAP,
    origin: Origin = UNKNOWN,
) -> IssuedKey:
    """
    A new secret under the same id; the old one stays valid for *overlap*. AU-7.

    Raises `NotFound`, `Conflict` (revoked).
    """
    now = services.clock.now()
    async with services.store.unit() as unit:
        key = await unit.get(ApiKey, key_id)
        if key is None:
            raise NotFound("Key")
        if key.revoked_at is not None:
            raise Conflict("A revoked key cannot be rotated")
        text = compose(key_id, services.tokens.text(RANDOM_LENGTH))
        rotated = evolve(
            key,
            secret_hash=hash_secret(secret_of(text)),
            previous_hash=key.secret_hash,
            previous_until=later(now, overlap),
            callback_secret=key.callback_secret or _new_callback_secret(services),
        )
        unit.put(rotated)
        note(services, unit, "key.rotate", None, key_id, origin)
        await unit.commit()
    is_new = key.callback_secret is None
    return IssuedKey(rotated, text, rotated.callback_secret if is_new else None)


async def find_key(services: Services, key_id: str) -> ApiKey | None:
    """The key of that id, revoked or not."""
    async with services.store.view() as view:
        return await view.get(ApiKey, key_id)


async def list_keys(services: Services, account_id: str) -> Sequence[ApiKey]:
    """The keys of an account, newest first, with the time of their last use."""
    async with services.store.view() as view:
        keys = await view.keys.of_account(account_id)
    return [evolve(key, last_used_at=await _last_used(services, key)) for key in keys]


async def _last_used(services: Services, key: ApiKey) -> EpochMs | None:
    return await services.counters.last_used(f"key:{key.id}") or key.last_used_at
