"""Operations on webhooks. Only operators make webhooks without a key or a secret."""

from collections.abc import Mapping
from typing import Any

from wfcore.errors import InvalidInput
from wfcore.model.access import OPERATOR
from wfcore.model.json import JsonObject
from wfcore.model.page import PageRequest
from wfcore.model.webhook import Scheme, Webhook, WebhookStatus
from wfcore.usecases.accounts.keys import find_key
from wfcore.usecases.administration import lookup
from wfcore.usecases.administration.operator import (
    Answer,
    Operator,
    checked_size,
    listed,
    shown,
)
from wfcore.usecases.executions.starting import StartReceipt
from wfcore.usecases.services import Services
from wfcore.usecases.webhooks import deliveries, webhooks
from wfcore.usecases.webhooks.webhooks import NewWebhook, WebhookChange
from wfcore.wire.webhooks import delivery_view, trigger_view, webhook_view


async def create_webhook(
    at: Operator,
    workflow: str,
    name: str,
    key: str | None = None,
    secret: str | None = None,
    scheme: Scheme | None = None,
    open: bool = False,
    mapping: Mapping[str, str] | None = None,
    when: str | None = None,
    headers: Mapping[str, str] | None = None,
) -> Answer:
    """
    A new active webhook, with exactly one of `key` (an id; its account owns it), `secret` or
    `scheme`, and `open`. `when`: a template that chooses the deliveries that start anything;
    `headers`: names of headers by the variable that they set.
    """
    signed = secret is not None or scheme is not None
    if sum((key is not None, signed, open)) != 1:
        raise InvalidInput("key", "give exactly one of key, secret (or scheme) and open")
    found = (await lookup.workflow(at.services, workflow)).workflow
    owner = await _key_owner(at.services, key) if key else found.owner_id
    who = await lookup.owner_of(at.services, owner)
    new = NewWebhook(
        found.id,
        name,
        key,
        dict(mapping or {}) or None,
        secret,
        scheme or Scheme.WFCORE,
        makes_secret=signed,
        when=when,
        headers=dict(headers or {}) or None,
    )
    made = await webhooks.create_webhook(at.services, who, new, origin=at.origin)
    return _webhook(at, made, None, made.secret_key)


async def set_webhook(
    at: Operator,
    id: str,
    status: WebhookStatus | None = None,
    scheme: Scheme | None = None,
    secret: str | None = None,
    new_secret: bool = False,
    overlap: int | None = None,
    when: str | None = None,
    headers: Mapping[str, str] | None = None,
) -> Answer:
    """
    Change a webhook's status, scheme, secret, `when` or `headers`; `newSecret`: one is made and
    shown once; the one before stays good for `overlap` milliseconds. An empty `when`, or empty
    `headers`: there is none any more.
    """
    given = {
        "status": status,
        "scheme": scheme,
        "secret": secret,
        "overlap": overlap,
        "when": when,
        "headers": headers,
    }
    fields: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    if new_secret:
        fields["secret"] = None
    changed = await webhooks.update_webhook(
        at.services, OPERATOR, id, WebhookChange(**fields), origin=at.origin
    )
    last = await webhooks.last_triggered(at.services, id)
    return _webhook(at, changed, last, changed.secret_key if "secret" in fields else None)


async def list_webhooks(at: Operator, limit: int = 50) -> Answer:
    """All webhooks, newest first."""
    page = await webhooks.list_webhooks(at.services, OPERATOR, PageRequest(1, checked_size(limit)))
    names = await lookup.workflow_names(at.services, [one.workflow_id for one in page.rows])
    emails = await lookup.emails(at.services, [one.owner_id for one in page.rows])
    rows = []
    for one in page.rows:
        last = await webhooks.last_triggered(at.services, one.id)
        called = {
            "workflowName": names.get(one.workflow_id),
            "ownerEmail": emails.get(one.owner_id),
        }
        rows.append({**_webhook(at, one, last), **called})
    return {"items": rows, "total": page.total}


async def delete_webhook(at: Operator, id: str) -> Answer:
    """Delete a webhook with its statistics."""
    await webhooks.delete_webhook(at.services, OPERATOR, id, origin=at.origin)
    return {"ok": True, "webhookId": id}


async def list_deliveries(at: Operator, id: str, limit: int = 50) -> Answer:
    """The last deliveries to a webhook, and why some were refused."""
    page = PageRequest(1, checked_size(limit))
    found = await deliveries.list_deliveries(at.services, OPERATOR, id, page)
    return listed(map(delivery_view, found.rows), found.total)


async def replay_delivery(at: Operator, id: str, delivery: str) -> Answer:
    """Start a new execution from what a delivery carried."""
    return _triggered(
        id, await deliveries.replay_delivery(at.services, OPERATOR, id, delivery, at.origin)
    )


async def try_webhook(at: Operator, id: str, payload: JsonObject | None = None) -> Answer:
    """Deliver a sample, signed as the sender would, through every check."""
    started = await deliveries.deliver_test(at.services, OPERATOR, id, payload, at.origin)
    return deliveries.ignored_reply(id) if started is None else _triggered(id, started)


def _triggered(id: str, started: StartReceipt) -> Answer:
    return shown(trigger_view(id, started.execution_id, started.workflow_id, started.started_at))


def _webhook(
    at: Operator, webhook: Webhook, last_at: int | None, secret: str | None = None
) -> Answer:
    url = f"{at.base_url}/api/webhooks/{webhook.id}/trigger"
    return shown(webhook_view(webhook, url, last_at, secret))


async def _key_owner(services: Services, key_id: str) -> str:
    key = await find_key(services, key_id)
    if key is None:
        raise InvalidInput("key", f"no key has the id {key_id!r}; wfcore key list shows them")
    return key.account_id
