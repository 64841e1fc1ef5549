"""The numbered event log of an execution, and the audit log. Contract §7 and §9."""

from enum import StrEnum

from attrs import field, frozen

from wfcore.instants import EpochMs
from wfcore.model.json import JsonObject


class EventKind(StrEnum):
    EXECUTION_PENDING = "execution.pending"
    EXECUTION_RUNNING = "execution.running"
    EXECUTION_AWAITING_APPROVAL = "execution.awaiting_approval"
    EXECUTION_INTERRUPTED = "execution.interrupted"
    EXECUTION_COMPLETED = "execution.completed"
    EXECUTION_FAILED = "execution.failed"
    EXECUTION_CANCELLED = "execution.cancelled"
    STEP_STARTED = "step.started"
    STEP_COMPLETED = "step.completed"
    STEP_FAILED = "step.failed"
    STEP_SKIPPED = "step.skipped"
    STEP_RETRYING = "step.retrying"
    STEP_POSTPONED = "step.postponed"
    STEP_LOG = "step.log"
    APPROVAL_CREATED = "approval.created"
    APPROVAL_ASSENTED = "approval.assented"
    APPROVAL_REMINDER = "approval.reminder"
    APPROVAL_APPROVED = "approval.approved"
    APPROVAL_REJECTED = "approval.rejected"
    APPROVAL_CANCELLED = "approval.cancelled"
    ARTIFACT_CREATED = "artifact.created"


@frozen(slots=False)
class Event:
    """Event number *number* (from 1, without gaps) of one execution."""

    execution_id: str
    number: int
    at: EpochMs
    kind: EventKind
    data: JsonObject = field(factory=dict)


class AuditOutcome(StrEnum):
    ALLOWED = "allowed"
    DENIED = "denied"


@frozen
class AuditEntry:
    """
    One line of the audit log. Never holds a key, a secret or a password. `details`: what else is
    worth knowing years later, of a decision its `itemsHash`, comment and definition version.
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
