"""Notices: messages that people get without a request. Each notice is a due row."""

from enum import StrEnum

from attrs import field, frozen

from wfcore.model.json import JsonObject
from wfcore.time import EpochMs


class NoticeKind(StrEnum):
    """
    The event that a notice reports. A comment names the record that `Notice.subject` identifies.
    """

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
    STEP_MAIL = "step.mail"  # an execution: the mail of one of its steps. ML-1
    QUOTA_NEAR = "quota.near"  # a key or an account
    PASSKEY_CHANGED = "account.passkey"  # an account
    TEST = "test"  # nothing
    SIGN_IN_LINK = "session.link"  # sent at once and never stored: its link is a credential


class NoticeStatus(StrEnum):
    """
    The state of a notice. Only DUE notices are sent. DIGESTED: sent within another notice, which
    `digest` names.
    """

    DUE = "DUE"
    SENT = "SENT"
    DROPPED = "DROPPED"
    DIGESTED = "DIGESTED"
    FAILED = "FAILED"


@frozen
class Notice:
    """
    One message to one address: `to` on `channel`. `to` is empty if the channel is a room.

    `about`: facts of the message that cannot be read from its subject later. `attempts`: the number
    of attempts; the last attempt was at `attempted_at`. `sending`: whether the outcome of the last
    attempt is unknown. `gathered`: the other notices in this message. `digest`: the notice whose
    message includes this one.
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
        """
        The destination, for which quiet rules count notices. The mails of steps have several
        recipients, and `to` is empty: quiet rules do not count these mails. ML-1.
        """
        return self.channel, self.to

    @property
    def recipients(self) -> tuple[str, ...]:
        """The addresses that get the message; empty for a room."""
        listed = self.about.get("to") if self.kind is NoticeKind.STEP_MAIL else None
        if isinstance(listed, list | tuple):
            return tuple(map(str, listed))
        return (self.to,) if self.to else ()
