"""The contract suite of `Passkeys`: what an adapter of a passkey library promises."""

import pytest

from wfcore.errors import NotConfirmed
from wfcore.model.passkey import Registration, RelyingParty
from wfcore.ports.system import Passkeys

_ED25519 = -8
_PUBLIC_KEY = bytes.fromhex(
    "302a300506032b657003210003a107bff3ce10be1d70dd18e74bc09967e4d6309ba50d5f1ddc8664125531b8"
)
_SIGNED = b"signed"
_SIGNATURE = bytes.fromhex(
    "563ea47700019e5bd58e308ec93631c8428eeb8d4e015d992d2813e65f45cb8e"
    "3ecd10a0d07c8f480c42492201afaba8343fa7092ead4725a8feb623e58b2b01"
)


class PasskeysContract:
    """The promises of `wfcore.ports.system.Passkeys`. Subclasses provide a fixture `passkeys`."""

    def test_a_signature_fits_its_own_text_and_key_alone(self, passkeys: Passkeys) -> None:
        """A signature is accepted for the bytes that were signed, and for no others."""
        assert passkeys.verifies(_PUBLIC_KEY, _ED25519, _SIGNATURE, _SIGNED)
        assert not passkeys.verifies(_PUBLIC_KEY, _ED25519, _SIGNATURE, _SIGNED + b".")
        assert not passkeys.verifies(_PUBLIC_KEY, _ED25519, bytes(64), _SIGNED)

    @pytest.mark.parametrize("given_key", [b"", b"damaged", _PUBLIC_KEY[:-1]])
    def test_what_is_no_key_fits_nothing(self, passkeys: Passkeys, given_key: bytes) -> None:
        """A key that cannot be read verifies no signature, and raises nothing."""
        assert not passkeys.verifies(given_key, _ED25519, _SIGNATURE, _SIGNED)

    def test_an_unknown_algorithm_fits_nothing(self, passkeys: Passkeys) -> None:
        """A number that names no algorithm verifies no signature."""
        assert not passkeys.verifies(_PUBLIC_KEY, 0, _SIGNATURE, _SIGNED)

    @pytest.mark.parametrize("given_text", ["", "e30", "not base64url!"])
    def test_what_is_no_registration_is_not_confirmed(
        self, passkeys: Passkeys, given_text: str
    ) -> None:
        """An answer that no browser gave makes no passkey."""
        answer = Registration(nonce="n", client_data=given_text, attestation=given_text)
        party = RelyingParty("flows.example.org", "https://flows.example.org")
        with pytest.raises(NotConfirmed):
            passkeys.material(answer, b"challenge", party)
