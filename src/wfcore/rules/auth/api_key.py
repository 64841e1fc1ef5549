"""
API keys: their format, their places in a request, and their validity.

`wfk_<id>_<secret>`, where id and secret are base62. The id has the form of all ids; the ids of
older keys are 16 random characters. The secret consists of 36 random characters (214 bits) and a
checksum of 6, so that a truncated copy is recognized before any lookup, and secret scanners
recognize a leaked key.
"""

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from hashlib import sha256
from hmac import compare_digest

from attrs import field, frozen

from wfcore.errors import AuthReason, Conflict, Unauthenticated
from wfcore.model.access import ApiKey, Tier
from wfcore.rules.limits import KEYS_PER_ACCOUNT
from wfcore.time import DAY, EpochMs

PREFIX = "wfk"
_OURS = f"{PREFIX}_"
_SCHEME = "bearer"
ID_LENGTHS = (8, 60)
"""The least and the most characters of an id."""
RANDOM_LENGTH = 36
CHECKSUM_LENGTH = 6
ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_ID = rf"[0-9A-Za-z]{{{ID_LENGTHS[0]},{ID_LENGTHS[1]}}}"
_SECRET = rf"[0-9A-Za-z]{{{RANDOM_LENGTH + CHECKSUM_LENGTH}}}"
_FORM = re.compile(rf"{PREFIX}_({_ID})_({_SECRET})", re.ASCII)


_LIKE_A_KEY = re.compile(rf"{PREFIX}_[0-9A-Za-z]+_[0-9A-Za-z]+", re.ASCII)


def without_keys(text: str) -> str:
    """*text* without all parts that look like a key."""
    return _LIKE_A_KEY.sub(f"{PREFIX}_***", text)


def hash_secret(secret: str) -> str:
    """The stored hash of a secret. A plain hash is enough for 214 random bits."""
    return sha256(secret.encode()).hexdigest()


@frozen
class Presented:
    """A well-formed key of a request. Never shown, never stored. SC-4."""

    id: str
    secret: str
    secret_hash: str = field(init=False)

    @secret_hash.default
    def _hashed(self) -> str:
        return hash_secret(self.secret)

    def __repr__(self) -> str:
        return f"Presented(id={self.id!r})"


def checksum(id: str, random: str) -> str:
    """Six base62 digits over the id and the random part."""
    number = int.from_bytes(sha256(f"{id}_{random}".encode()).digest()[:8])
    digits = ""
    for _ in range(CHECKSUM_LENGTH):
        number, digit = divmod(number, len(ALPHABET))
        digits = ALPHABET[digit] + digits
    return digits


def compose(id: str, random: str) -> str:
    """The text of a key, from its id and 36 random characters."""
    return f"{PREFIX}_{id}_{random}{checksum(id, random)}"


def parse(text: str) -> Presented:
    """The parts of a key. Raises `Unauthenticated` (malformed) before any lookup. AU-2."""
    match = _FORM.fullmatch(text)
    if match is None:
        raise Unauthenticated(AuthReason.MALFORMED)
    id, secret = match.groups()
    if checksum(id, secret[:RANDOM_LENGTH]) != secret[RANDOM_LENGTH:]:
        raise Unauthenticated(AuthReason.MALFORMED)
    return Presented(id, secret)


def secret_of(key: str) -> str:
    """The secret part of a composed key."""
    return key.rpartition("_")[2]


_NO_SECRET = hash_secret("")


def check(key: ApiKey | None, presented: Presented, now: EpochMs) -> ApiKey:
    """
    The key, if it is valid now. The comparison takes as long for an unknown id. AU-2, AU-3.

    Raises `Unauthenticated` with the reason for the audit log.
    """
    given = presented.secret_hash.encode()
    fits = compare_digest(given, (key.secret_hash if key else _NO_SECRET).encode())
    old = _previous_hash(key, now)
    fits_old = compare_digest(given, (old or _NO_SECRET).encode()) and old is not None
    if key is None:
        raise Unauthenticated(AuthReason.UNKNOWN_KEY, key_id=presented.id)
    if not (fits or fits_old):
        raise Unauthenticated(AuthReason.BAD_SECRET, key.account_id, key.id)
    if key.revoked_at is not None:
        raise Unauthenticated(AuthReason.REVOKED, key.account_id, key.id)
    if key.expires_at is not None and now >= key.expires_at:
        raise Unauthenticated(AuthReason.EXPIRED, key.account_id, key.id)
    return key


def require_room(plan: Tier, keys: Iterable[ApiKey], now: EpochMs) -> None:
    """
    Raises `Conflict` if the account has as many keys as its plan allows. Each key has a quota of
    its own, so a key that was revoked or has expired counts until the day of its quota is over.
    LM-11.
    """
    today, limit = now - now % DAY, KEYS_PER_ACCOUNT[plan]
    ends = (min(one.revoked_at or now, one.expires_at or now) for one in keys)
    if sum(end >= today for end in ends) >= limit:
        raise Conflict(
            f"The plan {plan} allows {limit} keys, with those that were revoked or ran out today; "
            "revoke one and wait for the next day (UTC), rotate one, or upgrade"
        )


def _previous_hash(key: ApiKey | None, now: EpochMs) -> str | None:
    """The hash from before a rotation, while it is still valid. AU-7."""
    if key is None or key.previous_until is None or now >= key.previous_until:
        return None
    return key.previous_hash


def presented_key(
    authorization: Sequence[str], x_api_key: Sequence[str], query: Sequence[str]
) -> str:
    """
    The API key from the first non-empty place: Bearer, `X-API-Key`, `api_key`. AU-1.

    *authorization*, *x_api_key*, *query*: all values of the header or query parameter of that name
    (of the query parameter only if the route allows it). An `Authorization` header of another
    scheme is skipped, and the next place is tried. Two different values in one place are malformed,
    as are two different `Authorization` headers of any scheme, because a proxy may have checked
    either one. AU-5.

    Raises `Unauthenticated`.
    """
    if len({value.strip() for value in authorization}) > 1:
        raise Unauthenticated(AuthReason.MALFORMED)
    for way, read in ((authorization, _bearer), (x_api_key, str.strip), (query, str.strip)):
        found = {key for key in map(read, way) if key}
        if len(found) > 1:
            raise Unauthenticated(AuthReason.MALFORMED)
        if found:
            return found.pop()
    raise Unauthenticated(AuthReason.MISSING)


REMEMBERED = 1_024


@lru_cache(REMEMBERED)
def presented(
    authorization: tuple[str, ...], x_api_key: tuple[str, ...], query: tuple[str, ...]
) -> Presented:
    """
    The parts of the key that `presented_key` finds. Raises `Unauthenticated`.

    Clients send the same key with every request, and finding, checking and hashing the key takes a
    fifth of the time of a poll. So the last `REMEMBERED` well-formed keys, valid or not, stay in
    memory, beside the server's other secrets. `check` repeats each time the tests that depend on
    the time or on stored records.
    """
    return parse(presented_key(authorization, x_api_key, query))


def _bearer(value: str) -> str:
    scheme, _, key = value.strip().partition(" ")
    return key.strip() if scheme.lower() == _SCHEME else ""


def bears_key(authorization: Sequence[str], x_api_key: Sequence[str], query: Sequence[str]) -> bool:
    """
    Whether any value looks like one of our keys, valid or not. AU-10.

    If a value does, only the key counts; otherwise the values may belong to a surrounding
    application.
    """
    values = (*map(_bearer, authorization), *map(str.strip, x_api_key), *map(str.strip, query))
    return any(value.startswith(_OURS) for value in values)
