"""
Links and tokens that the server signs, and the keys for them: download links, personal approval
links, sign-in by single sign-on. Signatures of webhooks are in `rules.webhooks.scheme`.

Keys come from two places: keys *given* to each server (in a file or a setting), and keys *kept* in
the store, which all servers read. A signature is `<id>.<what the key made>`. The id is a digest of
the key, so no key needs a name; a signature without an id is from before there were ids.

The set of keys is read in the unit of work that signs or verifies, so every server refuses a
retired key from the next request on.
"""

import hmac
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from hashlib import sha256
from hmac import compare_digest

from attrs import evolve, frozen

from wfcore.errors import Conflict, NotFound, PersonalLinkOver
from wfcore.model.approval import Approval
from wfcore.model.signing import SigningKey, SigningKeys
from wfcore.rules.base64url import decoded, encoded
from wfcore.time import EpochMs

SIGNING_KEYS = 20
"""The most keys in the store: a key is added after a leak, or once a year."""
NO_KEYS = SigningKeys("all", ())
RANDOM_LENGTH = 43
"""Base62 characters of a key: 256 bits."""
_NAMED = re.compile(r"([0-9a-f]{8})\.(.*)", re.ASCII | re.DOTALL)
_HEX_DIGEST = re.compile(r"[0-9a-fA-F]{64}", re.ASCII)


def sign_download(key: bytes, artifact_id: str, expires: EpochMs) -> str:
    """The signature of a download link that is valid until *expires*. AR-2."""
    message = f"download:{artifact_id}:{expires}".encode()
    return hmac.new(key, message, sha256).hexdigest()


def download_fits(
    key: bytes, artifact_id: str, expires: EpochMs, signature: str, now: EpochMs
) -> bool:
    """Whether the link's signature matches and the link has not expired. AR-2."""
    if now >= expires or _HEX_DIGEST.fullmatch(signature) is None:
        return False
    wanted = sign_download(key, artifact_id, expires)
    return compare_digest(wanted.encode(), signature.lower().encode())


@frozen
class PersonalLink:
    """The content of a personal link: the approval, the person, and the end of its validity."""

    approval_id: str
    email: str
    expires: EpochMs


def personal_token(key: bytes, approval: Approval, email: str) -> str:
    """
    A token with which *email* decides *approval* at `/a/<token>` without signing in. Nothing is
    stored: the token is valid until the approval expires, or *key* is retired. PL-1.
    """
    text = f"{approval.id}:{email.strip().lower()}"
    return signed(key, "approval", text, approval.expires_at)


def read_personal_token(key: bytes, token: str, now: EpochMs) -> PersonalLink:
    """
    The content of a token of `personal_token`. PL-1.

    Raises `PersonalLinkOver` if *key* did not sign the token, or if the token has expired.
    """
    found = read_signed(key, "approval", token)
    if found is None:
        raise PersonalLinkOver
    text, expires = found
    if now >= expires:
        raise PersonalLinkOver(expired=True)
    approval_id, _, email = text.partition(":")
    return PersonalLink(approval_id, email, expires)


def signed(key: bytes, purpose: str, text: str, expires: EpochMs) -> str:
    """
    *text* as a signed token of letters, digits, `-`, `_` and a dot. Everybody can read the text.
    """
    said = f"{expires}:{text}".encode()
    return f"{encoded(said)}.{encoded(_digest(key, purpose, said))}"


def read_signed(key: bytes, purpose: str, token: str) -> tuple[str, EpochMs] | None:
    """
    The text and the expiry of a token that *key* signed for *purpose*; None for any other token.
    """
    said, _, signature = token.partition(".")
    try:
        text, given = decoded(said), decoded(signature)
    except ValueError:
        return None
    if not compare_digest(_digest(key, purpose, text), given):
        return None
    expires, _, rest = text.decode().partition(":")
    return rest, EpochMs(int(expires))


def _digest(key: bytes, purpose: str, text: bytes) -> bytes:
    return hmac.new(key, f"{purpose}:".encode() + text, sha256).digest()


def id_of(key: bytes) -> str:
    """The id of a key, which reveals nothing about the key."""
    return sha256(b"wfcore signing key " + key).hexdigest()[:8]


@frozen
class Keyring:
    """
    The valid keys. `named`: keys by id; the first key signs. `unnamed`: keys that may have made
    signatures without an id. `made_at`: the instants at which kept keys were made.
    """

    named: Mapping[str, bytes]
    unnamed: Sequence[bytes]
    made_at: Mapping[str, EpochMs]

    def __repr__(self) -> str:
        return f"Keyring({', '.join(self.named)})"

    def signed(self, make: Callable[[bytes], str]) -> str:
        """The result of *make* for the key that signs, with the key's id before it. SK-1."""
        id, key = next(iter(self.named.items()))
        return f"{id}.{make(key)}"

    def tried(self, text: str) -> Iterator[tuple[bytes, str]]:
        """The keys that may have made *text*, each with its part of *text*. SK-1, SK-3."""
        named = _NAMED.fullmatch(text)
        if named is None:
            yield from ((key, text) for key in self.unnamed)
        elif named[1] in self.named:
            yield self.named[named[1]], named[2]


def keyring(given: Sequence[bytes], kept: SigningKeys | None) -> Keyring:
    """
    The valid keys. The newest kept key signs; without kept keys, the first given key signs. SK-1. A
    retired key is invalid, wherever it is still stored. SK-2.
    """
    kept = kept or NO_KEYS
    good = {id_of(key): key for key in given if id_of(key) not in kept.retired}
    named = {one.id: one.key.encode() for one in kept.keys} | good
    return Keyring(named, tuple(good.values()), {one.id: one.made_at for one in kept.keys})


def rotated(kept: SigningKeys, random: str, now: EpochMs) -> SigningKeys:
    """
    The kept keys with a new key, which signs from now on. Raises `Conflict` if there are too many.
    SK-1.
    """
    if len(kept.keys) >= SIGNING_KEYS:
        raise Conflict(f"There are {SIGNING_KEYS} signing keys; retire one that is not needed")
    return evolve(kept, keys=(SigningKey(id_of(random.encode()), now, random), *kept.keys))


def retired(kept: SigningKeys, given: Sequence[bytes], id: str) -> SigningKeys:
    """
    The kept keys without the key *id*, whose signatures are then refused. A kept key is deleted;
    the id of a given key is recorded, because each server still has the key. SK-2.

    Raises `NotFound`, and `Conflict` for the key that signs. Also raises `Conflict` while no kept
    key signs: a server may have been given only the key that is to go.
    """
    ring = keyring(given, kept)
    if id not in ring.named:
        raise NotFound("Signing key")
    if not kept.keys or id == kept.keys[0].id:
        raise Conflict(f"{next(iter(ring.named))} signs links; rotate first")
    left = tuple(one for one in kept.keys if one.id != id)
    gone = () if id in ring.made_at else (id,)
    return evolve(kept, keys=left, retired=(*kept.retired, *gone))
