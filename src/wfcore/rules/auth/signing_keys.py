"""
The keys that sign links: which one signs, which ones verify, and how a set changes.

Keys come from two places: those *given* to each server (a file or a setting), and those *kept* in
the store, which all servers read. A signature is `<id>.<what the key made>`; the id is a digest of
the key, so no key needs a name. One without an id is from before there were ids.

Nobody remembers the set: it is read in the unit that signs or verifies, so that a retired key is
refused by every server from the next request on.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from hashlib import sha256

from attrs import evolve, frozen

from wfcore.errors import Conflict, NotFound
from wfcore.model.signing import SigningKey, SigningKeys
from wfcore.time import EpochMs

SIGNING_KEYS = 20
"""So many kept keys there may be: each is one that leaked, or a year's."""
NO_KEYS = SigningKeys("all", ())
RANDOM_LENGTH = 43
"""Base62 characters of a key: 256 bits."""
_NAMED = re.compile(r"([0-9a-f]{8})\.(.*)", re.ASCII | re.DOTALL)


def id_of(key: bytes) -> str:
    """The id of a key, which says nothing about it."""
    return sha256(b"wfcore signing key " + key).hexdigest()[:8]


@frozen
class Keyring:
    """
    `named`: keys by id, the one that signs first. `unnamed`: those that may have signed without
    saying so. `made_at`: of the kept ones.
    """

    named: Mapping[str, bytes]
    unnamed: Sequence[bytes]
    made_at: Mapping[str, EpochMs]

    def __repr__(self) -> str:
        return f"Keyring({', '.join(self.named)})"

    def signed(self, make: Callable[[bytes], str]) -> str:
        """What *make* gives for the key that signs, with the id of that key. SK-1."""
        id, key = next(iter(self.named.items()))
        return f"{id}.{make(key)}"

    def tried(self, text: str) -> Iterator[tuple[bytes, str]]:
        """Keys that may have made *text*, each with what it made of it. SK-1, SK-3."""
        named = _NAMED.fullmatch(text)
        if named is None:
            yield from ((key, text) for key in self.unnamed)
        elif named[1] in self.named:
            yield self.named[named[1]], named[2]


def keyring(given: Sequence[bytes], kept: SigningKeys | None) -> Keyring:
    """
    The keys that are good. The newest kept one signs; without any, the first given one. SK-1.
    A key that was retired is none, wherever it still is. SK-2.
    """
    kept = kept or NO_KEYS
    good = {id_of(key): key for key in given if id_of(key) not in kept.retired}
    named = {one.id: one.key.encode() for one in kept.keys} | good
    return Keyring(named, tuple(good.values()), {one.id: one.made_at for one in kept.keys})


def rotated(kept: SigningKeys, random: str, now: EpochMs) -> SigningKeys:
    """With a new key, which signs from now on. Raises `Conflict` if there are too many. SK-1."""
    if len(kept.keys) >= SIGNING_KEYS:
        raise Conflict(f"There are {SIGNING_KEYS} signing keys; retire one that is not needed")
    return evolve(kept, keys=(SigningKey(id_of(random.encode()), now, random), *kept.keys))


def retired(kept: SigningKeys, given: Sequence[bytes], id: str) -> SigningKeys:
    """
    Without the key *id*: what it signed is refused. A kept one is forgotten; of a given one it is
    remembered, as each server still has it. SK-2.

    Raises `NotFound`, and `Conflict` for the key that signs, or while no kept key does: a server
    may have been given just the one that is to go.
    """
    ring = keyring(given, kept)
    if id not in ring.named:
        raise NotFound("Signing key")
    if not kept.keys or id == kept.keys[0].id:
        raise Conflict(f"{next(iter(ring.named))} signs links; rotate first")
    left = tuple(one for one in kept.keys if one.id != id)
    gone = () if id in ring.made_at else (id,)
    return evolve(kept, keys=left, retired=(*kept.retired, *gone))
