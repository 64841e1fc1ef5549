"""Starting an execution through a webhook's URL. Spec: webhook trigger; contract §11."""

from starlette.responses import JSONResponse, Response

from adapters_http.ask import Ask
from adapters_http.handlers.workflows import REPLAYED
from adapters_http.payloads import is_form, once, scheme_of
from wfcore.model.webhook import Scheme
from wfcore.rules.webhook_scheme import slack_challenge
from wfcore.usecases.starting import trigger_webhook
from wfcore.wire.shapes import TriggerView
from wfcore.wire.webhooks import trigger_view


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
