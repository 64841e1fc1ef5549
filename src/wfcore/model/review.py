"""What a `manual_approval` step asks of whom: a part of a definition."""

from enum import StrEnum

from attrs import frozen

from wfcore.model.json import Json
from wfcore.time import DurationMs

APPROVAL_TIMEOUT = DurationMs(86_400_000)
"""How long an approval stays open where its step does not say."""


class ColumnType(StrEnum):
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
    """A group of rows as the definition asks for it; `rows` is a template or a list."""

    name: str
    title: str
    rows: Json
    columns: tuple[Column, ...] = ()
    row_key: str | None = None
    allow_add: bool = False


class Links(StrEnum):
    """What personal links to an approval do: open it for a decision, or lead to signing in."""

    DECIDE = "decide"
    SIGN_IN = "sign_in"


@frozen
class OnRevise:
    """Where an execution goes back to when people ask for changes, and how often at most. AP-31."""

    goto: str
    max: int = 3


@frozen
class Stage:
    """
    Approvers who are asked after those of the stages before, and how many of them must approve.
    `when`: a template; if it is false as the approval opens, the stage is left out. AP-33.
    """

    approvers: tuple[str, ...]
    required_approvals: int = 1
    when: str | None = None
    title: str = ""


@frozen
class Escalation:
    """Who is asked, too, when nobody has decided for so long. AP-37."""

    after_ms: DurationMs
    to: tuple[str, ...]


@frozen
class ApprovalStep:
    """
    A pause until enough people have decided. `message` is a template.

    `reminders` are durations before the expiry. `attachments`: names of steps before this one whose
    artifacts belong to the question. `fields`: what an approver answers, in the form of columns.
    `on_revise`: a step before this one in the same list; None: nobody can ask for changes.
    `stages` take the place of `approvers`, which may name groups of the definition: `group:NAME`.
    `auto_approve`: a template; if it holds, a rule approves first, which is no one of the `humans`
    who must. `delegable`: approvers may let others decide for them.
    """

    name: str
    message: str = ""
    timeout_ms: DurationMs = APPROVAL_TIMEOUT
    approvers: tuple[str, ...] = ()
    groups: tuple[GroupSpec, ...] = ()
    required_approvals: int = 1
    allow_self_approval: bool = True
    reminders: tuple[DurationMs, ...] = ()
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
