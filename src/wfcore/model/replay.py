"""Idempotency keys and the answers they stand for. Contract §6."""

from attrs import frozen

from wfcore.time import EpochMs


@frozen
class Replay:
    """
    The first answer to an idempotency key.

    `scope` is caller and target, `key` the client's header; `fingerprint` a SHA-256 of the
    body, so that the same key with another body is a conflict.
    """

    scope: str
    key: str
    fingerprint: str
    execution_id: str
    created_at: EpochMs
    version: int = 0
