"""Webhooks: starting an execution by one, and managing them from the console."""

from starlette.responses import JSONResponse, Response

from adapters_http.handlers.workflows import REPLAYED
from adapters_http.params import page
from adapters_http.request import Request
from wfcore.errors import InvalidInput
from wfcore.model.webhook import Scheme, Webhook
from wfcore.rules.limits import WORKFLOW_PAGE
from wfcore.rules.webhooks.payload import is_form, scheme_of
from wfcore.usecases.webhooks import deliveries, webhooks
from wfcore.usecases.webhooks.triggering import trigger_webhook
from wfcore.usecases.webhooks.webhooks import NewWebhook, Unchanged, WebhookChange
from wfcore.wire.common import WEBHOOKS, shown_of
from wfcore.wire.converter import sent
from wfcore.wire.webhooks import (
    DeliveryPage,
    IgnoredView,
    StatsView,
    TriggerView,
    WebhookDeleted,
    WebhookPage,
    WebhookView,
    delivery_view,
    stats_view,
    trigger_view,
    webhook_view,
)


async def create(request: Request) -> WebhookView:
    """A new webhook, bound to one of the caller's keys, or signed."""
    body = request.body
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
        when=body.when,
        headers=body.headers,
    )
    made = await webhooks.create_webhook(request.services, request.who, new, request.origin)
    return await _view(request, made, made.secret_key)


async def list_all(request: Request) -> WebhookPage:
    """The caller's webhooks, newest first."""
    wanted = page(request, WORKFLOW_PAGE, WEBHOOKS)
    found = await webhooks.list_webhooks(request.services, request.who, wanted)
    rows = [await _view(request, one) for one in found.rows]
    return WebhookPage(webhooks=rows, **shown_of(found, WEBHOOKS))


async def update(request: Request) -> WebhookView:
    """Change the fields that were sent."""
    change = WebhookChange(**sent(request.body, request.json))
    id = request.params["id"]
    changed = await webhooks.update_webhook(
        request.services, request.who, id, change, request.origin
    )
    secret = None if isinstance(change.secret, Unchanged) else changed.secret_key
    return await _view(request, changed, secret)


async def delete(request: Request) -> WebhookDeleted:
    """Delete a webhook with its statistics."""
    id = request.params["id"]
    await webhooks.delete_webhook(request.services, request.who, id, request.origin)
    return WebhookDeleted(True, id)


async def stats(request: Request) -> StatsView:
    """How often it was triggered and refused."""
    id = request.params["id"]
    return stats_view(id, await webhooks.webhook_stats(request.services, request.who, id))


async def list_deliveries(request: Request) -> DeliveryPage:
    """What came in lately, and why some of it was refused; newest first."""
    wanted = page(request, WORKFLOW_PAGE)
    found = await deliveries.list_deliveries(
        request.services, request.who, request.params["id"], wanted
    )
    rows = [delivery_view(one) for one in found.rows]
    return DeliveryPage(rows, found.total or 0, found.page, found.size)


async def replay(request: Request) -> TriggerView:
    """Start again from the content of a delivery."""
    id, delivery = request.params["id"], request.params["deliveryId"]
    started = await deliveries.replay_delivery(
        request.services, request.who, id, delivery, request.origin
    )
    return trigger_view(id, started.execution_id, started.workflow_id, started.started_at)


async def test(request: Request) -> TriggerView | IgnoredView:
    """Deliver a signed sample through every check."""
    id, payload = request.params["id"], request.body.payload
    started = await deliveries.deliver_test(
        request.services, request.who, id, payload, request.origin
    )
    if started is None:
        return IgnoredView(webhook_id=id)
    return trigger_view(id, started.execution_id, started.workflow_id, started.started_at)


async def _view(request: Request, webhook: Webhook, secret: str | None = None) -> WebhookView:
    last = await webhooks.last_triggered(request.services, webhook.id)
    url = f"{request.base_url}/api/webhooks/{webhook.id}/trigger"
    return webhook_view(webhook, url, last, secret)


async def trigger(request: Request) -> TriggerView | Response:
    """
    Accept an execution with variables from the payload.

    Slack's question whether the URL is ours, GitHub's ping, and deliveries that the webhook's
    `when` ignores are answered with 200 and start nothing. Slack's commands and interactions get an
    empty 200, because anything else would be shown to whoever typed them. SG-8, SG-9.
    """
    delivery = request.delivery
    assert delivery is not None
    webhook = delivery.webhook
    from_slack = scheme_of(webhook) is Scheme.SLACK and is_form(request.header(b"content-type"))
    if delivery.reply is not None:
        return Response(status_code=200) if from_slack else JSONResponse(delivery.reply)
    started = await trigger_webhook(
        request.services,
        webhook.id,
        delivery.payload,
        idempotency=delivery.idempotency,
        from_headers=delivery.from_headers,
        origin=request.origin,
    )
    if started.replayed:
        request.headers.append(REPLAYED)
    if from_slack:
        return Response(status_code=200)
    return trigger_view(webhook.id, started.execution_id, started.workflow_id, started.started_at)
