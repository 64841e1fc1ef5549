"""Starting an execution through a webhook's URL. Spec: webhook trigger."""

from adapters_http.ask import Ask
from adapters_http.asked import idempotency
from adapters_http.handlers.workflows import REPLAYED
from wfcore.model.execution import ExecutionStatus
from wfcore.usecases.starting import trigger_webhook
from wfcore.wire.shapes import TriggerView


async def trigger(ask: Ask) -> TriggerView:
    """Accept an execution with variables from the payload."""
    id = ask.params["id"]
    started = await trigger_webhook(ask.services, id, ask.json, idempotency=idempotency(ask))
    if started.replayed:
        ask.headers.append(REPLAYED)
    return TriggerView(
        started.execution_id, id, started.workflow_id, ExecutionStatus.PENDING, started.started_at
    )
