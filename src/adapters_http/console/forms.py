"""The shapes of the forms of pages. An empty field is the empty text."""

from attrs import field, frozen

from wfcore.model.json import JsonObject
from wfcore.wire.requests import Comment


@frozen
class SignInForm:
    """Sign in; then go to `next`, a path of ours."""

    email: str
    password: str = field(repr=False)
    next: str = ""


@frozen
class LinkForm:
    """Mail a link that signs in. The other fields of the same form are ignored."""

    email: str
    password: str = field(default="", repr=False)
    next: str = ""


@frozen
class SignOutForm:
    """Sign out here, or with `everywhere` = 1 every session of the account."""

    everywhere: str = ""


@frozen
class SettingsForm:
    """
    The appearance of pages in this browser: `theme` system, light or dark; `times` local or utc;
    `language` an available one, else that of the browser.
    """

    theme: str
    times: str
    language: str = ""
    next: str = ""


@frozen
class DecisionForm:
    """
    Approve the rows as they stand, reject, or ask for changes, without scripts. `answers`: the
    texts that were typed, by the key of the field.
    """

    decision: str
    comment: Comment | None = None
    expected_items_hash: str = ""
    answers: JsonObject | None = None


@frozen
class DecisionsForm:
    """One decision for several approvals. `seen`: the hash that was shown, by id."""

    decision: str
    comment: Comment | None = None
    seen: JsonObject | None = None


@frozen
class DelegateForm:
    """Let *to*, an email or an account id, decide until the approval expires."""

    to: str


@frozen
class ActForm:
    """
    Cancel or redrive executions. `ids`: separated by blanks. `seen`: for each the execution that
    had redriven it when the form was shown, separated by commas.
    """

    ids: str
    seen: str = ""


@frozen
class RedriveForm:
    """Redrive an execution from the step `start` (empty: where it stopped), by a plan's digest."""

    digest: str
    start: str = ""
    newest: str = ""


@frozen
class StartForm:
    """
    Start a workflow. `inputs`: the texts that were typed, by the name of the variable. `once`: the
    idempotency key of the form.
    """

    once: str
    inputs: JsonObject | None = None


@frozen
class EditForm:
    """
    A new text of a workflow's definition, based on `version`. `apply`: store the text; else check
    and compare it.
    """

    text: str
    version: str
    apply: str = ""


@frozen
class KeyForm:
    """
    A new key. `days`: until it expires; empty: never. `scopes`: one field for each. `approvers`:
    separated by commas or blanks.
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
    """Another status."""

    status: str


@frozen
class PersonForm:
    """Another plan and status of an account."""

    plan: str
    status: str
