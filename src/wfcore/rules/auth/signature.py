"""HMAC signatures: webhook triggers and download links. Spec: legacy signature mode."""

import hmac
import re
from hashlib import sha256
from hmac import compare_digest

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
