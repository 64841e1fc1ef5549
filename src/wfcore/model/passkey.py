"""Passkeys of accounts, and receipts of approvals that a passkey signed."""

from attrs import field, frozen

from wfcore.model.json import JsonObject
from wfcore.time import EpochMs


@frozen
class RelyingParty:
    """
    The names under which browsers know the server: `id` is the host, `origin` the scheme, host and
    port. SR-7.
    """

    id: str
    origin: str


@frozen
class PasskeyMaterial:
    """
    The parts of a new passkey that its authenticator made. `id`: the credential id. `public_key`:
    SubjectPublicKeyInfo in DER. Both are base64url. `algorithm`: the number in the COSE registry.
    """

    id: str
    public_key: str
    algorithm: int
    counter: int = 0


@frozen
class Passkey:
    """
    A passkey of an account, as in `PasskeyMaterial`. `rp_id`: the host for which the passkey was
    registered. A passkey confirms only approvals that opened after `created_at`. SR-4.
    """

    id: str
    name: str
    public_key: str
    algorithm: int
    rp_id: str
    created_at: EpochMs
    counter: int = 0
    last_used_at: EpochMs | None = None


@frozen
class Registration:
    """A browser's answer to the request for a new passkey. All texts are base64url."""

    nonce: str
    client_data: str
    attestation: str


@frozen
class Assertion:
    """A browser's answer to the request for a signature. All texts but `nonce` are base64url."""

    nonce: str
    credential_id: str
    authenticator_data: str = field(repr=False)
    client_data: str = field(repr=False)
    signature: str = field(repr=False)
    user: str = ""


@frozen
class SignedReceipt:
    """
    The signature of one approver below one approval. `statement`: the signed facts. `digests`: the
    digests of all statements that were confirmed together; the passkey signed their digest. The
    rest is as in `Passkey` and `Assertion`. SR-2.
    """

    statement: JsonObject
    digests: tuple[str, ...]
    public_key: str
    algorithm: int
    registered_at: EpochMs
    authenticator_data: str
    client_data: str
    signature: str
