"""Callbacks: telling a caller that its execution has ended. Contract §9."""

from enum import StrEnum

from attrs import frozen

from wfcore.time import EpochMs


class CallbackStatus(StrEnum):
    PENDING = "PENDING"
    DELIVERED = "DELIVERED"
    FAILED = "FAILED"


@frozen
class Callback:
    """
    One message owed to a caller. The id is the execution's, because an execution ends once.

    `due_at`: when the next attempt may begin, whatever the outcome of the last one; None if it is
    completed or given up. `key_id`: the key whose secret signs it.
    """

    id: str
    url: str
    key_id: str | None
    created_at: EpochMs
    due_at: EpochMs | None
    status: CallbackStatus = CallbackStatus.PENDING
    attempts: int = 0
    last_error: str | None = None
    version: int = 0
