"""The shapes of the forms of pages. An empty field is the empty text."""

from collections.abc import Sequence

from attrs import field, frozen

from wfcore.model.json import JsonObject
from wfcore.wire.requests import ApproveBody, Comment


@frozen
class SignInForm:
    """A sign-in; it leads to `next`, a path of ours."""

    email: str
    password: str = field(repr=False)
    next: str = ""


@frozen
class LinkForm:
    """A request to mail a link that signs in. The other fields of the same form are ignored."""

    email: str
    password: str = field(default="", repr=False)
    next: str = ""


@frozen
class ConfirmedBody:
    """
    A browser's answer to the request for a passkey, all texts base64url but the nonce. `digests`:
    of the statements; `user`: the account that the passkey names.
    """

    nonce: str
    credential_id: str
    authenticator_data: str = field(repr=False)
    client_data: str = field(repr=False)
    signature: str = field(repr=False)
    digests: Sequence[str] = ()
    user: str = ""


@frozen
class RegistrationBody:
    """A browser's answer to the request for a new passkey."""

    nonce: str
    client_data: str
    attestation: str


@frozen
class PasskeyForm:
    """A sign-in by passkey. `passkey`: a `ConfirmedBody` as JSON, which a script writes."""

    passkey: str = field(default="", repr=False)
    next: str = ""


@frozen
class RegisterForm:
    """A new passkey with its name. `passkey`: a `RegistrationBody` as JSON."""

    name: str
    passkey: str = field(default="", repr=False)


@frozen
class RequireForm:
    """Whether a password needs a passkey beside it: `required` = 1, or empty."""

    required: str = ""


@frozen
class ReleaseBody(ApproveBody):
    """A yes of the editor of rows, with the confirmation that a signed release needs."""

    passkey: ConfirmedBody | None = None


@frozen
class SignOutForm:
    """A sign-out in this browser, or with `everywhere` = 1 of every session of the account."""

    everywhere: str = ""


@frozen
class SettingsForm:
    """
    The appearance of pages in this browser: `theme` system, light or dark; `times` local or utc;
    `language` an available language, or empty for the language of the browser; `density` empty for
    low rows, or comfortable.
    """

    theme: str
    times: str
    language: str = ""
    density: str = ""
    next: str = ""


@frozen
class ZoneForm:
    """The time zone of messages to the reader; empty: UTC."""

    zone: str = ""


@frozen
class ViewForm:
    """A name for a list of executions: `query`, its filters. `forget`: the name to drop instead."""

    name: str = ""
    query: str = ""
    forget: str = ""


@frozen
class DecisionForm:
    """
    A decision without scripts: approve the present rows, reject, or ask for changes. `answers`: the
    texts that were typed, by the key of the field.
    """

    decision: str
    comment: Comment | None = None
    expected_items_hash: str = ""
    answers: JsonObject | None = None
    passkey: str = field(default="", repr=False)


@frozen
class DecisionsForm:
    """One decision for several approvals. `seen`: the hash of the rows that were shown, by id."""

    decision: str
    comment: Comment | None = None
    seen: JsonObject | None = None
    passkey: str = field(default="", repr=False)


@frozen
class DelegateForm:
    """A delegation: *to*, an email or an account id, may decide until the approval expires."""

    to: str


@frozen
class ActForm:
    """
    A cancellation or redrive of executions. `ids`: the ids, separated by blanks. `seen`: for each
    id the execution that had redriven it when the form was shown, separated by commas.
    """

    ids: str
    seen: str = ""


@frozen
class RedriveForm:
    """
    A redrive of an execution from the step `start` (empty: where the execution stopped), with the
    digest of a plan; without a digest the plan is shown. `inputs`: the texts in the fields, by the
    name of the variable.
    """

    digest: str = ""
    start: str = ""
    newest: str = ""
    inputs: JsonObject | None = None


@frozen
class StartForm:
    """
    A start of a workflow. `inputs`: the texts that were typed, by the name of the variable.
    `reference`: a text by which people find the execution. `once`: the idempotency key of the form.
    """

    once: str
    reference: str = ""
    inputs: JsonObject | None = None


@frozen
class OnceForm:
    """A press of a button that starts something. `once`: the idempotency key of the form."""

    once: str


@frozen
class StateForm:
    """
    A new value of the name `name` of a workflow's state, or with `reset` the default. `text`: the
    value as typed.
    """

    name: str
    text: str = field(default="", repr=False)
    reset: str = ""


@frozen
class EditForm:
    """
    A new text of a workflow's definition with its tests, based on `version`. `apply`: store the
    text; if empty, only check and compare the text. `play`: play the tests.
    """

    text: str
    version: str = ""
    tests: str = ""
    apply: str = ""
    play: str = ""


@frozen
class CheckForm:
    """
    A text in the editor with its tests. `workflow`: the id of the workflow; empty: a new one.
    `play`: play the tests. The other fields of the same form are ignored.
    """

    text: str
    tests: str = ""
    workflow: str = ""
    play: str = ""
    version: str = ""


@frozen
class RestoreForm:
    """The version that was the present one when the page was shown."""

    version: str


@frozen
class ShareForm:
    """
    A permission for `account`, an email or id; an empty `permission` takes the share away.
    """

    account: str
    permission: str = ""


@frozen
class KeyForm:
    """
    A new key. `days`: the days until the key expires; empty: never. `scopes`: one field for each
    scope. `approvers`: the approvers, separated by commas or blanks.
    """

    name: str
    days: str = ""
    approvers: str = ""
    scopes: JsonObject | None = None


@frozen
class NameForm:
    """The name of the record to delete, typed as a confirmation."""

    name: str


@frozen
class StatusForm:
    """A new status. `back`: the page to return to, if another page than usual."""

    status: str
    back: str = ""


@frozen
class WebhookForm:
    """
    A new webhook for a workflow. `proof`: a scheme of signatures, or the id of one of the account's
    keys. `secret`: the secret of the sender; empty: the server makes a secret.
    """

    name: str
    workflow: str = ""
    proof: str = ""
    secret: str = field(default="", repr=False)


@frozen
class ConditionsForm:
    """
    The conditions of a webhook: the template `when`, and in `headers` a line `variable:
    Header-Name` for each header that sets a variable. Empty: none.
    """

    when: str = ""
    headers: str = ""


@frozen
class SecretForm:
    """A new value of a secret."""

    name: str
    value: str = field(default="", repr=False)


@frozen
class PeriodForm:
    """A period in the past, between two instants in milliseconds."""

    since: str
    until: str


@frozen
class PersonForm:
    """A new plan and status of an account."""

    plan: str
    status: str


@frozen
class InviteForm:
    """An invitation of a person. `groups`: one field for each group to join, by number."""

    email: str
    groups: JsonObject | None = None


@frozen
class ChannelForm:
    """A test notice to the operator, over `channel`."""

    channel: str


@frozen
class GroupForm:
    """A new group. `members`: emails or ids of accounts, separated by commas or blanks."""

    name: str
    members: str = ""


@frozen
class MembersForm:
    """Members to add to a group, separated by commas or blanks, and one to remove."""

    add: str = ""
    remove: str = ""
