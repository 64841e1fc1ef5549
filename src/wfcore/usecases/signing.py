"""
Keys that sign links, rotated while servers run.

Keys are read from the store for every signature and verification, never remembered: a change at one
server is valid at all servers from the next request on. SK-2.
"""

from collections.abc import Sequence

from attrs import frozen

from wfcore.model.access import Principal, Unrestricted
from wfcore.model.approval import Approval
from wfcore.model.signing import SigningKeys
from wfcore.ports.store import View
from wfcore.rules.auth.signed_links import (
    NO_KEYS,
    RANDOM_LENGTH,
    Keyring,
    keyring,
    personal_token,
    retired,
    rotated,
)
from wfcore.time import EpochMs
from wfcore.usecases.audit.auditing import UNKNOWN, Origin, note
from wfcore.usecases.services import Services
from wfcore.usecases.unit_of_work import retried


@frozen
class KnownKey:
    """
    A key that verifies links. `made_at` None: a key from this server's configuration. `signs`:
    whether the key signs new links.
    """

    id: str
    made_at: EpochMs | None
    signs: bool


async def keys_in(view: View, services: Services) -> Keyring:
    """The keys that are valid now."""
    return keyring(services.given_keys, await view.get(SigningKeys, NO_KEYS.id))


async def signing_keys(services: Services) -> Keyring:
    """The signing keys, read in a view of their own."""
    async with services.store.view() as view:
        return await keys_in(view, services)


async def personal_path(services: Services, view: View, approval: Approval, email: str) -> str:
    """
    The path, below the server's public URL, at which *email* decides *approval* without signing in.
    PL-1.
    """
    keys = await keys_in(view, services)
    return f"/a/{keys.signed(lambda key: personal_token(key, approval, email))}"


async def list_signing_keys(services: Services) -> Sequence[KnownKey]:
    """The keys that verify links, the signing key first. For operators."""
    ring = await signing_keys(services)
    return [KnownKey(id, ring.made_at.get(id), number == 0) for number, id in enumerate(ring.named)]


@retried
async def rotate_signing_key(
    services: Services, who: Principal | Unrestricted, origin: Origin = UNKNOWN
) -> KnownKey:
    """
    Make a new key, which signs from now on at every server; signatures of other keys stay valid.
    Raises `Conflict`.
    """
    now = services.store.now()
    async with services.store.unit() as unit:
        kept = await unit.get(SigningKeys, NO_KEYS.id) or NO_KEYS
        changed = rotated(kept, services.tokens.text(RANDOM_LENGTH), now)
        unit.put(changed)
        id = changed.keys[0].id
        note(services, unit, "signing.rotate", who, id, origin)
        await unit.commit()
    return KnownKey(id, now, True)


@retried
async def retire_signing_key(
    services: Services, who: Principal | Unrestricted, key_id: str, origin: Origin = UNKNOWN
) -> None:
    """
    Retire a key: every server refuses its signatures from now on. Raises `NotFound`, `Conflict`.
    """
    async with services.store.unit() as unit:
        kept = await unit.get(SigningKeys, NO_KEYS.id) or NO_KEYS
        unit.put(retired(kept, services.given_keys, key_id))
        note(services, unit, "signing.retire", who, key_id, origin)
        await unit.commit()
