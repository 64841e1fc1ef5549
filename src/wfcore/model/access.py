"""Accounts, shares, API keys, console sessions, and the windows of quotas."""

from collections.abc import Mapping
from enum import Enum, StrEnum
from typing import Final, TypeAlias

from attrs import field, frozen

from wfcore.model.passkey import Passkey
from wfcore.time import EpochMs


class Tier(StrEnum):
    """The plan of an account, from the smallest quotas (FREE) to the largest (ENTERPRISE)."""

    FREE = "FREE"
    PRO = "PRO"
    TEAM = "TEAM"
    ENTERPRISE = "ENTERPRISE"


class AccountStatus(StrEnum):
    """
    The standing of an account. Of an account that is DISABLED or LOCKED, sessions, keys and
    webhooks are refused; only the word in the answer differs.
    """

    ACTIVE = "ACTIVE"
    DISABLED = "DISABLED"
    LOCKED = "LOCKED"


class Permission(StrEnum):
    """The rights that a share grants. Each right includes the rights before."""

    VIEW = "VIEW"
    EXECUTE = "EXECUTE"
    EDIT = "EDIT"


class Scope(StrEnum):
    """
    One permission of an API key. A key without a scope is refused for the operations of that scope.
    """

    WORKFLOW_READ = "WORKFLOW_READ"
    WORKFLOW_EXECUTE = "WORKFLOW_EXECUTE"
    EXECUTION_READ = "EXECUTION_READ"
    EXECUTION_CANCEL = "EXECUTION_CANCEL"
    APPROVAL_RESPOND = "APPROVAL_RESPOND"
    ARTIFACT_READ = "ARTIFACT_READ"
    WEBHOOK_TRIGGER = "WEBHOOK_TRIGGER"
    ADMIN = "ADMIN"
    """
    Every operation of the command line, over the API. Only accounts of operators may have this
    scope. AC-8.
    """

    @classmethod
    def ordinary(cls) -> tuple["Scope", ...]:
        """The scopes that every account may have: all but ADMIN."""
        return tuple(scope for scope in cls if scope is not cls.ADMIN)


@frozen
class NamedSecret:
    """
    A value for the steps that list its name. `updated_at`: the instant at which the value was set.
    SC-5.
    """

    name: str
    value: str = field(repr=False)
    updated_at: EpochMs


@frozen
class SpentNonce:
    """A nonce that was taken: its SHA-256, and the instant from which on it counts no more."""

    hash: str
    until: EpochMs


@frozen
class SavedView:
    """A list of executions under a name. `query`: the filters, as in the address of the list."""

    name: str
    query: str


@frozen
class Account:
    """
    A person who owns workflows and keys. `email` is unique and in lower case.

    `session_epoch`: how often all sessions were ended; sessions of an earlier epoch have ended.
    SE-4. `secrets`: the account's secrets by name. `operator`: whether the account sees everything,
    on the pages for operators. AC-7. `language`: the language of messages to this person; None: the
    server's language. `failure_channels`: the channels that report every failed execution of the
    account's workflows, whatever the definition says. NT-8. `passkeys`: in the order of their
    registration. `passkey_required`: whether a password signs in only together with a passkey.
    `spent_nonces`: those of the last minutes. SR-3, SR-5. `views`: the lists of executions that the
    person named, in the order of their names. `invited_at`: the instant of an invitation, until the
    person signs in for the first time. AC-12. `zone`: the time zone of messages to this person, as
    in the IANA database; None: UTC.
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
    passkeys: tuple[Passkey, ...] = ()
    passkey_required: bool = False
    spent_nonces: tuple[SpentNonce, ...] = ()
    views: tuple[SavedView, ...] = ()
    invited_at: EpochMs | None = None
    zone: str | None = None
    version: int = 0


@frozen
class PeopleGroups:
    """
    All groups of the server, as one record. `members`: the addresses of each group, by its name, in
    the form for comparison. AP-49.
    """

    id: str
    members: Mapping[str, tuple[str, ...]] = field(factory=dict)
    version: int = 0


@frozen
class Share:
    """A permission of *account_id*, and all lower permissions, on one workflow."""

    workflow_id: str
    account_id: str
    permission: Permission
    created_at: EpochMs
    version: int = 0


@frozen
class ApiKey:
    """
    A credential. The store keeps only a SHA-256 of the secret, which suffices for random text.

    After a rotation, `previous_hash` stays valid until `previous_until`. `callback_secret` signs
    the callbacks of executions that the key started; a rotation does not change this secret.
    `approvers`: the only people whom the key may ask through gates; empty: the people whom GT-5
    admits.
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
    A console session. `id`: a SHA-256 of the cookie's token. `epoch`: the account's `session_epoch`
    when the password was checked.
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
    The recent failures for one login name, known or unknown. `id`: a SHA-256 of the name.

    `failures`: the instants of the failures that still count. Until `locked_until`, nobody can sign
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
    A link that signs in once. `id`: a SHA-256 of the token in the link. `epoch`: the account's
    `session_epoch` when the link was made. Ending all sessions also ends the link. SE-7.
    """

    id: str
    account_id: str
    created_at: EpochMs
    expires_at: EpochMs
    epoch: int = 0
    version: int = 0


@frozen
class Identity:
    """
    A person as an identity provider describes them. `verified`: whether the provider has checked
    the email. `groups`: the person's groups at the provider, in the provider's words.
    """

    email: str
    verified: bool
    groups: frozenset[str] = frozenset()


@frozen
class SignOnTerms:
    """
    The people whom an identity provider may sign in: people with emails in `domains` (lower case;
    empty: all people). `create`: whether an email without an account gets an account, on the plan
    FREE. SE-9. `groups`: the groups of the server whose members the provider decides, each by the
    provider's word for it. AP-50.
    """

    domains: frozenset[str] = frozenset()
    create: bool = False
    groups: Mapping[str, str] = field(factory=dict)


@frozen
class Visitor:
    """
    A user whom the surrounding application vouches for: the id or email of an account, and the
    scopes that the visitor has.
    """

    account: str
    scopes: frozenset[Scope] = frozenset(Scope.ordinary())


@frozen
class Principal:
    """
    The caller of a request: an account, and the key of the request.

    Without a key, the caller is a console session, which has no scopes, or a visitor with `scopes`.
    `operator`: whether a person operates the server, at a page; never true for a key. AC-7.
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
        """The id of the account, under which records name this person."""
        return self.account.id


@frozen
class Guest:
    """
    A person with a personal link: an approver of *approval_id*, with no other right. PL-2.

    `account_id`: the account with that email, if one exists. The account grants nothing and only
    limits the person.
    """

    email: str
    approval_id: str
    account_id: str | None = None

    @property
    def identity(self) -> str:
        """`mailto:` and the email, under which records name this person."""
        return by_email(self.email)


Caller: TypeAlias = Principal | Guest
"""A person or program that may decide an approval."""


class Unrestricted(Enum):
    """The type of `OPERATOR`."""

    OPERATOR = "operator"


OPERATOR: Final = Unrestricted.OPERATOR
"""
The caller with all rights: the operator on the host, or the program around wfcore. `OPERATOR` has
no account, so an entry of the audit log names none. AC-11.
"""


def by_email(email: str) -> str:
    """The identity of a person without regard to an account: `mailto:ann@example.org`. PL-3."""
    return f"mailto:{email.strip().lower()}"


@frozen
class Window:
    """
    One window of a quota: `kind` is "minute" or "day"; `start` (included) and `end` (excluded) in
    epoch ms.

    `limit` None: requests are counted and not limited.
    """

    kind: str
    start: EpochMs
    end: EpochMs
    limit: int | None


@frozen
class Admission:
    """
    The result of one request against its windows. `full`: the kinds of the windows that were full;
    empty: the request was admitted. `counts`: the requests that each window has admitted, in the
    order of the windows; an admitted request is included.
    """

    full: tuple[str, ...]
    counts: tuple[int, ...]

    @property
    def admitted(self) -> bool:
        return not self.full
