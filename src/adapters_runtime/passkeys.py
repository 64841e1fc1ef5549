"""Passkeys by the library `webauthn`, which is loaded with the first passkey."""

from wfcore.errors import NotConfirmed
from wfcore.model.passkey import PasskeyMaterial, Registration, RelyingParty
from wfcore.rules.base64url import decoded, encoded

ALGORITHMS = (-8, -7, -257)
"""Ed25519, ECDSA with P-256, and RSA, each with SHA-256: the numbers of the COSE registry."""


_PRIME = 2**255 - 19
_ORDER_8 = int("05fc536d880238b13933c6d305acdfd5f098eff289f4c345b027b2c28f95e826", 16)
_SMALL = frozenset({0, 1, _PRIME - 1, _ORDER_8, _PRIME - _ORDER_8})
"""
The ordinates of the eight points of Ed25519 with a small order. For such a public key one constant
is a signature of every text, or of every eighth.
"""
_LEAST_RSA = 2_048


class WebAuthnPasskeys:
    """`Passkeys` that accept each authenticator, without a proof of its maker."""

    def material(
        self, answer: Registration, challenge: bytes, party: RelyingParty
    ) -> PasskeyMaterial:
        from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
        from webauthn import verify_registration_response
        from webauthn.helpers import (
            decode_credential_public_key,
            decoded_public_key_to_cryptography,
        )
        from webauthn.helpers.cose import COSEAlgorithmIdentifier
        from webauthn.helpers.exceptions import WebAuthnException

        try:
            found = verify_registration_response(
                credential=_credential(answer),
                expected_challenge=challenge,
                expected_rp_id=party.id,
                expected_origin=party.origin,
                require_user_verification=True,
                supported_pub_key_algs=[COSEAlgorithmIdentifier(one) for one in ALGORITHMS],
            )
            key = decode_credential_public_key(found.credential_public_key)
            public = decoded_public_key_to_cryptography(key)
            if _is_weak(public):
                raise ValueError("its key is one that others can sign with")
        except (WebAuthnException, ValueError, LookupError, TypeError) as error:
            raise NotConfirmed(str(error) or "it is not written as browsers write it") from None
        der = public.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
        return PasskeyMaterial(
            encoded(found.credential_id), encoded(der), int(key.alg), found.sign_count
        )

    def verifies(self, public_key: bytes, algorithm: int, signature: bytes, signed: bytes) -> bool:
        return verifies(public_key, algorithm, signature, signed)


def _credential(answer: Registration) -> dict[str, object]:
    """The answer in the library's form. The credential id is read from what was signed."""
    from webauthn.helpers import parse_attestation_object

    made = parse_attestation_object(decoded(answer.attestation))
    data = made.auth_data.attested_credential_data
    if data is None:
        raise ValueError("it has no public key")
    id = encoded(data.credential_id)
    response = {"clientDataJSON": answer.client_data, "attestationObject": answer.attestation}
    return {"id": id, "rawId": id, "type": "public-key", "response": response}


def verifies(public_key: bytes, algorithm: int, signature: bytes, signed: bytes) -> bool:
    """
    Whether *signature* of *signed* is of that key. False for a key that cannot be read, and for one
    that others can sign with. SR-9.
    """
    from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
    from cryptography.hazmat.primitives.serialization import load_der_public_key
    from webauthn.helpers import verify_signature
    from webauthn.helpers.cose import COSEAlgorithmIdentifier
    from webauthn.helpers.exceptions import WebAuthnException

    if algorithm not in ALGORITHMS:
        return False
    try:
        key = load_der_public_key(public_key)
        if _is_weak(key):
            return False
        verify_signature(
            public_key=key,
            signature_alg=COSEAlgorithmIdentifier(algorithm),
            signature=signature,
            data=signed,
        )
    except (InvalidSignature, UnsupportedAlgorithm, WebAuthnException, ValueError):
        return False
    return True


def _is_weak(key: object) -> bool:
    """Whether others than the holder of *key* can sign: of RSA below 2,048 bits, of small order."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey

    if isinstance(key, RSAPublicKey):
        return key.key_size < _LEAST_RSA
    if isinstance(key, Ed25519PublicKey):
        ordinate = int.from_bytes(key.public_bytes_raw(), "little") & (2**255 - 1)
        return ordinate % _PRIME in _SMALL
    return False
