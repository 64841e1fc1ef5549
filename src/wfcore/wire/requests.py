"""
The shapes of request bodies. Unknown fields are refused: a typo in `editedItems` must not release
the rows unedited.
"""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Annotated, Any, Final, NewType, TypeAlias

from attrs import Factory, field, frozen

from wfcore.model.access import AccountStatus, Permission, Scope, Tier
from wfcore.model.approval import Verdict
from wfcore.model.json import JsonObject
from wfcore.model.review import ColumnType
from wfcore.model.webhook import Scheme, WebhookStatus

Comment = NewType("Comment", str)
"""Words of a reviewer, limited in length."""

Row: TypeAlias = Annotated[JsonObject, "Row", "A row of a group, by column key"]

Answers: TypeAlias = Annotated[JsonObject, "Answers", "Answers to an approval's fields, by key"]

ReceiptView: TypeAlias = Annotated[
    JsonObject, "Receipt", "A statement that an approver signed with a passkey, and the signature"
]

NOT_NULL: Final = {"not_null": True}
"""Field metadata: may be left out (then it is None), but null is refused."""


class DefinitionChoice(StrEnum):
    """Which version of a workflow a redrive runs."""

    SAME = "same"
    NEWEST = "newest"


@frozen
class NoBody:
    """Nothing is asked for; an empty body or `{}`."""


@frozen
class StartBody:
    """
    Start an execution. `enableMonitoring` puts the steps' output lines into the event stream, too;
    `callbackUrl` is told of the end. `like`: an execution of the workflow whose inputs and
    reference are taken where the body gives no others. `reference`: at most 200 characters by which
    people find the execution; without it, what the definition says.
    """

    inputs: JsonObject = Factory(dict)
    enable_monitoring: bool = False
    callback_url: str | None = None
    like: str | None = None
    reference: str | None = None


@frozen
class StateBody:
    """
    Set values of a workflow's state, by name; null puts a name back to its default. Names that are
    left out stay as they are.
    """

    state: JsonObject


@frozen
class RedriveBody:
    """
    Start again where an execution stopped. `from`: the step to begin with, which may be any one
    outside of loops that every step before it allows; without it, the first step that has no result
    to keep. `definition`: `newest` takes the workflow's present version. `inputs` replace those of
    the old execution, name by name. `dryRun` answers the plan and starts nothing; `digest`: of the
    plan that must still hold.
    """

    from_: str | None = None
    definition: DefinitionChoice = DefinitionChoice.SAME
    inputs: JsonObject = Factory(dict)
    dry_run: bool = False
    digest: str | None = None


@frozen
class GateColumnBody:
    """A column of a gate's rows, as in a definition."""

    key: str
    title: str | None = field(default=None, metadata=NOT_NULL)
    type: ColumnType | None = field(default=None, metadata=NOT_NULL)
    editable: bool | None = field(default=None, metadata=NOT_NULL)
    required: bool | None = field(default=None, metadata=NOT_NULL)
    options: Sequence[Any] | None = field(default=None, metadata=NOT_NULL)


@frozen
class GateGroupBody:
    """A group of rows to review, as in a definition; `rows` are the rows themselves."""

    name: str
    rows: Sequence[Row]
    title: str | None = field(default=None, metadata=NOT_NULL)
    row_key: str | None = field(default=None, metadata=NOT_NULL)
    allow_add: bool | None = field(default=None, metadata=NOT_NULL)
    columns: Sequence[GateColumnBody] | None = field(default=None, metadata=NOT_NULL)


@frozen
class GateBody:
    """
    Ask people. `message` is what they read, `groups` the rows that they release. `approvers`:
    emails or account ids of active accounts here, or of people whom the operator or the key allows;
    without any, the key's account, or those that the key is bound to. `timeout` in ms (default
    24 h): then it is rejected.
    """

    message: str
    groups: Sequence[GateGroupBody] | None = field(default=None, metadata=NOT_NULL)
    approvers: Sequence[str] | None = field(default=None, metadata=NOT_NULL)
    timeout: int | None = field(default=None, metadata=NOT_NULL)


@frozen
class ApproveBody:
    """
    Approve. Without `editedItems` the original rows are released, with it exactly the rows
    given, by group. `editedItems: null` is refused: it says neither. `expectedItemsHash`: the
    `itemsHash` of what the reviewer saw; anything else is refused. `answers`: to the approval's
    fields, by key; null takes an answer back.
    """

    comment: Comment | None = None
    edited_items: Mapping[str, Sequence[Row]] | None = field(default=None, metadata=NOT_NULL)
    expected_items_hash: str | None = field(default=None, metadata=NOT_NULL)
    answers: Answers | None = field(default=None, metadata=NOT_NULL)


@frozen
class RejectBody:
    """Reject."""

    comment: Comment | None = None


@frozen
class ReviseBody:
    """Ask for changes: `comment` says which."""

    comment: Comment


@frozen
class DelegateBody:
    """
    Let somebody else decide: `to` is an email or an account id, `until` an instant; without it
    until the approval expires.
    """

    to: str
    until: int | None = None


@frozen
class DecisionBody:
    """
    Decide an approval from outside; `decision` in any case. `expectedItemsHash` and `answers` as in
    `ApproveBody`; a rejection releases no rows and asks for neither; `revise` takes a comment.
    """

    approval_id: str
    decision: Verdict
    comment: Comment | None = None
    expected_items_hash: str | None = field(default=None, metadata=NOT_NULL)
    answers: Answers | None = field(default=None, metadata=NOT_NULL)


@frozen
class OneDecisionBody:
    """
    A decision on the rows as they stand; `expectedItemsHash` is required to approve: the
    `itemsHash` of what the reviewer saw.
    """

    approval_id: str
    decision: Verdict
    expected_items_hash: str | None = field(default=None, metadata=NOT_NULL)


@frozen
class DecisionsBody:
    """Decide up to 50 approvals, each by itself. `comment` goes with every one."""

    decisions: Sequence[OneDecisionBody]
    comment: Comment | None = None


@frozen
class WebhookBody:
    """
    A new webhook: bound to one of the caller's own keys (`apiKeyId`), or signed by a `scheme`.
    Without `secret` one is made, for a scheme whose sender does not make it, and shown once.
    `when`: a template over `payload` and `headers`; deliveries for which it is not true start
    nothing. `headers`: names of headers by the variable that they set.
    """

    workflow_id: str
    name: str
    api_key_id: str | None = field(default=None, metadata=NOT_NULL)
    variable_mapping: Mapping[str, str] | None = None
    scheme: Scheme | None = field(default=None, metadata=NOT_NULL)
    secret: str | None = field(default=None, metadata=NOT_NULL, repr=False)
    when: str | None = None
    headers: Mapping[str, str] | None = None


@frozen
class WebhookChangeBody:
    """
    What of a webhook changes; a field that is not sent stays as it is. `secret` null: make a new
    one and show it once. The one before stays good for `overlap` milliseconds (default 24 h).
    `when`, `headers`, `variableMapping` null: there is none any more.
    """

    name: str | None = field(default=None, metadata=NOT_NULL)
    api_key_id: str | None = None
    variable_mapping: Mapping[str, str] | None = None
    status: WebhookStatus | None = field(default=None, metadata=NOT_NULL)
    scheme: Scheme | None = field(default=None, metadata=NOT_NULL)
    secret: str | None = field(default=None, repr=False)
    overlap: int | None = field(default=None, metadata=NOT_NULL)
    when: str | None = None
    headers: Mapping[str, str] | None = None


@frozen
class KeyBody:
    """
    A new key of the caller's, with what it may do; good for `expiresIn` milliseconds, or until it
    is revoked. `approvers`: emails or account ids of the only people whom it may ask through gates.
    """

    name: str
    scopes: Sequence[Scope]
    expires_in: int | None = field(default=None, metadata=NOT_NULL)
    approvers: Sequence[str] | None = field(default=None, metadata=NOT_NULL)


@frozen
class AccountBody:
    """
    Another plan or status of an account. A status other than ACTIVE ends every session and refuses
    every key.
    """

    plan: Tier | None = field(default=None, metadata=NOT_NULL)
    status: AccountStatus | None = field(default=None, metadata=NOT_NULL)


@frozen
class GroupBody:
    """A new group of the server, and its members: emails, or ids of accounts."""

    name: str
    members: Sequence[str] | None = field(default=None, metadata=NOT_NULL)


@frozen
class InvitationBody:
    """The address of a person to invite, and the groups of the server that the person joins."""

    email: str
    groups: Sequence[str] | None = field(default=None, metadata=NOT_NULL)


@frozen
class SecretBody:
    """The value of a secret. No answer ever contains it."""

    value: str = field(repr=False)


@frozen
class MembersBody:
    """Members to add to a group and to remove from it: emails, or ids of accounts."""

    add: Sequence[str] | None = field(default=None, metadata=NOT_NULL)
    remove: Sequence[str] | None = field(default=None, metadata=NOT_NULL)


@frozen
class DefinitionBody:
    """
    The text of a new definition, YAML or JSON. `tests`: the text of the scenarios that are kept
    beside it.
    """

    definition: str
    tests: str | None = field(default=None, metadata=NOT_NULL)


@frozen
class DefinitionChangeBody:
    """
    Another text of a definition, which began with `version`. Without `tests` those of the present
    version stay.
    """

    definition: str
    version: int
    tests: str | None = field(default=None, metadata=NOT_NULL)


@frozen
class RestoreBody:
    """The version that must be the present one."""

    version: int


@frozen
class ShareBody:
    """The permission to give; it includes the lower ones."""

    permission: Permission


@frozen
class RotateBody:
    """A new secret; the one before stays good for `overlap` milliseconds (default 24 h)."""

    overlap: int | None = field(default=None, metadata=NOT_NULL)


@frozen
class TestBody:
    """A delivery to try a webhook with; without `payload` a small sample."""

    __test__ = False

    payload: JsonObject | None = field(default=None, metadata=NOT_NULL)


@frozen
class NoticeTestBody:
    """A test over a `channel`; by mail `to` an email."""

    channel: str
    to: str | None = field(default=None, metadata=NOT_NULL)


@frozen
class LoginBody:
    """Sign in at the console."""

    email: str
    password: str = field(repr=False)
