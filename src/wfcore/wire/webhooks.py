"""How the wire shows webhooks, their deliveries and counts, and callbacks."""

from collections.abc import Mapping, Sequence

from attrs import define, field

from wfcore.model.event import EventKind
from wfcore.model.execution import ExecutionStatus, ReasonCode, TriggerSource
from wfcore.model.webhook import (
    AuthMode,
    Delivery,
    DeliveryKind,
    DisabledReason,
    Scheme,
    Webhook,
    WebhookStatus,
)
from wfcore.rules.webhooks.webhook import Stats, may_be_replayed
from wfcore.time import EpochMs
from wfcore.wire.common import ABSENT, ListPage


@define(eq=False)
class TriggerView:
    """An accepted webhook trigger."""

    execution_id: str
    webhook_id: str
    workflow_id: str
    status: ExecutionStatus
    started_at: int


@define(eq=False, kw_only=True)
class IgnoredView:
    """A delivery that the webhook's `when` ignores: nothing was started."""

    ok: bool = True
    ignored: bool = True
    webhook_id: str
    execution_id: str | None = None
    status: ExecutionStatus | None = None


@define(eq=False)
class WebhookView:
    """
    A webhook. `secretKey` is there once, when it is made. `when`: the template that chooses the
    deliveries that start anything; `headers`: names of headers by variable. `scheme`: whose headers
    sign its requests, null where none do; `oldSecretUntil`: until when the secret before is good,
    too.
    """

    id: str
    webhook_id: str
    workflow_id: str
    name: str
    api_key_id: str | None
    variable_mapping: Mapping[str, str] | None
    status: WebhookStatus
    disabled_reason: DisabledReason | None
    auth_mode: AuthMode
    trigger_url: str
    created_at: int
    updated_at: int
    last_triggered_at: int | None
    scheme: Scheme | None
    old_secret_until: int | None
    when: str | None
    headers: Mapping[str, str] | None
    secret_key: str | None = field(default=None, metadata=ABSENT, repr=False)


@define(eq=False, kw_only=True)
class WebhookPage(ListPage):
    webhooks: Sequence[WebhookView]


@define(eq=False)
class DeliveryView:
    """
    One answered request to a webhook. `status`: what was answered; `reason`: why it was refused or
    `ignored`; `canReplay`: whether what it carried is still known.
    """

    id: str
    webhook_id: str
    at: int
    kind: DeliveryKind
    status: int
    authenticated: bool
    reason: str | None
    execution_id: str | None
    replay_of: str | None
    ignored: bool
    can_replay: bool


@define(eq=False)
class DeliveryPage:
    deliveries: Sequence[DeliveryView]
    total: int
    page: int
    size: int


@define(eq=False)
class WebhookDeleted:
    ok: bool
    webhook_id: str


@define(eq=False)
class EndedExecutionView:
    """What a callback tells of the execution: that and how it ended, not what it computed."""

    execution_id: str
    workflow_id: str
    workflow_name: str
    trigger_source: TriggerSource
    status: ExecutionStatus
    status_reason: ReasonCode | None
    error: str | None
    started_at: int
    completed_at: int
    redrive_of: str | None


@define(eq=False)
class CallbackView:
    """
    The message to a `callbackUrl`. `type` is the kind of the execution's last event,
    `timestamp` its end in ISO 8601. CB-2.
    """

    type: EventKind
    timestamp: str
    data: EndedExecutionView


@define(eq=False)
class DayView:
    date: str
    accepted: int
    rejected: int


@define(eq=False)
class StatsView:
    """
    How often a webhook was triggered. `rejected` maps a status to its number; `ignored`: by `when`.
    """

    webhook_id: str
    total: int
    accepted: int
    ignored: int
    rejected: Mapping[str, int]
    last_triggered_at: int | None
    daily: Sequence[DayView]


def trigger_view(
    webhook_id: str, execution_id: str, workflow_id: str, started_at: EpochMs
) -> TriggerView:
    """An accepted trigger."""
    return TriggerView(execution_id, webhook_id, workflow_id, ExecutionStatus.PENDING, started_at)


def webhook_view(
    webhook: Webhook, trigger_url: str, last_triggered_at: int | None, secret: str | None = None
) -> WebhookView:
    """A webhook; *secret* is set only in the response that creates it."""
    return WebhookView(
        id=webhook.id,
        webhook_id=webhook.id,
        workflow_id=webhook.workflow_id,
        name=webhook.name,
        api_key_id=webhook.api_key_id,
        variable_mapping=webhook.variable_mapping,
        status=webhook.status,
        disabled_reason=webhook.disabled_reason,
        auth_mode=webhook.auth_mode,
        trigger_url=trigger_url,
        created_at=webhook.created_at,
        updated_at=webhook.updated_at,
        last_triggered_at=last_triggered_at,
        scheme=webhook.scheme if webhook.auth_mode is AuthMode.SIGNATURE else None,
        old_secret_until=webhook.old_secret_until,
        when=webhook.when,
        headers=webhook.headers,
        secret_key=secret,
    )


def delivery_view(delivery: Delivery) -> DeliveryView:
    """A delivery without its payload."""
    return DeliveryView(
        id=delivery.id,
        webhook_id=delivery.webhook_id,
        at=delivery.at,
        kind=delivery.kind,
        status=delivery.status,
        authenticated=delivery.authenticated,
        reason=delivery.reason,
        execution_id=delivery.execution_id,
        replay_of=delivery.replay_of,
        ignored=delivery.ignored,
        can_replay=may_be_replayed(delivery),
    )


def stats_view(webhook_id: str, stats: Stats) -> StatsView:
    """The statistics of a webhook."""
    daily = [DayView(day.date, day.accepted, day.rejected) for day in stats.daily]
    return StatsView(
        webhook_id=webhook_id,
        total=stats.total,
        accepted=stats.accepted,
        ignored=stats.ignored,
        rejected=stats.rejected,
        last_triggered_at=stats.last_triggered_at,
        daily=daily,
    )
