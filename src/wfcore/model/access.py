"""Accounts, shares, API keys, console sessions. Contract §1 and §7."""

from enum import StrEnum

from attrs import field, frozen

from wfcore.time import EpochMs


class Plan(StrEnum):
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


@frozen
class NamedSecret:
    """A value for the steps that list its name; set at `updated_at`. SC-5."""

    name: str
    value: str = field(repr=False)
    updated_at: EpochMs


@frozen
class Account:
    """
    Somebody who owns workflows and keys. `email` is unique, lower case. `session_epoch` counts how
    often all sessions were ended: those of an earlier one are over. SE-4. `secrets`: by name.
    """

    id: str
    email: str
    plan: Plan
    status: AccountStatus
    created_at: EpochMs
    password_hash: str | None = None
    session_epoch: int = 0
    secrets: tuple[NamedSecret, ...] = field(default=(), repr=False)
    version: int = 0


@frozen
class Share:
    """*account_id* may do *permission* (and less) with one workflow."""

    workflow_id: str
    account_id: str
    permission: Permission
    created_at: EpochMs
    version: int = 0


@frozen
class ApiKey:
    """
    A credential. Only a SHA-256 of the secret is kept (it is random, so that is enough).

    After a rotation `previous_hash` stays good until `previous_until`. `callback_secret` signs
    callbacks of what the key started; it stays the same.
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
    version: int = 0


@frozen
class Session:
    """
    A console login; the id is a SHA-256 of the cookie's token, `epoch` the account's
    `session_epoch` when the password was looked at.
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
    What went wrong lately for one login name, known or not; the id is a SHA-256 of it.

    `failures` are the instants of failures that still count; while `locked_until` lies ahead
    nobody gets in under that name.
    """

    id: str
    failures: tuple[EpochMs, ...]
    last_failure_at: EpochMs
    locked_until: EpochMs | None = None
    version: int = 0


@frozen
class Visitor:
    """
    Whom an application around this one vouches for: the id or email of an account, and what
    the visitor may do in its name.
    """

    account: str
    scopes: frozenset[Scope] = frozenset(Scope)


@frozen
class Principal:
    """
    Who is asking: an account, and the key it came with.

    Without a key it is a console session, which has no scopes, or a visitor with `scopes`.
    """

    account: Account
    key: ApiKey | None = None
    scopes: frozenset[Scope] = frozenset()

    @property
    def granted(self) -> frozenset[Scope]:
        """What it may do: exactly what the key says where there is one."""
        return self.key.scopes if self.key is not None else self.scopes
