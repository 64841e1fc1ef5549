"""
Passkeys: which answer of a browser counts, and what an account keeps of its passkeys.

A *nonce* is a signed token that the server gives for one confirmation of one account. Nothing is
stored until the nonce is taken; the account then remembers its hash until it has expired. So a
nonce is taken once at all servers, and asking for one costs no write. SR-3, SR-5 to SR-7.
"""

import json
from collections.abc import Sequence
from enum import StrEnum
from hashlib import sha256
from ipaddress import ip_address
from urllib.parse import urlsplit

from attrs import evolve, frozen

from wfcore.errors import Conflict, InvalidInput, NotConfirmed, NotFound
from wfcore.model.access import Account, Session, SpentNonce
from wfcore.model.passkey import Assertion, Passkey, PasskeyMaterial, RelyingParty
from wfcore.rules.auth.signed_links import Keyring, read_signed, signed
from wfcore.rules.base64url import decoded
from wfcore.rules.limits import CONFIRMATION, MAX_PASSKEYS, RECENT_SIGN_IN
from wfcore.rules.mailbox import ascii_domain
from wfcore.rules.receipt import counter_in
from wfcore.rules.visible import is_blank
from wfcore.time import EpochMs, later

NAME_LENGTH = 80


class NonceUse(StrEnum):
    """The use for which a nonce is given. A nonce fits no other use."""

    APPROVE = "approve"
    REGISTER = "register"
    SIGN_IN = "sign-in"
    AFTER_PASSWORD = "after-password"  # noqa: S105 - the name of a use


def relying_party(public_url: str | None) -> RelyingParty | None:
    """
    The names under which browsers know the server at *public_url*; None where browsers offer no
    passkeys: without a URL, at an IP address, and without TLS outside of `localhost`. SR-7.
    """
    try:
        parts = urlsplit(public_url or "")
        host, port = as_browsers_write(parts.hostname or ""), parts.port
    except ValueError:
        return None
    is_local = host == "localhost" or host.endswith(".localhost")
    secure = parts.scheme == "https" or (parts.scheme == "http" and is_local)
    if not secure or _is_ip(host):
        return None
    port = port if port != {"https": 443, "http": 80}[parts.scheme] else None
    suffix = f":{port}" if port else ""
    return RelyingParty(host, f"{parts.scheme}://{host}{suffix}")


def as_browsers_write(host: str) -> str:
    """
    The host in the form that browsers put into origins: lower case, other scripts as A-labels.
    Raises `ValueError` for no host, and for a final dot, which makes another origin. SR-7.
    """
    if not host or host.endswith("."):
        raise ValueError("must name a host without a final dot")
    return host.lower() if host.isascii() else ascii_domain(host)


def _is_ip(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


def origin_fault(assertion: Assertion, party: RelyingParty) -> str | None:
    """The fault of an answer that was made at another origin than the server's. SR-3, SR-7."""
    said = json.loads(decoded(assertion.client_data))
    return None if said["origin"] == party.origin else "it was made at another address"


@frozen
class Nonce:
    """A nonce that the server gave: to which account (empty: to nobody yet), and when."""

    token: str
    account_id: str
    given_at: EpochMs

    @property
    def challenge(self) -> bytes:
        """The bytes that are signed where nothing but the nonce is."""
        return sha256(self.token.encode()).digest()


def new_nonce(keys: Keyring, use: NonceUse, account_id: str, random: str, now: EpochMs) -> Nonce:
    """A nonce for one confirmation, given *now*. SR-3."""
    text, until = f"{account_id}:{random}", later(now, CONFIRMATION)
    token = keys.signed(lambda key: signed(key, f"passkey.{use}", text, until))
    return Nonce(token, account_id, now)


def read_nonce(keys: Keyring, use: NonceUse, token: str, now: EpochMs) -> Nonce:
    """
    The nonce in *token*. Raises `NotConfirmed` for a token that the server did not give for *use*,
    or that has expired. SR-3.
    """
    read = (read_signed(key, f"passkey.{use}", made) for key, made in keys.tried(token))
    found = next((one for one in read if one is not None), None)
    if found is None:
        raise NotConfirmed("it belongs to another request; try again")
    text, until = found
    if now >= until:
        raise NotConfirmed("it took too long; try again")
    return Nonce(token, text.partition(":")[0], EpochMs(until - CONFIRMATION))


def with_nonce_taken(account: Account, nonce: Nonce, now: EpochMs) -> Account:
    """
    The account that remembers the nonce. Raises `NotConfirmed` if it was taken before. SR-3.
    """
    hash = sha256(nonce.token.encode()).hexdigest()
    if any(one.hash == hash for one in account.spent_nonces):
        raise NotConfirmed("it was used already; try again")
    kept = tuple(one for one in account.spent_nonces if now < one.until)
    spent = SpentNonce(hash, later(nonce.given_at, CONFIRMATION))
    return evolve(account, spent_nonces=(*kept, spent))


def passkey_of(account: Account, id: str) -> Passkey:
    """The account's passkey with that credential id. Raises `NotFound`."""
    for one in account.passkeys:
        if one.id == id:
            return one
    raise NotFound("Passkey")


def usable_passkeys(account: Account, party: RelyingParty | None) -> tuple[Passkey, ...]:
    """The passkeys that browsers offer at the server's present address, last used first. SR-7."""
    found = [one for one in account.passkeys if party is not None and one.rp_id == party.id]
    found.sort(key=lambda one: one.last_used_at or one.created_at, reverse=True)
    return tuple(found)


def lost_passkeys(registered: Sequence[Passkey], party: RelyingParty | None) -> str | None:
    """The words for passkeys that do not count at the server's address; None: all count. SR-7."""
    hosts = {one.rp_id for one in registered} - ({party.id} if party else set())
    if not hosts:
        return None
    lost = sum(one.rp_id in hosts for one in registered)
    named = ", ".join(sorted(hosts))
    return f"{lost} of {len(registered)} do not count here: registered for {named}"


def used(account: Account, passkey: Passkey, assertion: Assertion, now: EpochMs) -> Account:
    """
    The account after a use of *passkey*. Raises `NotConfirmed` for a counter that does not grow:
    the passkey was copied. Authenticators without a counter send 0. SR-3.
    """
    counter = counter_in(assertion)
    if (counter or passkey.counter) and counter <= passkey.counter:
        raise NotConfirmed("its counter went back, as with a copied passkey; register another")
    seen = evolve(passkey, counter=counter, last_used_at=now)
    return evolve(
        account, passkeys=tuple(seen if one == passkey else one for one in account.passkeys)
    )


def require_recent(session: Session, now: EpochMs) -> None:
    """Raises `NotConfirmed` for a session whose sign-in was over five minutes ago. SR-4."""
    if now >= session.created_at + RECENT_SIGN_IN:
        raise NotConfirmed("sign in again first: the last sign-in was over five minutes ago")


def with_passkey(
    account: Account, made: PasskeyMaterial, name: str, rp_id: str, now: EpochMs
) -> Account:
    """
    The account with one more passkey. Raises `InvalidInput` for a name, `Conflict` for a passkey
    that is registered already and for one too many. SR-4.
    """
    if len(account.passkeys) >= MAX_PASSKEYS:
        raise Conflict(f"There are {MAX_PASSKEYS} passkeys; remove one first")
    if any(one.id == made.id for one in account.passkeys):
        raise Conflict("This passkey is registered already")
    passkey = Passkey(
        made.id, checked_name(name), made.public_key, made.algorithm, rp_id, now, made.counter
    )
    return evolve(account, passkeys=(*account.passkeys, passkey))


def checked_name(name: str) -> str:
    """The name of a passkey. Raises `InvalidInput`."""
    if is_blank(name) or len(name) > NAME_LENGTH:
        raise InvalidInput("name", f"must be a text of at most {NAME_LENGTH} characters")
    return name.strip()


def renamed(account: Account, id: str, name: str) -> Account:
    """The account with another name for a passkey. Raises `NotFound`, `InvalidInput`."""
    passkey, name = passkey_of(account, id), checked_name(name)
    return evolve(
        account,
        passkeys=tuple(
            evolve(one, name=name) if one == passkey else one for one in account.passkeys
        ),
    )


def without_passkey(account: Account, id: str) -> Account:
    """
    The account without a passkey. Without its last passkey, a password alone signs in again. Raises
    `NotFound`. SR-5.
    """
    passkey = passkey_of(account, id)
    left = tuple(one for one in account.passkeys if one != passkey)
    return evolve(account, passkeys=left, passkey_required=account.passkey_required and bool(left))
