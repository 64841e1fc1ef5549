"""
The errors of wfcore, as types that carry data.

An error is named for what is true, describes it in words that a caller may read, and knows nothing
of HTTP: one table in the HTTP adapter maps types to statuses. Secrets never enter an error.
"""

from enum import StrEnum
from typing import ClassVar

from attrs import define, field


class AuthReason(StrEnum):
    """Why a credential did not open a door. For the audit log only, never for the caller."""

    MISSING = "missing"
    MALFORMED = "malformed"
    UNKNOWN_KEY = "unknown_key"
    BAD_SECRET = "bad_secret"
    REVOKED = "revoked"
    EXPIRED = "expired"
    SCOPE_MISSING = "scope_missing"
    NOT_BOUND_KEY = "not_bound_key"
    WRONG_ACCOUNT = "wrong_account"
    SIGNATURE_MISMATCH = "signature_mismatch"
    SESSION_INVALID = "session_invalid"


@define
class WfError(Exception):
    """Whatever wfcore refuses. `str(error)` is fit for the caller's eyes."""

    says: ClassVar[str] = "The request could not be carried out"

    def __str__(self) -> str:
        return self.says


@define
class Unauthenticated(WfError):
    """
    The credential does not open this door. `reason` never leaves the audit log; `detail`, what a
    webhook's sender did wrong, is for the webhook's owner alone.
    """

    says: ClassVar[str] = "Unauthorized"
    reason: AuthReason
    account_id: str | None = None
    key_id: str | None = None
    detail: str | None = None


@define
class PasskeyAwaited(WfError):
    """
    The password is right, and the account asks for a passkey as well. `account_id`: for the page
    that asks for it.
    """

    says: ClassVar[str] = "This account also needs its passkey; sign in on the page"
    account_id: str


@define
class AccountBlocked(WfError):
    """The key owner's account is disabled or locked."""

    says: ClassVar[str] = "The account is disabled or locked"
    account_id: str
    key_id: str | None = None


@define
class Forbidden(WfError):
    """The object is visible to the caller, the deed is not permitted."""

    message: str

    def __str__(self) -> str:
        return self.message


@define
class PasskeyNeeded(Forbidden):
    """The deed needs a passkey, which this way of doing it cannot have. `message` says where."""


@define
class NotConfirmed(Forbidden):
    """A confirmation by a passkey does not count. `message` says what does not fit."""

    def __str__(self) -> str:
        return f"The passkey does not confirm this: {self.message}"


@define
class NotFound(WfError):
    """There is no such object, or none that the caller may see: the same answer for both."""

    kind: str

    def __str__(self) -> str:
        return f"{self.kind} not found"


@define
class InvalidInput(WfError):
    """A client sent something unusable. `field` names where, `fix` what would do."""

    field: str
    fix: str

    def __str__(self) -> str:
        return f"{self.field}: {self.fix}" if self.field else self.fix


@define
class TooLarge(WfError):
    """A body or value is over its limit."""

    what: str
    limit_bytes: int

    def __str__(self) -> str:
        return f"{self.what} is over its limit of {self.limit_bytes} bytes"


@define
class Conflict(WfError):
    """The request is fine, the state it meets is not."""

    message: str

    def __str__(self) -> str:
        return self.message


@define
class AlreadyDecided(Conflict):
    """The approval has its decision; a further one changes nothing."""

    approval_id: str = ""


@define
class ItemsChanged(Conflict):
    """The rows of the approval are not the ones that the reviewer saw."""

    approval_id: str = ""


@define
class NoMoreRevisions(Conflict):
    """The step allows no further revision of this approval."""

    approval_id: str = ""


@define
class LimitReached(Conflict):
    """As many executions of the workflow as may run at once have not ended; nothing started."""

    workflow_id: str = ""
    limit: int = 0


@define
class AccountExists(Conflict):
    """The email belongs to an account already."""

    email: str = ""


@define
class NoResultYet(Conflict):
    """The execution has not ended."""

    execution_id: str = ""


@define
class KeyReused(Conflict):
    """The idempotency key was used with another body, within the time that it counts."""


@define
class AlreadyFinished(Conflict):
    """The execution has ended; nothing moves it any more."""

    execution_id: str = ""


@define
class IllegalMove(Conflict):
    """A machine has no row for this state and fact."""

    machine: str = ""
    state: str = ""
    fact: str = ""


@define
class RateLimited(WfError):
    """A quota window is full."""

    window: str
    limit: int
    retry_after_s: int

    def __str__(self) -> str:
        return (
            f"Rate limit of {self.limit} requests per {self.window} reached; "
            f"retry in {self.retry_after_s} s"
        )


@define
class LinkOver(WfError):
    """A sign-in link was used, has expired, or never existed; the error does not reveal which."""

    says: ClassVar[str] = "This link was used or is over; each signs in once"


@define
class PersonalLinkOver(WfError):
    """A personal link that this server did not sign, or whose approval is past its time. PL-1."""

    says: ClassVar[str] = "This link was never valid here, or the server's key was changed"
    expired: bool = False

    def __str__(self) -> str:
        return "The time to decide is over" if self.expired else self.says


@define
class SignInFirst(Forbidden):
    """An approval whose personal links lead to signing in, and do no more. PL-5."""

    message: str = "This approval wants you to sign in"


@define
class Unvouched(WfError):
    """
    The word of the identity provider signs nobody in here; the message gives the reason. SE-9.
    """

    message: str

    def __str__(self) -> str:
        return self.message


@define
class TooManyAttempts(WfError):
    """Too many failed logins; this login is locked for a while."""

    retry_after_s: int

    def __str__(self) -> str:
        return f"Too many failed logins; retry in {self.retry_after_s} s"


@define
class TooManyLogins(TooManyAttempts):
    """More logins are tried, from one address or in all, than are checked in a minute."""

    def __str__(self) -> str:
        return f"Too many logins; retry in {self.retry_after_s} s"


@define
class Problem:
    """One mistake in a definition. `path`: of the field; `message`: the correction."""

    path: str
    message: str
    line: int | None = None

    def __str__(self) -> str:
        where = f"line {self.line}: " if self.line else ""
        return f"{where}{self.path}: {self.message}" if self.path else f"{where}{self.message}"


@define
class InvalidDefinition(WfError):
    """A workflow definition has mistakes; all of them are listed, nothing was stored."""

    problems: tuple[Problem, ...]
    source: str = ""

    def __str__(self) -> str:
        head = f"{self.source}: " if self.source else ""
        return "\n".join(f"{head}{problem}" for problem in self.problems)


@define
class PackagesUnavailable(WfError):
    """Packages of a code step could not be installed. `says_why`: in the installer's words."""

    says_why: str

    def __str__(self) -> str:
        return self.says_why


@define
class TemplateFailed(WfError):
    """A template could not be evaluated: unknown name, wrong type, or budget exceeded."""

    template: str
    why: str

    def __str__(self) -> str:
        return f"template {self.template!r}: {self.why}"


@define
class NotRead(Exception):
    """
    Output or items of the step *key* (None: the output of the execution) were left out when the
    execution was read. The unit of work reads them and decides again; callers never see this error.
    ST-7.
    """

    execution_id: str
    key: str | None


@define
class Stale(WfError):
    """Somebody else stored a newer version first; the whole unit left no trace."""

    says: ClassVar[str] = "The record changed meanwhile"
    kind: str = ""
    id: str = ""


@define
class LeaseLost(WfError):
    """The execution is no longer this worker's: its fencing number is an old one."""

    says: ClassVar[str] = "The execution is no longer held by this worker"
    execution_id: str = ""


@define
class StoreUnavailable(WfError):
    """The store cannot do this now (disk full, read-only, locked, unreachable)."""

    says: ClassVar[str] = "The store is unavailable; retry later"
    detail: str = field(default="", repr=False)

    @property
    def is_full(self) -> bool:
        """Whether the disk is full, in the words of SQLite, PostgreSQL and the system."""
        return any(sign in self.detail for sign in ("disk is full", "No space left on device"))


@define
class StoreClosed(StoreUnavailable):
    """`Store.close` was called, but the caller still uses the store."""

    says: ClassVar[str] = "The store is closed"


@define
class StoreDisplaced(StoreUnavailable):
    """The database was removed or replaced while it was open; what is written now would be lost."""

    says: ClassVar[str] = (
        "The database file was removed or replaced while the server had it open; "
        "put it back, or restart the server"
    )


@define
class Unreadable(WfError):
    """A stored record that cannot be read: damaged, or written by a newer version."""

    kind: str
    id: str

    def __str__(self) -> str:
        return "This cannot be read from the store; the server's log names the record"


@define
class NotReady(WfError):
    """The store is well, but this server takes no work now: it is stopping, or a loop is down."""

    message: str

    def __str__(self) -> str:
        return self.message


@define
class StoreRefused(WfError):
    """The file is no store of ours (foreign, damaged, of a newer schema), or part of it is lost."""

    message: str

    def __str__(self) -> str:
        return self.message


@define
class MissingExtra(WfError):
    """`what` needs libraries that only an extra of the distribution installs, which `cure` does."""

    what: str
    extra: str
    module: str = ""
    cure: str = ""

    def __str__(self) -> str:
        lacking = f" ({self.module} is not installed)" if self.module else ""
        cure = self.cure or f"pip install 'path/to/wfcore[{self.extra}]'"
        return f"{self.what} needs the extra {self.extra}{lacking}: {cure}"
