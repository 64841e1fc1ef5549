"""Accounts, shares, API keys, console sessions, windows of quotas."""

from enum import StrEnum
from typing import TypeAlias

from attrs import field, frozen

from wfcore.time import EpochMs


class Tier(StrEnum):
    FREE = "FREE"
    PRO = "PRO"
    TEAM = "TEAM"
    ENTERPRISE = "ENTERPRISE"


class AccountStatus(StrEnum):
    ACTIVE = "ACTIVE"
    DISABLED = "DISABLED"
    LOCKED = "LOCKED"


class Permission(StrEnum):
    """What a share grants; each includes the ones before it."""

    VIEW = "VIEW"
    EXECUTE = "EXECUTE"
    EDIT = "EDIT"


class Scope(StrEnum):
    WORKFLOW_READ = "WORKFLOW_READ"
    WORKFLOW_EXECUTE = "WORKFLOW_EXECUTE"
    EXECUTION_READ = "EXECUTION_READ"
    EXECUTION_CANCEL = "EXECUTION_CANCEL"
    APPROVAL_RESPOND = "APPROVAL_RESPOND"
    ARTIFACT_READ = "ARTIFACT_READ"
    WEBHOOK_TRIGGER = "WEBHOOK_TRIGGER"
    ADMIN = "ADMIN"
    """Everything that the command line does, from elsewhere; for accounts of operators. AC-8."""

    @classmethod
    def ordinary(cls) -> tuple["Scope", ...]:
        """The scopes that every account may have: all but ADMIN."""
        return tuple(scope for scope in cls if scope is not cls.ADMIN)


@frozen
class NamedSecret:
    """A value for the steps that list its name; set at `updated_at`. SC-5."""

    name: str
    value: str = field(repr=False)
    updated_at: EpochMs


@frozen
class Account:
    """
    Somebody who owns workflows and keys. `email` is unique and lower case. `session_epoch` counts
    how often all sessions were ended: sessions of an earlier epoch are over. SE-4. `secrets`: by
    name. `operator`: whether it may see everything, at the pages for operators. AC-7.
    `language`: of what is sent to them; None: the server's. `failure_channels`: where every
    execution of its workflows that fails is told, whatever its definition says. NT-8.
    """

    id: str
    email: str
    plan: Tier
    status: AccountStatus
    created_at: EpochMs
    password_hash: str | None = None
    session_epoch: int = 0
    secrets: tuple[NamedSecret, ...] = field(default=(), repr=False)
    operator: bool = False
    language: str | None = None
    failure_channels: tuple[str, ...] = ()
    version: int = 0


@frozen
class Share:
    """Grants *account_id* a permission, and all lower ones, on one workflow."""

    workflow_id: str
    account_id: str
    permission: Permission
    created_at: EpochMs
    version: int = 0


@frozen
class ApiKey:
    """
    A credential. Only a SHA-256 of the secret is stored, which is enough for random text.

    After a rotation `previous_hash` stays valid until `previous_until`. `callback_secret` signs the
    callbacks of executions that the key started; a rotation does not change it. `approvers`: the
    only people whom it may ask through gates; none: whoever GT-5 admits.
    """

    id: str
    account_id: str
    name: str
    scopes: frozenset[Scope]
    secret_hash: str
    created_at: EpochMs
    expires_at: EpochMs | None = None
    revoked_at: EpochMs | None = None
    previous_hash: str | None = None
    previous_until: EpochMs | None = None
    last_used_at: EpochMs | None = None
    callback_secret: str | None = field(default=None, repr=False)
    approvers: tuple[str, ...] = ()
    version: int = 0


@frozen
class Session:
    """
    A console login. The id is a SHA-256 of the cookie's token, `epoch` the account's
    `session_epoch` when the password was checked.
    """

    id: str
    account_id: str
    created_at: EpochMs
    last_seen_at: EpochMs
    epoch: int = 0
    version: int = 0


@frozen
class Login:
    """
    Recent failures for one login name, known or not; the id is a SHA-256 of the name.

    `failures`: the instants of the failures that still count. Until `locked_until` nobody can sign
    in under that name.
    """

    id: str
    failures: tuple[EpochMs, ...]
    last_failure_at: EpochMs
    locked_until: EpochMs | None = None
    version: int = 0


@frozen
class LoginLink:
    """
    A link that signs in once. The id is a SHA-256 of the token in the link, `epoch` the account's
    `session_epoch` when the link was made: what ends all sessions ends the link, too. SE-7.
    """

    id: str
    account_id: str
    created_at: EpochMs
    expires_at: EpochMs
    epoch: int = 0
    version: int = 0


@frozen
class Identity:
    """Who somebody is by the word of an identity provider; `verified`: that the email is theirs."""

    email: str
    verified: bool


@frozen
class SignOnTerms:
    """
    Whom an identity provider may sign in: emails of `domains` (in lower case; none: of any).
    `create`: whether an email without account gets one, on the plan FREE. SE-9.
    """

    domains: frozenset[str] = frozenset()
    create: bool = False


@frozen
class Visitor:
    """
    A user that the surrounding application vouches for: the id or email of an account, and what the
    visitor may do on its behalf.
    """

    account: str
    scopes: frozenset[Scope] = frozenset(Scope.ordinary())


@frozen
class Principal:
    """
    Who makes a request: an account, and the key it came with.

    Without a key it is a console session, which has no scopes, or a visitor with `scopes`.
    `operator`: a person who operates the server, at a page; never a key. AC-7.
    """

    account: Account
    key: ApiKey | None = None
    scopes: frozenset[Scope] = frozenset()
    operator: bool = False

    @property
    def email(self) -> str:
        return self.account.email

    @property
    def account_id(self) -> str:
        return self.account.id

    @property
    def identity(self) -> str:
        """What the person is recorded under: the account's id."""
        return self.account.id


@frozen
class Guest:
    """
    Who came by a personal link: an approver of *approval_id*, and nobody anywhere else. PL-2.

    `account_id`: the account with that email, if there is one. It grants nothing; it is there for
    what that person may not do.
    """

    email: str
    approval_id: str
    account_id: str | None = None

    @property
    def identity(self) -> str:
        """What the person is recorded under: `mailto:` and the email."""
        return by_email(self.email)


Caller: TypeAlias = Principal | Guest
"""Whoever may decide an approval."""


def by_email(email: str) -> str:
    """The identity of a person without regard to an account: `mailto:ann@example.org`. PL-3."""
    return f"mailto:{email.strip().lower()}"


@frozen
class Window:
    """
    One quota window: `kind` is "minute" or "day", [`start`, `end`) in epoch ms.

    `limit` None: unlimited, but counted.
    """

    kind: str
    start: EpochMs
    end: EpochMs
    limit: int | None


@frozen
class Admission:
    """
    The result of one attempt. `full`: the kinds of the windows that were full (empty: admitted);
    `counts`: what each window has admitted, including this one, in order.
    """

    full: tuple[str, ...]
    counts: tuple[int, ...]

    @property
    def admitted(self) -> bool:
        return not self.full
