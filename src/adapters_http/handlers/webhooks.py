"""Managing webhooks from the console. Spec: webhook management; contract §6."""

from adapters_http.ask import Ask
from adapters_http.asked import page
from wfcore.model.webhook import Webhook
from wfcore.rules.limits import WORKFLOW_PAGE
from wfcore.usecases import webhooks
from wfcore.usecases.webhooks import Change, NewWebhook
from wfcore.wire.converter import sent
from wfcore.wire.shapes import StatsView, WebhookDeleted, WebhookPage, WebhookView
from wfcore.wire.views import stats_view, webhook_view


async def create(ask: Ask) -> WebhookView:
    """A new webhook, bound to one of the caller's keys."""
    body = ask.body
    new = NewWebhook(body.workflow_id, body.name, body.api_key_id, body.variable_mapping)
    return await _view(ask, await webhooks.create_webhook(ask.services, ask.who, new, ask.origin))


async def list_all(ask: Ask) -> WebhookPage:
    """The caller's webhooks, newest first."""
    found = await webhooks.list_webhooks(ask.services, ask.who, page(ask, WORKFLOW_PAGE))
    rows = [await _view(ask, one) for one in found.rows]
    return WebhookPage(rows, found.total, found.page, found.size)


async def update(ask: Ask) -> WebhookView:
    """Change the fields that were sent."""
    change = Change(**sent(ask.body, ask.json))
    id = ask.params["id"]
    changed = await webhooks.update_webhook(ask.services, ask.who, id, change, ask.origin)
    return await _view(ask, changed)


async def delete(ask: Ask) -> WebhookDeleted:
    """Delete a webhook with its statistics."""
    id = ask.params["id"]
    await webhooks.delete_webhook(ask.services, ask.who, id, ask.origin)
    return WebhookDeleted(True, id)


async def stats(ask: Ask) -> StatsView:
    """How often it was triggered and refused."""
    id = ask.params["id"]
    return stats_view(id, await webhooks.webhook_stats(ask.services, ask.who, id))


async def _view(ask: Ask, webhook: Webhook) -> WebhookView:
    last = await webhooks.last_triggered(ask.services, webhook.id)
    return webhook_view(webhook, f"{ask.base_url}/api/webhooks/{webhook.id}/trigger", last)
