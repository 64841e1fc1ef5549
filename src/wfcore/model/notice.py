"""Notices: what people are told without asking, each a due row."""

from enum import StrEnum

from attrs import field, frozen

from wfcore.model.json import JsonObject
from wfcore.time import EpochMs


class NoticeKind(StrEnum):
    """The fact that is told. What `Notice.subject` names stands behind each."""

    APPROVAL_OPENED = "approval.opened"  # an approval, as in all that begin so
    APPROVAL_REMINDER = "approval.reminder"
    APPROVAL_VOIDED = "approval.voided"
    APPROVAL_DECIDED = "approval.decided"
    APPROVAL_EXPIRED = "approval.expired"
    EXECUTION_FAILED = "execution.failed"  # an execution
    EXECUTION_WAITING = "execution.waiting"
    TRIGGER_REFUSED = "trigger.refused"  # a trigger
    TRIGGER_PAUSED = "trigger.paused"
    WEBHOOK_DISABLED = "webhook.disabled"  # a webhook
    QUOTA_NEAR = "quota.near"  # a key or an account
    TEST = "test"  # nothing
    SIGN_IN_LINK = "session.link"  # sent at once and never stored: its link is a credential


class NoticeStatus(StrEnum):
    """Only DUE ones are sent. DIGESTED: told within another one, which `digest` names."""

    DUE = "DUE"
    SENT = "SENT"
    DROPPED = "DROPPED"
    DIGESTED = "DIGESTED"
    FAILED = "FAILED"


@frozen
class Notice:
    """
    One message to one address: `to` on `channel`; `to` is empty where the channel is a room.

    `about`: what the message says and cannot be read from its subject later. `attempts` were made,
    the last at `attempted_at`; `sending` while its outcome is unknown. `gathered`: the notices that
    it tells beside itself; `digest`: the notice that this one is told with.
    """

    id: str
    kind: NoticeKind
    channel: str
    to: str
    subject: str
    created_at: EpochMs
    due_at: EpochMs | None
    execution_id: str | None = None
    about: JsonObject = field(factory=dict)
    status: NoticeStatus = NoticeStatus.DUE
    attempts: int = 0
    attempted_at: EpochMs | None = None
    sending: bool = False
    last_error: str | None = None
    gathered: tuple[str, ...] = ()
    digest: str | None = None
    version: int = 0

    @property
    def address(self) -> tuple[str, str]:
        """Where it goes: what quiet rules count by."""
        return self.channel, self.to
