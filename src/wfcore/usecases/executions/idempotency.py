"""Answers to requests, kept under their idempotency keys for 24 h. IK-1, IK-2."""

from collections.abc import Mapping, Sequence
from hashlib import sha256

from attrs import frozen

from wfcore.errors import KeyReused
from wfcore.model.execution import Replay
from wfcore.model.json import JsonObject
from wfcore.ports.store import Unit
from wfcore.rules.canonical import canonical, digest
from wfcore.rules.idempotency import check_idempotency_key
from wfcore.rules.limits import REPLAY_WINDOW
from wfcore.time import EpochMs


@frozen
class Idempotency:
    """The client's key, and a SHA-256 of the bytes of its request. IK-2."""

    key: str
    fingerprint: str


@frozen
class IdempotencyRecord:
    """An idempotency key, with the record that this unit found under the key."""

    scope: str
    idempotency: Idempotency
    found: Replay | None

    @classmethod
    async def load(
        cls, unit: Unit, scope: str, idempotency: Idempotency | str | None, request: JsonObject
    ) -> "IdempotencyRecord | None":
        """
        Returns the record of a request's key in *scope*, or None for a request without a key.
        *idempotency*: of a key alone the fingerprint is that of *request*.

        Raises `InvalidInput` for a malformed key. IK-1.
        """
        if idempotency is None:
            return None
        if isinstance(idempotency, str):
            check_idempotency_key("idempotency", idempotency)
            idempotency = Idempotency(idempotency, digest(canonical(request)))
        return cls(scope, idempotency, await unit.get(Replay, scope, idempotency.key))

    def previous_answer(self, now: EpochMs) -> Replay | None:
        """Returns the answer of the last 24 h. Raises `KeyReused` for another body. IK-1, IK-2."""
        if self.found is None or now >= self.found.created_at + REPLAY_WINDOW:
            return None
        if self.found.fingerprint != self.idempotency.fingerprint:
            raise KeyReused("This Idempotency-Key was used with another body")
        return self.found

    def record_for(self, execution_id: str, now: EpochMs) -> Replay:
        """Returns the record of a new answer, which replaces exactly the record that was found."""
        key, print_ = self.idempotency.key, self.idempotency.fingerprint
        version = self.found.version if self.found else 0
        return Replay(self.scope, key, print_, execution_id, now, version=version)


def idempotency_in(headers: Mapping[str, Sequence[str]], raw: bytes) -> Idempotency | None:
    """
    The `Idempotency-Key` in *headers*, by name in lower case, with a fingerprint of the body.

    Raises `InvalidInput`. IK-1.
    """
    keys = headers.get("idempotency-key", ())
    if not keys:
        return None
    key = keys[0] if len(keys) == 1 else ""
    check_idempotency_key("Idempotency-Key", key)
    return Idempotency(key, sha256(raw).hexdigest())
