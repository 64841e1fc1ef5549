"""The numbered event log of an execution, and the audit log."""

from enum import StrEnum

from attrs import field, frozen

from wfcore.model.json import JsonObject
from wfcore.time import EpochMs


class EventKind(StrEnum):
    """The kind of an event: the record that changed, and its new state."""

    EXECUTION_PENDING = "execution.pending"
    EXECUTION_RUNNING = "execution.running"
    EXECUTION_AWAITING_APPROVAL = "execution.awaiting_approval"
    EXECUTION_INTERRUPTED = "execution.interrupted"
    EXECUTION_COMPLETED = "execution.completed"
    EXECUTION_FAILED = "execution.failed"
    EXECUTION_CANCELLED = "execution.cancelled"
    FAILURE_STARTED = "failure.started"
    STEP_STARTED = "step.started"
    STEP_COMPLETED = "step.completed"
    STEP_FAILED = "step.failed"
    STEP_SKIPPED = "step.skipped"
    STEP_RETRYING = "step.retrying"
    STEP_POSTPONED = "step.postponed"
    STEP_LOG = "step.log"
    APPROVAL_CREATED = "approval.created"
    APPROVAL_ASSENTED = "approval.assented"
    APPROVAL_DELEGATED = "approval.delegated"
    APPROVAL_ESCALATED = "approval.escalated"
    APPROVAL_REMINDER = "approval.reminder"
    APPROVAL_APPROVED = "approval.approved"
    APPROVAL_REJECTED = "approval.rejected"
    APPROVAL_REVISED = "approval.revised"
    APPROVAL_CANCELLED = "approval.cancelled"
    ARTIFACT_CREATED = "artifact.created"
    NOTICE_FAILED = "notice.failed"


@frozen(slots=False)
class Event:
    """Event number *number* (from 1, without gaps) of one execution."""

    execution_id: str
    number: int
    at: EpochMs
    kind: EventKind
    data: JsonObject = field(factory=dict)


class AuditOutcome(StrEnum):
    """Whether the action of an audit entry was carried out or refused."""

    ALLOWED = "allowed"
    DENIED = "denied"


@frozen
class AuditEntry:
    """
    One line of the audit log, without any key, secret or password.

    `details`: facts that matter years later; for a decision its `itemsHash`, comment and definition
    version. `execution_id`: the execution that the line is about. `record_hash`: the SHA-256 of the
    record stored with the line; for a decision, of its rows before and after. AL-3.
    """

    id: str
    at: EpochMs
    event: str
    outcome: AuditOutcome
    reason: str | None = None
    account_id: str | None = None
    key_id: str | None = None
    target: str | None = None
    path: str | None = None
    ip: str | None = None
    request_id: str | None = None
    details: JsonObject | None = None
    execution_id: str | None = None
    record_hash: str | None = None


@frozen
class ChainPoint:
    """
    A position in the chain of audit entries: the number and hash of an entry. Number 0: the
    position before the first entry.
    """

    number: int
    hash: str


@frozen
class AuditChain:
    """
    The chain of one store's audit entries. `start`: the last entry that retention deleted; `end`:
    the newest entry.
    """

    id: str
    start: ChainPoint
    end: ChainPoint


@frozen
class ChainedEntry:
    """
    An audit entry in the store. `text`: the entry as canonical JSON. `record`: the record stored
    with the entry. `previous`: the hash of the entry *number* - 1. AL-1.
    """

    number: int
    previous: str
    hash: str
    text: str
    record: str | None = None

    @property
    def point(self) -> ChainPoint:
        """The entry's position in the chain."""
        return ChainPoint(self.number, self.hash)


@frozen
class Anchor:
    """A point of a chain, kept outside the store. `at`: the time in its entry."""

    chain: str
    number: int
    hash: str
    at: EpochMs
