"""Manual approvals: groups of rows, decisions, history."""

from collections.abc import Mapping
from enum import StrEnum

from attrs import evolve, field, fields, frozen

from wfcore.model.json import JsonObject
from wfcore.model.passkey import SignedReceipt
from wfcore.model.review import Assurance, Column, Links, Stage
from wfcore.time import DurationMs, EpochMs


class ApprovalStatus(StrEnum):
    """
    The state of an approval. PENDING is the only open one. APPROVED releases rows; REJECTED refuses
    them, or nobody decided in time; REVISED repeats the work from an earlier step; CANCELLED: the
    execution ended first.
    """

    PENDING = "PENDING"
    APPROVED = "APPROVED"
    REJECTED = "REJECTED"
    REVISED = "REVISED"
    CANCELLED = "CANCELLED"


class Purpose(StrEnum):
    """The reason for an approval: the question of a `manual_approval` step, or a spent budget."""

    STEP = "step"
    BUDGET = "budget"


class Verdict(StrEnum):
    """
    A decision about an approval: release the rows, refuse them, or send them back for changes.
    """

    APPROVE = "approve"
    REJECT = "reject"
    REVISE = "revise"


class DecisionSource(StrEnum):
    """The door of a decision: API, webhook, personal link, console, the deadline, or a rule."""

    API = "api"
    WEBHOOK = "webhook"
    LINK = "link"
    CONSOLE = "console"
    TIMEOUT = "timeout"
    RULE = "rule"


@frozen
class Group:
    """
    Rows that a reviewer can view and edit, and extend if `allow_add` is set. `left_out`: the number
    of rows that an `ApprovalHead` leaves out.
    """

    name: str
    title: str
    columns: tuple[Column, ...]
    items: tuple[JsonObject, ...]
    row_key: str | None = None
    allow_add: bool = False
    left_out: int = 0

    @property
    def count(self) -> int:
        """The number of rows, including those in `left_out`."""
        return len(self.items) + self.left_out


Rows = Mapping[str, tuple[JsonObject, ...]]
"""The rows of each group, by its name."""


@frozen
class HistoryEntry:
    """
    One action on an approval: the person, the time, the rows before and after an edit, and the
    answers given. `receipt`: the signature of an approver who confirmed with a passkey.
    """

    at: EpochMs
    action: str
    by: str | None = None
    source: DecisionSource | None = None
    comment: str | None = None
    rows_before: Rows | None = None
    rows_after: Rows | None = None
    answers: JsonObject | None = None
    receipt: SignedReceipt | None = None


@frozen
class Attachment:
    """
    An artifact that belongs to the question. `execution_id`: the execution that made the artifact.
    After a redrive that may be an earlier execution, whose step result was kept.
    """

    artifact_id: str
    execution_id: str
    step_name: str
    name: str
    size: int
    content_type: str
    sha256: str


@frozen
class Delegation:
    """
    A delegation: until the instant `until`, *to* (an email or an account id) decides for the
    approver *by*.
    """

    by: str
    account: str
    to: str
    until: EpochMs


@frozen
class Assent:
    """
    One approver's approval of the present rows. `account`: the approver's id. `stage`: the index of
    the stage in which the assent counts. `is_rule`: a rule gave the assent, not a person.
    `given_for`: the delegation under which the assent was given. `receipt`: as in
    `HistoryEntry`. AP-33, AP-35, AP-36, SR-2.
    """

    by: str
    account: str
    at: EpochMs
    stage: int = 0
    is_rule: bool = False
    given_for: Delegation | None = None
    receipt: SignedReceipt | None = None


@frozen
class Approval:
    """
    A question to people. `expires_at` is `created_at + timeout_ms`.

    `approvers` (emails or account ids) is empty if the default rule applies. `assents`: the
    approvals given so far, of `required_approvals`. `humans`: the number of required approvals that
    people must give. `reminders`: the instants of reminders, in order; the first `reminded`
    reminders were sent. `fields`: the questions with answers in a form; `answers`: the answers so
    far, by key.

    `round`: 1, plus 1 each time the execution returned to the step. `revise_to`: the step to which
    the execution goes back if people ask for changes; `revisions_left`: how often people may still
    ask for changes. `notify`: the channels that announce the approval; None: mail, if mail is set
    up.

    `question`: the message as Markdown, in which text that templates inserted is escaped; None: the
    message is plain text. MD-3. `reference`: of the execution. EX-38.

    `assurance`: what approving takes, as the step said when the approval opened. SR-4.

    With `stages`, `approvers` are the approvers of all stages up to the present stage.
    `escalate_at`: the instant at which `escalate_to` are added to the approvers, if the approval is
    still open.
    """

    id: str
    execution_id: str
    workflow_id: str
    workflow_owner_id: str
    owner_id: str
    step_name: str
    status: ApprovalStatus
    message: str
    timeout_ms: DurationMs
    created_at: EpochMs
    expires_at: EpochMs
    approvers: tuple[str, ...] = ()
    groups: tuple[Group, ...] = ()
    decided_at: EpochMs | None = None
    decided_by: str | None = None
    decision_source: DecisionSource | None = None
    comment: str | None = None
    history: tuple[HistoryEntry, ...] = ()
    required_approvals: int = 1
    allow_self_approval: bool = True
    assents: tuple[Assent, ...] = ()
    reminders: tuple[EpochMs, ...] = ()
    reminded: int = 0
    attachments: tuple[Attachment, ...] = ()
    fields: tuple[Column, ...] = ()
    answers: JsonObject = field(factory=dict)
    round: int = 1
    revise_to: str | None = None
    revisions_left: int = 0
    stages: tuple[Stage, ...] = ()
    humans: int = 0
    delegable: bool = False
    delegations: tuple[Delegation, ...] = ()
    escalate_at: EpochMs | None = None
    escalate_to: tuple[str, ...] = ()
    purpose: Purpose = Purpose.STEP
    links: Links = Links.DECIDE
    notify: tuple[str, ...] | None = None
    question: str | None = None
    reference: str | None = None
    assurance: Assurance = Assurance.SESSION
    version: int = 0

    @property
    def head(self) -> "ApprovalHead":
        """The approval in its form for lists."""
        kept = {one.name: getattr(self, one.name) for one in fields(Approval)}
        groups = tuple(evolve(one, columns=(), items=(), left_out=one.count) for one in self.groups)
        long = {"groups": groups, "history": (), "attachments": (), "fields": (), "answers": {}}
        return ApprovalHead(**(kept | long))


@frozen
class ApprovalHead(Approval):
    """
    An approval in its form for lists: without rows and columns (their numbers are kept), history,
    attachments, fields and answers, which may all be long. A store raises `KeyError` for a `put` of
    a head, because the rows would be lost.
    """


class DecisionOutcome(StrEnum):
    """The outcome of one of several decisions."""

    DECIDED = "decided"
    AGREED = "agreed"
    """The approval counts; further approvals are required."""
    CHANGED = "changed"
    """The rows differ from the rows that the approver has seen."""
    ALREADY_DECIDED = "already_decided"
    NOT_ALLOWED = "not_allowed"
    NOT_FOUND = "not_found"
    INVALID = "invalid"
    """The approval needs more than yes or no: answers, or a comment."""
    UNAVAILABLE = "unavailable"
    """The store did not answer; read the approval before another try."""


@frozen
class DecisionResult:
    """
    One of several decisions. `approval`: the approval after the decision, if the decision counts;
    otherwise `reason` says why the decision does not count.
    """

    approval_id: str
    outcome: DecisionOutcome
    approval: Approval | None = None
    reason: str | None = None
