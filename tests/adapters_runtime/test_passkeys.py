"""Keys of passkeys that others can sign with."""

import hashlib
import json
from typing import Any

import pytest
from attrs import frozen
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from adapters_runtime.passkeys import WebAuthnPasskeys, verifies
from tests.support.authenticator import PARTY, Authenticator
from wfcore.errors import NotConfirmed

IDENTITY = b"\x01" + bytes(31)
CONSTANT = IDENTITY + bytes(32)
"""A signature that fits every text, for the key `IDENTITY`."""
SMALL = {
    "order 1": IDENTITY.hex(),
    "order 1, written otherwise": "ee" + "ff" * 30 + "7f",
    "order 2": "ec" + "ff" * 30 + "7f",
    "order 4": "00" * 32,
    "order 4, written otherwise": "ed" + "ff" * 30 + "7f",
    "order 4, the other": "00" * 31 + "80",
    "order 8": "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
    "order 8, the second": "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc85",
    "order 8, the third": "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
    "order 8, the fourth": "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac03fa",
}


@frozen
class KnownKey:
    """A public key for which no private key is needed."""

    raw: bytes

    def public_key(self) -> Ed25519PublicKey:
        return Ed25519PublicKey.from_public_bytes(self.raw)


def _der(key: Any) -> bytes:
    made: bytes = key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return made


@pytest.mark.parametrize("raw", SMALL.values(), ids=SMALL)
def test_a_key_for_which_a_constant_signs_is_refused(raw: str) -> None:
    """A passkey of small order is not registered, and no receipt by it fits. SR-9."""
    maker = Authenticator(-8)
    maker.key = KnownKey(bytes.fromhex(raw))
    with pytest.raises(NotConfirmed, match="others can sign"):
        WebAuthnPasskeys().material(maker.register("n", b"challenge"), b"challenge", PARTY)
    der = _der(maker.key.public_key())
    texts = [hashlib.sha256(json.dumps(one).encode()).digest() for one in range(100)]
    assert not any(verifies(der, -8, CONSTANT, one) for one in texts)


def test_a_short_key_is_refused() -> None:
    """RSA below 2,048 bits can be factored: it is not registered, and verifies nothing. SR-9."""
    maker = Authenticator(-257)
    maker.key = generate_private_key(65_537, 1_024)
    with pytest.raises(NotConfirmed, match="others can sign"):
        WebAuthnPasskeys().material(maker.register("n", b"challenge"), b"challenge", PARTY)
    signature = maker.key.sign(b"x", PKCS1v15(), SHA256())
    assert not verifies(_der(maker.key.public_key()), -257, signature, b"x")


@pytest.mark.parametrize("algorithm", [-7, -8, -257])
def test_a_usual_key_is_registered(algorithm: int) -> None:
    """Each algorithm that is offered gives its key. SR-4."""
    maker = Authenticator(algorithm)
    made = WebAuthnPasskeys().material(maker.register("n", b"challenge"), b"challenge", PARTY)
    assert made.public_key == maker.public_key
