"""Webhooks, with their statistics and last deliveries."""

from collections.abc import Mapping
from enum import StrEnum

from attrs import field, frozen

from wfcore.model.json import JsonObject
from wfcore.time import EpochMs


class WebhookStatus(StrEnum):
    """Whether a webhook starts executions. A DISABLED webhook refuses every delivery."""

    ACTIVE = "ACTIVE"
    DISABLED = "DISABLED"


class DisabledReason(StrEnum):
    """
    The reason why a webhook is off: its owner, the plan's limit, a deleted workflow, or lost
    access.
    """

    MANUAL = "MANUAL"
    PLAN_LIMIT = "PLAN_LIMIT"
    WORKFLOW_DELETED = "WORKFLOW_DELETED"
    ACCESS_LOST = "ACCESS_LOST"


class AuthMode(StrEnum):
    """
    The proof that a webhook asks of its senders: an API key, a signature of the body, or none.
    """

    API_KEY = "API_KEY"
    SIGNATURE = "SIGNATURE"
    NONE = "NONE"


class Scheme(StrEnum):
    """The sender whose headers sign a webhook's requests. WH-17."""

    WFCORE = "wfcore"
    STANDARD = "standard"
    GITHUB = "github"
    STRIPE = "stripe"
    SLACK = "slack"


@frozen
class Webhook:
    """
    A trigger URL for one workflow. `when`: a template over `payload` and `headers` that chooses the
    deliveries that start an execution. WH-24. `headers`: header names by variable. WH-25.
    `secret_key` counts only if the webhook has no bound key. `old_secret`, its predecessor, is
    valid until `old_secret_until`. WH-19.
    """

    id: str
    owner_id: str
    workflow_id: str
    name: str
    created_at: EpochMs
    updated_at: EpochMs
    api_key_id: str | None = None
    secret_key: str | None = field(default=None, repr=False)
    variable_mapping: Mapping[str, str] | None = None
    status: WebhookStatus = WebhookStatus.ACTIVE
    disabled_reason: DisabledReason | None = None
    version: int = 0
    scheme: Scheme = Scheme.WFCORE
    old_secret: str | None = field(default=None, repr=False)
    old_secret_until: EpochMs | None = None
    when: str | None = None
    headers: Mapping[str, str] | None = None

    @property
    def auth_mode(self) -> AuthMode:
        """
        The way in which callers authenticate. A bound key takes precedence over a secret,
        permanently; without key and secret, the URL is the credential.
        """
        if self.api_key_id is not None:
            return AuthMode.API_KEY
        return AuthMode.SIGNATURE if self.secret_key else AuthMode.NONE


ACCEPTED = 202
"""The status under which the statistics count an accepted trigger."""
IGNORED = 200
"""The status under which the statistics count a delivery that `when` ignored."""


@frozen
class Tally:
    """
    The number of requests that a webhook answered with *status* on one UTC date (`YYYY-MM-DD`).
    """

    webhook_id: str
    date: str
    status: int
    count: int
    last_at: EpochMs


class DeliveryKind(StrEnum):
    """The sender of a delivery: another system, the owner's test, or a replay."""

    SENDER = "sender"
    TEST = "test"
    REPLAY = "replay"


@frozen
class Delivery:
    """
    One answered request to a webhook's URL. WH-20 to WH-22.

    `status`: the status of the answer. `reason`: why the request was refused or ignored, in words
    for the owner. `authenticated`: whether the credentials were valid. `payload` and
    `from_headers`: the content of the request and the variables from its headers, stored only for
    an authenticated request that was refused or `ignored`. `replay_of`: the delivery that this
    delivery repeats.
    """

    id: str
    webhook_id: str
    at: EpochMs
    kind: DeliveryKind
    status: int
    authenticated: bool
    reason: str | None = None
    execution_id: str | None = None
    payload: JsonObject | None = field(default=None, repr=False)
    replay_of: str | None = None
    ignored: bool = False
    from_headers: JsonObject = field(factory=dict, repr=False)
