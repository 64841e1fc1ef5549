"""Webhooks and what is counted of them. Contract §6."""

from collections.abc import Mapping
from enum import StrEnum

from attrs import frozen

from wfcore.instants import EpochMs


class WebhookStatus(StrEnum):
    ACTIVE = "ACTIVE"
    DISABLED = "DISABLED"


class DisabledReason(StrEnum):
    MANUAL = "MANUAL"
    PLAN_LIMIT = "PLAN_LIMIT"
    WORKFLOW_DELETED = "WORKFLOW_DELETED"
    ACCESS_LOST = "ACCESS_LOST"


class AuthMode(StrEnum):
    API_KEY = "API_KEY"
    SIGNATURE = "SIGNATURE"
    NONE = "NONE"


@frozen
class Webhook:
    """A trigger URL for one workflow. `secret_key` counts only without a bound key."""

    id: str
    owner_id: str
    workflow_id: str
    name: str
    created_at: EpochMs
    updated_at: EpochMs
    api_key_id: str | None = None
    secret_key: str | None = None
    variable_mapping: Mapping[str, str] | None = None
    status: WebhookStatus = WebhookStatus.ACTIVE
    disabled_reason: DisabledReason | None = None
    version: int = 0

    @property
    def auth_mode(self) -> AuthMode:
        """A bound key wins over a secret, for good; with neither the URL is the credential."""
        if self.api_key_id is not None:
            return AuthMode.API_KEY
        return AuthMode.SIGNATURE if self.secret_key else AuthMode.NONE


ACCEPTED = 202
"""The status under which an accepted trigger is tallied."""


@frozen
class Tally:
    """How often a webhook answered *status* on one UTC date (`YYYY-MM-DD`)."""

    webhook_id: str
    date: str
    status: int
    count: int
    last_at: EpochMs
