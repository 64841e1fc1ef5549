"""The `manual_approval` step: the people and the question in a definition."""

from enum import StrEnum

from attrs import frozen

from wfcore.model.json import Json
from wfcore.time import DurationMs

APPROVAL_TIMEOUT = DurationMs(86_400_000)
"""The time for which an approval stays open if its step names no timeout."""


class ColumnType(StrEnum):
    """The type of the cells in a column of an approval."""

    STRING = "string"
    NUMBER = "number"
    BOOLEAN = "boolean"
    DATE = "date"
    ENUM = "enum"
    JSON = "json"


@frozen
class Column:
    """One column of a group's rows."""

    key: str
    title: str
    type: ColumnType = ColumnType.STRING
    editable: bool = True
    required: bool = False
    options: tuple[Json, ...] = ()


@frozen
class GroupSpec:
    """A group of rows in a definition. `rows` is a template or a list."""

    name: str
    title: str
    rows: Json
    columns: tuple[Column, ...] = ()
    row_key: str | None = None
    allow_add: bool = False


class Links(StrEnum):
    """
    The effect of personal links to an approval: a link opens the approval for a decision, or leads
    to sign-in.
    """

    DECIDE = "decide"
    SIGN_IN = "sign_in"


class Assurance(StrEnum):
    """What approving takes: a session, key or link, or also a passkey. SR-1."""

    SESSION = "session"
    PASSKEY = "passkey"


@frozen
class OnRevise:
    """
    The step to which an execution goes back when people ask for changes, and how often at most.
    AP-31.
    """

    goto: str
    max: int = 3


@frozen
class Stage:
    """
    Approvers who decide after the approvers of earlier stages, and how many of them must approve.
    `when`: a template; if the result is false when the approval opens, the stage is left out.
    AP-33.
    """

    approvers: tuple[str, ...]
    required_approvals: int = 1
    when: str | None = None
    title: str = ""


@frozen
class Escalation:
    """Further approvers, added if nobody has decided after `after_ms`. AP-37."""

    after_ms: DurationMs
    to: tuple[str, ...]


@frozen
class ApprovalStep:
    """
    A pause until enough people have decided. `message` is a template.

    `reminders`: durations before the expiry. `attachments`: names of earlier steps whose artifacts
    belong to the question. `fields`: questions to the approver, in the form of columns.
    `on_revise`: an earlier step in the same list; None: nobody can ask for changes. `stages`
    replace `approvers`. Approvers may be groups of the definition: `group:NAME`. `auto_approve`: a
    template; if the result is true, a rule approves first; the rule's approval does not count
    towards the required `humans`. `delegable`: whether approvers may let other people decide for
    them.
    """

    name: str
    message: str = ""
    timeout_ms: DurationMs = APPROVAL_TIMEOUT
    approvers: tuple[str, ...] = ()
    groups: tuple[GroupSpec, ...] = ()
    required_approvals: int = 1
    allow_self_approval: bool = True
    reminders: tuple[DurationMs, ...] = ()
    assurance: Assurance = Assurance.SESSION
    links: Links = Links.DECIDE
    notify: tuple[str, ...] | None = None
    attachments: tuple[str, ...] = ()
    fields: tuple[Column, ...] = ()
    on_revise: OnRevise | None = None
    stages: tuple[Stage, ...] = ()
    humans: int = 0
    auto_approve: str | None = None
    delegable: bool = False
    escalate: Escalation | None = None
    when: str | None = None
    continue_on_error: bool = False
