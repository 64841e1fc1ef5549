"""JSON of what has no place in the HTTP API: keys, shares, audit entries, applied workflows."""

from collections.abc import Sequence
from typing import Any

from attrs import define, field

from wfcore.model.access import ApiKey, Permission, Share
from wfcore.model.event import AuditEntry, AuditOutcome
from wfcore.model.json import JsonObject
from wfcore.wire.common import ABSENT
from wfcore.wire.converter import plain


@define(eq=False, kw_only=True)
class KeyView:
    """
    A key; `apiKey`, its text, and `callbackSecret`, which signs callbacks, are there once, when
    they are made.
    """

    id: str
    api_key: str | None = field(default=None, metadata=ABSENT, repr=False)
    callback_secret: str | None = field(default=None, metadata=ABSENT, repr=False)
    account_id: str
    name: str
    scopes: Sequence[str]
    created_at: int
    expires_at: int | None
    revoked_at: int | None
    last_used_at: int | None
    previous_until: int | None


@define(eq=False)
class ShareView:
    workflow_id: str
    account_id: str
    permission: Permission | None


@define(eq=False)
class AuditView:
    id: str
    at: int
    event: str
    outcome: AuditOutcome
    reason: str | None
    account_id: str | None
    key_id: str | None
    target: str | None
    path: str | None
    ip: str | None
    request_id: str | None
    details: JsonObject | None
    execution_id: str | None
    record_hash: str | None


def key_json(key: ApiKey, text: str | None = None, callback_secret: str | None = None) -> Any:
    """A key; with *text* and *callback_secret* where they were just made."""
    view = KeyView(
        id=key.id,
        api_key=text,
        callback_secret=callback_secret,
        account_id=key.account_id,
        name=key.name,
        scopes=sorted(key.scopes),
        created_at=key.created_at,
        expires_at=key.expires_at,
        revoked_at=key.revoked_at,
        last_used_at=key.last_used_at,
        previous_until=key.previous_until,
    )
    return plain(view)


def share_json(share: Share) -> Any:
    """A share."""
    return plain(ShareView(share.workflow_id, share.account_id, share.permission))


def audit_json(entry: AuditEntry) -> Any:
    """A line of the audit log."""
    view = AuditView(
        entry.id,
        entry.at,
        entry.event,
        entry.outcome,
        entry.reason,
        entry.account_id,
        entry.key_id,
        entry.target,
        entry.path,
        entry.ip,
        entry.request_id,
        entry.details,
        entry.execution_id,
        entry.record_hash,
    )
    return plain(view)
