"""An authenticator in software, which makes what a browser and a passkey make together."""

import json
import struct
from hashlib import sha256
from typing import Any

import cbor2
from attrs import define, field
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from wfcore.model.passkey import Assertion, Registration, RelyingParty
from wfcore.rules.base64url import decoded, encoded

URL = "https://flows.example.org/at"
PARTY = RelyingParty("flows.example.org", "https://flows.example.org")
VERIFIED, PRESENT, NEW = 0x04, 0x01, 0x40


@define
class Authenticator:
    """One passkey. `counts`: whether it counts its signatures."""

    algorithm: int = -7
    party: RelyingParty = PARTY
    counts: bool = True
    user: str = ""
    counter: int = 0
    id: bytes = b""
    key: Any = field(init=False)

    def __attrs_post_init__(self) -> None:
        match self.algorithm:
            case -8:
                self.key = ed25519.Ed25519PrivateKey.generate()
            case -257:
                self.key = rsa.generate_private_key(65_537, 2_048)
            case _:
                self.key = ec.generate_private_key(ec.SECP256R1())
        self.id = self.id or sha256(repr(id(self.key)).encode()).digest()[:16]

    @property
    def credential_id(self) -> str:
        return encoded(self.id)

    @property
    def public_key(self) -> str:
        """SubjectPublicKeyInfo in DER, base64url."""
        public = self.key.public_key()
        return encoded(public.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo))

    def register(self, nonce: str, challenge: bytes, **other: Any) -> Registration:
        client = self._client("webauthn.create", challenge, **other)
        public = struct.pack(">16sH", bytes(16), len(self.id)) + self.id + cbor2.dumps(self._cose())
        data = self._data(PRESENT | VERIFIED | NEW if "flags" not in other else other["flags"])
        made = cbor2.dumps({"fmt": "none", "attStmt": {}, "authData": data + public})
        return Registration(nonce, encoded(client), encoded(made))

    def sign(self, nonce: str, challenge: bytes, **other: Any) -> Assertion:
        self.counter += self.counts
        client = self._client(other.pop("type", "webauthn.get"), challenge, **other)
        data = self._data(other.get("flags", PRESENT | VERIFIED))
        signed = data + sha256(client).digest()
        signature = encoded(self._signature(signed))
        return Assertion(
            nonce, self.credential_id, encoded(data), encoded(client), signature, self.user
        )

    def _client(self, type: str, challenge: bytes, **other: Any) -> bytes:
        said = {
            "type": type,
            "challenge": encoded(challenge),
            "origin": other.get("origin", self.party.origin),
            "crossOrigin": other.get("cross", False),
        }
        return json.dumps(said).encode()

    def _data(self, flags: int) -> bytes:
        return sha256(self.party.id.encode()).digest() + struct.pack(">BI", flags, self.counter)

    def _signature(self, data: bytes) -> bytes:
        match self.algorithm:
            case -8:
                return bytes(self.key.sign(data))
            case -257:
                return bytes(self.key.sign(data, PKCS1v15(), SHA256()))
            case _:
                return bytes(self.key.sign(data, ec.ECDSA(SHA256())))

    def _cose(self) -> dict[int, Any]:
        public = self.key.public_key()
        if self.algorithm == -8:
            return {1: 1, 3: -8, -1: 6, -2: public.public_bytes_raw()}
        numbers = public.public_numbers()
        if self.algorithm == -257:
            return {1: 3, 3: -257, -1: numbers.n.to_bytes(256, "big"), -2: b"\1\0\1"}
        x, y = (one.to_bytes(32, "big") for one in (numbers.x, numbers.y))
        return {1: 2, 3: -7, -1: 1, -2: x, -3: y}


def flipped(text: str, at: int = -1) -> str:
    """Base64url text with one bit changed."""
    value = bytearray(decoded(text))
    value[at] ^= 1
    return encoded(bytes(value))
