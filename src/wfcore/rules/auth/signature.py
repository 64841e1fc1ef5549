"""
HMAC signatures: webhook triggers, download links, personal approval links. Spec: legacy signature
mode.
"""

import hmac
import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from hashlib import sha256
from hmac import compare_digest

from attrs import frozen

from wfcore.errors import PersonalLinkOver
from wfcore.model.approval import Approval
from wfcore.time import EpochMs

_HEX_DIGEST = re.compile(r"[0-9a-fA-F]{64}", re.ASCII)
_PREFIX = "sha256="


def sign(secret: str, body: bytes) -> str:
    """The hex HMAC-SHA256 of the raw body bytes. SG-1."""
    return hmac.new(secret.encode(), body, sha256).hexdigest()


def signature_fits(secret: str, body: bytes, header: str | None) -> bool:
    """
    Whether *header* (`sha256=<hex>`, prefix optional) is the signature of exactly *body*.

    SG-1 to SG-3. Length and alphabet are checked first, so that only well-formed text is compared.
    An empty secret signs nothing.
    """
    if not secret or header is None:
        return False
    digest = header.strip().removeprefix(_PREFIX)
    if _HEX_DIGEST.fullmatch(digest) is None:
        return False
    return compare_digest(sign(secret, body).encode(), digest.lower().encode())


def sign_download(key: bytes, artifact_id: str, expires: EpochMs) -> str:
    """The signature of a download link that is valid until *expires*. AR-2."""
    message = f"download:{artifact_id}:{expires}".encode()
    return hmac.new(key, message, sha256).hexdigest()


def download_fits(
    key: bytes, artifact_id: str, expires: EpochMs, signature: str, now: EpochMs
) -> bool:
    """Whether the link's signature matches and it has not expired. AR-2."""
    if now >= expires or _HEX_DIGEST.fullmatch(signature) is None:
        return False
    wanted = sign_download(key, artifact_id, expires)
    return compare_digest(wanted.encode(), signature.lower().encode())


@frozen
class PersonalLink:
    """What a personal link says: which approval, to whom, and until when it is good."""

    approval_id: str
    email: str
    expires: EpochMs


def personal_token(key: bytes, approval: Approval, email: str) -> str:
    """
    With it *email* decides *approval* without signing in, at `/a/<token>`. Nothing is stored: it
    ends with the approval, or with *key*. PL-1.
    """
    text = f"{approval.id}:{email.strip().lower()}"
    return signed(key, "approval", text, approval.expires_at)


def read_personal_token(key: bytes, token: str, now: EpochMs) -> PersonalLink:
    """
    What a token of `personal_token` says. PL-1.

    Raises `PersonalLinkOver` if *key* did not sign it, or its time is over.
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
    """*text* as a token of letters, digits, `-`, `_` and a dot, which anybody may read."""
    said = f"{expires}:{text}".encode()
    return f"{_text(said)}.{_text(_digest(key, purpose, said))}"


def read_signed(key: bytes, purpose: str, token: str) -> tuple[str, EpochMs] | None:
    """The text and the expiry of a token that *key* signed for *purpose*; None: it did not."""
    said, _, signature = token.partition(".")
    try:
        text, given = _bytes(said), _bytes(signature)
    except ValueError:
        return None
    if not compare_digest(_digest(key, purpose, text), given):
        return None
    expires, _, rest = text.decode().partition(":")
    return rest, EpochMs(int(expires))


def _digest(key: bytes, purpose: str, text: bytes) -> bytes:
    return hmac.new(key, f"{purpose}:".encode() + text, sha256).digest()


def _text(value: bytes) -> str:
    return urlsafe_b64encode(value).rstrip(b"=").decode()


def _bytes(text: str) -> bytes:
    """The inverse of `_text`. Raises `ValueError` for any other way to write the same bytes."""
    value = urlsafe_b64decode(text.encode("ascii") + b"=" * (-len(text) % 4))
    if _text(value) != text:
        raise ValueError
    return value
