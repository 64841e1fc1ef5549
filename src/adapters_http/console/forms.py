"""What the forms of the pages send, one shape each; fields that are left empty are ''."""

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
    """Mail a link that signs in. The rest of the form comes with it, and is not looked at."""

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
    How pages look in this browser: `theme` system, light or dark; `times` local or utc; `language`
    one that is here, else the browser's.
    """

    theme: str
    times: str
    language: str = ""
    next: str = ""


@frozen
class DecisionForm:
    """
    Approve the rows as they stand, reject, or ask for changes; without scripts there is no more to
    it. `answers`: as typed, by the key of the field.
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
    Executions to do something with, `ids` with blanks between. `seen`: what had redriven each when
    the form was shown, with commas between.
    """

    ids: str
    seen: str = ""


@frozen
class StartForm:
    """
    Start a workflow. `inputs`: as typed, by the name of the variable. `once`: the idempotency key
    of the form.
    """

    once: str
    inputs: JsonObject | None = None


@frozen
class EditForm:
    """
    Another text of a workflow's definition, which began with `version`. `apply`: store it; else it
    is checked and compared.
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
    """The name of what is to go, typed by whoever means it."""

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
