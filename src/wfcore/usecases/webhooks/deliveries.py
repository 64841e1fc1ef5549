"""The last deliveries of a webhook: recorded, listed, replayed, tested."""

import json
from collections.abc import Mapping

from attrs import evolve

from wfcore.errors import Conflict, NotFound
from wfcore.model.access import Principal, Unrestricted
from wfcore.model.json import JsonObject, as_json
from wfcore.model.page import Page, PageRequest
from wfcore.model.webhook import IGNORED, AuthMode, Delivery, DeliveryKind, Webhook
from wfcore.model.workflow import Workflow
from wfcore.ports.store import Unit
from wfcore.rules.execution.start import NOTHING
from wfcore.rules.numbers import number_problems
from wfcore.rules.webhooks.conditions import header_variables, is_wanted
from wfcore.rules.webhooks.scheme import Headers, sender_headers
from wfcore.rules.webhooks.webhook import (
    MAX_REASON,
    keeps_payload,
    may_be_replayed,
    require_triggerable,
    utc_date,
)
from wfcore.usecases.accounts.authenticate import Credentials
from wfcore.usecases.audit.auditing import UNKNOWN, Origin, note
from wfcore.usecases.executions.starting import StartReceipt
from wfcore.usecases.services import Services
from wfcore.usecases.unit_of_work import definition_of, retried
from wfcore.usecases.webhooks.senders import admit_sender, identify_sender, owner_as_sender
from wfcore.usecases.webhooks.triggering import GONE, trigger_webhook
from wfcore.usecases.webhooks.webhooks import read_webhook

UNWANTED = "`when` is not true for it, so nothing was started"
SAMPLE: JsonObject = {"test": True}
"""The payload of a test delivery by default."""


async def note_refused_delivery(
    services: Services,
    webhook: Webhook,
    status: int,
    reason: str,
    authenticated: bool,
    payload: JsonObject | None,
    size: int,
    from_headers: JsonObject = NOTHING,
) -> None:
    """
    Count a refused delivery and record the reason for the webhook's owner. WH-9, WH-20, WH-21.

    *payload*: the parsed body of *size* bytes, or None for an unreadable body; stored, with
    *from_headers*, only if the credentials were valid and no number in the payload would change
    when stored. NU-1.
    """
    delivery = _delivery(services, webhook, status, reason, authenticated=authenticated)
    await _note(services, webhook, delivery, payload, from_headers, size)


async def note_ignored_delivery(
    services: Services,
    webhook: Webhook,
    payload: JsonObject,
    from_headers: JsonObject,
    size: int,
    kind: DeliveryKind = DeliveryKind.SENDER,
) -> None:
    """
    Count and record a delivery that `when` ignores. *payload* and *from_headers* are stored as for
    a refused delivery. WH-24.
    """
    delivery = _delivery(services, webhook, IGNORED, UNWANTED, kind=kind, ignored=True)
    await _note(services, webhook, delivery, payload, from_headers, size)


def ignored_reply(webhook_id: str) -> JsonObject:
    """The answer to a delivery that `when` ignores. WH-24."""
    nothing = {"executionId": None, "status": None}
    return {"ok": True, "ignored": True, "webhookId": webhook_id, **nothing}


def _delivery(
    services: Services,
    webhook: Webhook,
    status: int,
    reason: str,
    *,
    kind: DeliveryKind = DeliveryKind.SENDER,
    authenticated: bool = True,
    ignored: bool = False,
) -> Delivery:
    now = services.clock.now()
    return Delivery(
        id=services.ids.new("dlv", now),
        webhook_id=webhook.id,
        at=now,
        kind=kind,
        status=status,
        authenticated=authenticated,
        reason=reason[:MAX_REASON],
        ignored=ignored,
    )


@retried
async def _note(
    services: Services,
    webhook: Webhook,
    delivery: Delivery,
    payload: JsonObject | None,
    from_headers: JsonObject,
    size: int,
) -> None:
    async with services.store.unit() as unit:
        changed = payload is not None and any(number_problems(payload))
        if delivery.authenticated and not changed and await _keeps(unit, webhook, size):
            delivery = evolve(delivery, payload=payload, from_headers=from_headers)
        unit.tally(webhook.id, utc_date(delivery.at), delivery.status, delivery.at)
        unit.deliver(delivery)
        await unit.commit()


async def _keeps(unit: Unit, webhook: Webhook, size: int) -> bool:
    workflow = await unit.get(Workflow, webhook.workflow_id)
    if workflow is None:
        return False
    return keeps_payload(await definition_of(unit, workflow.id, workflow.revision), size)


async def list_deliveries(
    services: Services, who: Principal | Unrestricted, webhook_id: str, page: PageRequest
) -> Page[Delivery]:
    """
    The last deliveries of a webhook of *who* (an operator: of anybody), newest first. WH-20.
    """
    webhook = await read_webhook(services, who, webhook_id)
    async with services.store.view() as view:
        found = await view.webhooks.deliveries(webhook.id)
    rows = tuple(found[page.offset : page.offset + page.size])
    return Page(rows, len(found), page.page, page.size)


async def replay_delivery(
    services: Services,
    who: Principal | Unrestricted,
    webhook_id: str,
    delivery_id: str,
    origin: Origin = UNKNOWN,
) -> StartReceipt:
    """
    A new execution from the content of a delivery, by the present mapping and definition, whatever
    `when` says of it. WH-22.

    Raises `NotFound`, `Conflict` (disabled, or the content was not stored), `InvalidInput`,
    `AccountBlocked`, `LimitReached`.
    """
    webhook = await read_webhook(services, who, webhook_id)
    await owner_as_sender(services, webhook)
    require_triggerable(webhook)
    async with services.store.view() as view:
        found = await view.webhooks.deliveries(webhook.id)
    first = next((one for one in found if one.id == delivery_id), None)
    if first is None:
        raise NotFound("Delivery")
    if not may_be_replayed(first):
        raise Conflict(GONE)
    await _note_deed(services, who, webhook, "webhook.replay", origin)
    return await trigger_webhook(
        services,
        webhook.id,
        first.payload,
        kind=DeliveryKind.REPLAY,
        replay_of=first,
        from_headers=first.from_headers,
    )


async def deliver_test(
    services: Services,
    who: Principal | Unrestricted,
    webhook_id: str,
    payload: Mapping[str, object] | None = None,
    origin: Origin = UNKNOWN,
) -> StartReceipt | None:
    """
    Send a sample delivery, signed like the sender's deliveries, through every check of a real
    delivery. WH-23.

    The secret of a key is not known here, so with an API key the owner takes the sender's place.
    Returns None if `when` ignores the sample. Raises the errors of a delivery.
    """
    webhook = await read_webhook(services, who, webhook_id)
    sample = SAMPLE if payload is None else as_json(payload)
    headers: Headers = {}
    if webhook.auth_mode is AuthMode.SIGNATURE:
        now = services.clock.now()
        body = json.dumps(sample).encode()
        id = services.ids.new("test", now)
        signed = sender_headers(webhook.scheme, webhook.secret_key or "", id, now, body)
        headers = {name.lower(): (value,) for name, value in signed.items()}
        sender = await identify_sender(services, webhook, Credentials(), headers, body, origin)
    else:
        sender = await owner_as_sender(services, webhook)
    await admit_sender(services, webhook, sender)
    variables, kind = header_variables(webhook, headers), DeliveryKind.TEST
    wanted = is_wanted(webhook, sample, headers, services.templates.render)
    await _note_deed(services, who, webhook, "webhook.test", origin)
    if not wanted:
        size = len(json.dumps(sample))
        await note_ignored_delivery(services, webhook, sample, variables, size, kind)
        return None
    return await trigger_webhook(services, webhook.id, sample, kind=kind, from_headers=variables)


@retried
async def _note_deed(
    services: Services, who: Principal | Unrestricted, webhook: Webhook, event: str, origin: Origin
) -> None:
    async with services.store.unit() as unit:
        note(services, unit, event, who, webhook.id, origin)
        await unit.commit()
