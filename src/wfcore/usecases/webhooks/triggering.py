"""Starting an execution for an admitted delivery of a webhook. WH-20, WH-22."""

from collections.abc import Mapping

from attrs import evolve

from wfcore.errors import Conflict, NotFound
from wfcore.model.execution import TriggerSource
from wfcore.model.json import JsonObject, as_json
from wfcore.model.webhook import ACCEPTED, Delivery, DeliveryKind, Webhook
from wfcore.model.workflow import Workflow
from wfcore.ports.store import Unit
from wfcore.rules.execution.start import NOTHING, Start
from wfcore.rules.variables import map_payload
from wfcore.rules.webhooks.webhook import require_triggerable, utc_date
from wfcore.usecases.audit.auditing import UNKNOWN, Origin
from wfcore.usecases.executions.idempotency import Idempotency, IdempotencyRecord
from wfcore.usecases.executions.starting import StartReceipt, accept_start
from wfcore.usecases.reading import execution_of
from wfcore.usecases.services import Services
from wfcore.usecases.unit_of_work import (
    retried,
)

REPEATED = "repeats a delivery: the first answer was given again, nothing was started"
GONE = "What the delivery carried is not stored, so it cannot be replayed"


@retried
async def trigger_webhook(
    services: Services,
    webhook_id: str,
    payload: Mapping[str, object] | None,
    *,
    idempotency: Idempotency | str | None = None,
    kind: DeliveryKind = DeliveryKind.SENDER,
    replay_of: Delivery | None = None,
    from_headers: JsonObject = NOTHING,
    origin: Origin = UNKNOWN,
) -> StartReceipt:
    """
    Accept an execution for an admitted delivery. The execution belongs to the webhook's owner.
    WH-20.

    *replay_of*: the delivery that this delivery repeats. If the repeated delivery started an
    execution, that execution's variables are used and *payload* is ignored. WH-22. *from_headers*:
    further variables, of the same delivery. Raises `NotFound`, `Conflict` (disabled, or the
    idempotency key with another body), `InvalidInput` (the payload violates a declaration),
    `LimitReached`.
    """
    now = services.store.now()
    body = None if payload is None else as_json(payload)
    async with services.store.unit() as unit:
        webhook = await unit.get(Webhook, webhook_id)
        workflow = await unit.get(Workflow, webhook.workflow_id) if webhook else None
        if webhook is None or workflow is None:
            raise NotFound("Webhook")
        require_triggerable(webhook)
        scope, request = f"webhook:{webhook_id}", body or {}
        record = await IdempotencyRecord.load(unit, scope, idempotency, request)
        previous = record.previous_answer(now) if record else None
        wall = services.clock.now()
        delivery = Delivery(
            id=services.ids.new("dlv", wall),
            webhook_id=webhook_id,
            at=wall,
            kind=kind,
            status=ACCEPTED,
            authenticated=True,
            replay_of=replay_of.id if replay_of else None,
        )
        if previous is not None:
            again = evolve(delivery, execution_id=previous.execution_id, reason=REPEATED)
            unit.deliver(again)
            await unit.commit()
            return StartReceipt(
                previous.execution_id, workflow.id, previous.created_at, replayed=True
            )
        unit.tally(webhook_id, utc_date(wall), ACCEPTED, wall)
        start = Start(
            owner_id=webhook.owner_id,
            trigger_source=TriggerSource.WEBHOOK,
            variables=await _inputs(unit, webhook, body, from_headers, replay_of),
            key_id=webhook.api_key_id,
            webhook_id=webhook.id,
            request_id=origin.request_id,
            trace=origin.trace,
        )
        return await accept_start(services, unit, workflow, start, now, record, delivery=delivery)


async def _inputs(
    unit: Unit,
    webhook: Webhook,
    payload: JsonObject | None,
    from_headers: JsonObject,
    replay_of: Delivery | None,
) -> JsonObject:
    """The variables of a delivery, or of the delivery that it replays. Raises `Conflict`. WH-22."""
    if replay_of is not None and replay_of.execution_id is not None:
        first = await execution_of(unit, replay_of.execution_id)
        if first is None:
            raise Conflict(GONE)
        return first.variables
    if payload is None:
        raise Conflict(GONE)
    return {**map_payload(payload, webhook.variable_mapping), **from_headers}
