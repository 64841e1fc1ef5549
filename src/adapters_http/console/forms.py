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
    """How pages look in this browser: `theme` system, light or dark; `times` local or utc."""

    theme: str
    times: str
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
class ActForm:
    """
    Executions to do something with, `ids` with blanks between. `seen`: what had redriven each when
    the form was shown, with commas between.
    """

    ids: str
    seen: str = ""
