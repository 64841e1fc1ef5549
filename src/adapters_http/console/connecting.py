"""
Connecting a webhook: a form for a new one, its tests and replays, a new secret, and its end.

The text of a secret is in one response and in no other place.
"""

from collections.abc import Sequence

from starlette.responses import Response

from adapters_http.console.forms import WebhookForm
from adapters_http.console.language import _
from adapters_http.console.operate import operate_page
from adapters_http.console.paths import see_other
from adapters_http.console.webhooks import hook_page
from adapters_http.handlers.operating import own_keys
from adapters_http.request import Request
from wfcore.errors import Conflict, Forbidden, InvalidInput, LimitReached
from wfcore.model.access import ApiKey, Scope
from wfcore.model.webhook import Scheme, Webhook
from wfcore.usecases.executions.browsing import workflow_names
from wfcore.usecases.webhooks import deliveries, webhooks
from wfcore.usecases.webhooks.webhooks import NewWebhook, WebhookChange, read_webhook


async def show(request: Request) -> Response:
    """The form, for the scheme or the workflow in the address."""
    chosen = WebhookForm("", request.query("workflow") or "", request.query("scheme") or "")
    return await _form(request, chosen)


async def _form(request: Request, form: WebhookForm, problem: str | None = None) -> Response:
    return operate_page(
        request,
        "new_webhook",
        400 if problem else 200,
        form=form,
        workflows=await workflow_names(request.services, request.who),
        schemes=list(Scheme),
        keys=await _usable_keys(request),
        problem=problem,
    )


async def _usable_keys(request: Request) -> Sequence[ApiKey]:
    """The account's keys that may trigger a webhook now."""
    now = request.services.clock.now()
    return [
        one
        for one in await own_keys(request)
        if Scope.WEBHOOK_TRIGGER in one.scopes
        and one.revoked_at is None
        and (one.expires_at is None or one.expires_at > now)
    ]


async def create(request: Request) -> Response:
    """Create a webhook. The response shows its address and its secret."""
    form = request.body
    assert isinstance(form, WebhookForm)
    signed = form.proof in set(Scheme)
    new = NewWebhook(
        form.workflow,
        form.name,
        None if signed else form.proof,
        secret=form.secret.strip() or None if signed else None,
        scheme=Scheme(form.proof) if signed else Scheme.WFCORE,
        makes_secret=signed,
    )
    try:
        made = await webhooks.create_webhook(request.services, request.who, new, request.origin)
    except InvalidInput as wrong:
        return await _form(request, form, str(wrong))
    except (Conflict, Forbidden, LimitReached) as refusal:
        return await _form(request, form, refusal.message)
    if not signed:
        return see_other(request, f"/operate/webhooks/{made.id}")
    return _secret_page(request, made, new=True)


def _secret_page(request: Request, hook: Webhook, *, new: bool) -> Response:
    url = f"{request.base_url}/api/webhooks/{hook.id}/trigger"
    return operate_page(request, "hook_secret", hook=hook, new=new, url=url)


async def rotate(request: Request) -> Response:
    """Give a webhook a new secret; the old one stays valid for a day. WH-19."""
    id, change = request.params["id"], WebhookChange(secret=None)
    try:
        hook = await webhooks.update_webhook(
            request.services, request.who, id, change, request.origin
        )
    except (Conflict, InvalidInput) as refusal:
        return await hook_page(request, str(refusal))
    return _secret_page(request, hook, new=False)


async def send_test(request: Request) -> Response:
    """Send a sample delivery through every check; the list of deliveries shows it. WH-23."""
    id = request.params["id"]
    try:
        await deliveries.deliver_test(request.services, request.who, id, None, request.origin)
    except (Conflict, InvalidInput, LimitReached) as refusal:
        return await hook_page(request, str(refusal))
    return see_other(request, f"/operate/webhooks/{id}")


async def replay(request: Request) -> Response:
    """Start an execution from the content of a delivery, and redirect to it. WH-22."""
    id, delivery = request.params["id"], request.params["delivery"]
    try:
        started = await deliveries.replay_delivery(
            request.services, request.who, id, delivery, request.origin
        )
    except (Conflict, InvalidInput, LimitReached) as refusal:
        return await hook_page(request, str(refusal))
    return see_other(request, f"/executions/{started.execution_id}")


async def delete(request: Request) -> Response:
    """Delete a webhook, if its name was typed."""
    hook = await read_webhook(request.services, request.who, request.params["id"])
    if request.body.name.strip() != hook.name:
        return await hook_page(request, _("The name does not match; nothing was deleted."))
    await webhooks.delete_webhook(request.services, request.who, hook.id, request.origin)
    return see_other(request, "/operate/webhooks")
