"""Webhooks: starting an execution by one, and managing them from the console. Contract §6, §11."""

from starlette.responses import JSONResponse, Response

from adapters_http.body import is_form, once, scheme_of
from adapters_http.handlers.workflows import REPLAYED
from adapters_http.params import page
from adapters_http.request import Ask
from wfcore.errors import InvalidInput
from wfcore.model.webhook import Scheme, Webhook
from wfcore.rules.limits import WORKFLOW_PAGE
from wfcore.rules.webhooks.scheme import slack_challenge
from wfcore.usecases.executions.starting import trigger_webhook
from wfcore.usecases.webhooks import deliveries, webhooks
from wfcore.usecases.webhooks.webhooks import Change, NewWebhook, Unchanged
from wfcore.wire.converter import sent
from wfcore.wire.shapes import TriggerView
from wfcore.wire.views import WEBHOOKS, shown_of
from wfcore.wire.webhooks import (
    DeliveryPage,
    StatsView,
    WebhookDeleted,
    WebhookPage,
    WebhookView,
    delivery_view,
    stats_view,
    trigger_view,
    webhook_view,
)


async def create(ask: Ask) -> WebhookView:
    """A new webhook, bound to one of the caller's keys, or signed."""
    body = ask.body
    if (body.api_key_id is None) == (body.scheme is None):
        raise InvalidInput("apiKeyId", "give either one of your keys, or a scheme")
    if body.scheme is None and body.secret is not None:
        raise InvalidInput("secret", "needs a scheme instead of apiKeyId")
    new = NewWebhook(
        body.workflow_id,
        body.name,
        body.api_key_id,
        body.variable_mapping,
        body.secret,
        body.scheme or Scheme.WFCORE,
        makes_secret=body.scheme is not None,
    )
    made = await webhooks.create_webhook(ask.services, ask.who, new, ask.origin)
    return await _view(ask, made, made.secret_key)


async def list_all(ask: Ask) -> WebhookPage:
    """The caller's webhooks, newest first."""
    wanted = page(ask, WORKFLOW_PAGE, WEBHOOKS)
    found = await webhooks.list_webhooks(ask.services, ask.who, wanted)
    rows = [await _view(ask, one) for one in found.rows]
    return WebhookPage(webhooks=rows, **shown_of(found, WEBHOOKS))


async def update(ask: Ask) -> WebhookView:
    """Change the fields that were sent."""
    change = Change(**sent(ask.body, ask.json))
    id = ask.params["id"]
    changed = await webhooks.update_webhook(ask.services, ask.who, id, change, ask.origin)
    secret = None if isinstance(change.secret, Unchanged) else changed.secret_key
    return await _view(ask, changed, secret)


async def delete(ask: Ask) -> WebhookDeleted:
    """Delete a webhook with its statistics."""
    id = ask.params["id"]
    await webhooks.delete_webhook(ask.services, ask.who, id, ask.origin)
    return WebhookDeleted(True, id)


async def stats(ask: Ask) -> StatsView:
    """How often it was triggered and refused."""
    id = ask.params["id"]
    return stats_view(id, await webhooks.webhook_stats(ask.services, ask.who, id))


async def list_deliveries(ask: Ask) -> DeliveryPage:
    """What came in lately, and why some of it was refused; newest first."""
    wanted = page(ask, WORKFLOW_PAGE)
    found = await deliveries.list_deliveries(ask.services, ask.who, ask.params["id"], wanted)
    rows = [delivery_view(one) for one in found.rows]
    return DeliveryPage(rows, found.total or 0, found.page, found.size)


async def replay(ask: Ask) -> TriggerView:
    """Start anew what a delivery carried."""
    id, delivery = ask.params["id"], ask.params["deliveryId"]
    started = await deliveries.replay_delivery(ask.services, ask.who, id, delivery, ask.origin)
    return trigger_view(id, started.execution_id, started.workflow_id, started.started_at)


async def test(ask: Ask) -> TriggerView:
    """Deliver a signed sample through every check."""
    id, payload = ask.params["id"], ask.body.payload
    started = await deliveries.deliver_test(ask.services, ask.who, id, payload, ask.origin)
    return trigger_view(id, started.execution_id, started.workflow_id, started.started_at)


async def _view(ask: Ask, webhook: Webhook, secret: str | None = None) -> WebhookView:
    last = await webhooks.last_triggered(ask.services, webhook.id)
    url = f"{ask.base_url}/api/webhooks/{webhook.id}/trigger"
    return webhook_view(webhook, url, last, secret)


async def trigger(ask: Ask) -> TriggerView | Response:
    """
    Accept an execution with variables from the payload.

    Slack's question whether the URL is ours is answered and starts nothing; its commands and
    interactions get an empty 200, as anything else is shown to whoever typed them. SG-8.
    """
    webhook = ask.webhook
    assert webhook is not None
    challenge = slack_challenge(scheme_of(webhook), ask.json)
    if challenge is not None:
        return JSONResponse({"challenge": challenge})
    started = await trigger_webhook(
        ask.services, webhook.id, ask.json, idempotency=once(ask, webhook)
    )
    if started.replayed:
        ask.headers.append(REPLAYED)
    if scheme_of(webhook) is Scheme.SLACK and is_form(ask, webhook):
        return Response(status_code=200)
    return trigger_view(webhook.id, started.execution_id, started.workflow_id, started.started_at)
