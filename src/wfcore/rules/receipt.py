"""
Receipts of signed approvals, and whether a receipt fits. Everything here works without a store.

A statement is one JSON object; its text by RFC 8785 has a digest. What the passkey signs (the
challenge) is the digest of the list of digests of all statements that were confirmed at once, so
that one gesture signs several approvals and each has a receipt that stands by itself. SR-1, SR-2.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from typing import Any, Protocol
from urllib.parse import urlsplit

from wfcore.model.json import JsonObject
from wfcore.model.passkey import SignedReceipt
from wfcore.rules.base64url import decoded
from wfcore.rules.canonical import digest, rfc8785

Verifies = Callable[[bytes, int, bytes, bytes], bool]
"""
Whether a signature fits: public key (SubjectPublicKeyInfo in DER), algorithm (COSE), signature,
signed bytes.
"""
_USER_PRESENT, _USER_VERIFIED = 0x01, 0x04
_HEAD = 37
"""The bytes of authenticator data: hash of the host, flags, counter."""
FORMAT = "wfcore-receipt/1"
_STATEMENT = frozenset(
    (
        *("approvalId", "decision", "itemsHash", "answers", "comment"),
        *("accountId", "credentialId", "rpId", "at", "nonce"),
    )
)


class SignedParts(Protocol):
    """The parts of an assertion or receipt that the authenticator and the browser made."""

    @property
    def authenticator_data(self) -> str: ...
    @property
    def client_data(self) -> str: ...
    @property
    def signature(self) -> str: ...


class KeyParts(Protocol):
    """The parts of a passkey or receipt that verify a signature."""

    @property
    def public_key(self) -> str: ...
    @property
    def algorithm(self) -> int: ...


def statement_digest(statement: JsonObject) -> str:
    """The SHA-256 of the statement's canonical text, in hexadecimal. SR-1."""
    return digest(rfc8785(statement))


def challenge_of(digests: Sequence[str]) -> bytes:
    """The challenge that a passkey signs for statements with these digests. SR-1."""
    return sha256(rfc8785(list(digests)).encode()).digest()


def signature_fault(
    parts: SignedParts, key: KeyParts, challenge: bytes, rp_id: str, verifies: Verifies
) -> str | None:
    """
    The first part of an answer that does not fit *challenge* and *rp_id*, in words; None if all
    fits. SR-3.
    """
    try:
        client = decoded(parts.client_data)
        data, signature = decoded(parts.authenticator_data), decoded(parts.signature)
        public_key, said = decoded(key.public_key), json.loads(client)
        fault = _client_fault(said, challenge, rp_id) or _data_fault(data, rp_id)
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return "it is not written as browsers write it"
    if fault is not None:
        return fault
    if not verifies(public_key, key.algorithm, signature, data + sha256(client).digest()):
        return "the signature is not of this passkey, or something signed was changed"
    return None


def _client_fault(said: dict[str, object], challenge: bytes, rp_id: str) -> str | None:
    if said["type"] != "webauthn.get":
        return "it is no confirmation by a passkey"
    if decoded(str(said["challenge"])) != challenge:
        return "it confirms something else"
    host = urlsplit(str(said["origin"])).hostname or ""
    if said.get("crossOrigin") is True or not (host == rp_id or host.endswith(f".{rp_id}")):
        return "it was made at another address"
    return None


def _data_fault(data: bytes, rp_id: str) -> str | None:
    if len(data) < _HEAD or data[:32] != sha256(rp_id.encode()).digest():
        return "it was made for another address"
    if not data[32] & _USER_PRESENT or not data[32] & _USER_VERIFIED:
        return "the authenticator did not verify the person"
    return None


def counter_in(parts: SignedParts) -> int:
    """How often the authenticator says that it has signed. 0: it does not count."""
    return int.from_bytes(decoded(parts.authenticator_data)[33:_HEAD], "big")


def receipt_fault(receipt: SignedReceipt, verifies: Verifies) -> str | None:
    """The first part of a receipt that does not fit the others, in words; None: all fit. SR-2."""
    statement = receipt.statement
    if statement.keys() != _STATEMENT or statement["decision"] != "approve":
        return "the statement is not of this form"
    if statement_digest(statement) not in receipt.digests:
        return "the statement was changed"
    challenge, rp_id = challenge_of(receipt.digests), str(statement["rpId"])
    return signature_fault(receipt, receipt, challenge, rp_id, verifies)


def receipt_document(receipt: SignedReceipt) -> JsonObject:
    """The receipt as JSON, in the form in which others verify it. SR-2."""
    return {
        "format": FORMAT,
        "statement": receipt.statement,
        "digests": list(receipt.digests),
        "publicKey": receipt.public_key,
        "algorithm": receipt.algorithm,
        "registeredAt": receipt.registered_at,
        "authenticatorData": receipt.authenticator_data,
        "clientData": receipt.client_data,
        "signature": receipt.signature,
    }


_DOCUMENT: Mapping[str, type] = {
    "format": str,
    "statement": dict,
    "digests": list,
    "publicKey": str,
    "algorithm": int,
    "registeredAt": int,
    "authenticatorData": str,
    "clientData": str,
    "signature": str,
}


def read_receipt(document: Any) -> SignedReceipt:
    """The receipt that `receipt_document` wrote. Raises `ValueError` for anything else."""
    if not isinstance(document, Mapping) or document.keys() != _DOCUMENT.keys():
        raise ValueError("its fields are not those of a receipt")
    for name, kind in _DOCUMENT.items():
        if not isinstance(document[name], kind):
            raise ValueError(f"{name} is of another type")
    if document["format"] != FORMAT:
        raise ValueError(f"the format is not {FORMAT}")
    return SignedReceipt(
        document["statement"],
        tuple(map(str, document["digests"])),
        document["publicKey"],
        document["algorithm"],
        document["registeredAt"],
        document["authenticatorData"],
        document["clientData"],
        document["signature"],
    )
