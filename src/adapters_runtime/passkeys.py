"""Passkeys by the library `webauthn`, which is loaded with the first passkey."""

from wfcore.errors import NotConfirmed
from wfcore.model.passkey import PasskeyMaterial, Registration, RelyingParty
from wfcore.rules.base64url import decoded, encoded

ALGORITHMS = (-8, -7, -257)
"""Ed25519, ECDSA with P-256, and RSA, each with SHA-256: the numbers of the COSE registry."""


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
    """Whether *signature* of *signed* is of that key. False for a key that cannot be read."""
    from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
    from cryptography.hazmat.primitives.serialization import load_der_public_key
    from webauthn.helpers import verify_signature
    from webauthn.helpers.cose import COSEAlgorithmIdentifier
    from webauthn.helpers.exceptions import WebAuthnException

    if algorithm not in ALGORITHMS:
        return False
    try:
        verify_signature(
            public_key=load_der_public_key(public_key),
            signature_alg=COSEAlgorithmIdentifier(algorithm),
            signature=signature,
            data=signed,
        )
    except (InvalidSignature, UnsupportedAlgorithm, WebAuthnException, ValueError):
        return False
    return True
