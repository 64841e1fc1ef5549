"""Webhooks with their last deliveries; a webhook can be disabled and enabled."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from starlette.responses import Response

from adapters_http.console.forms import ConditionsForm
from adapters_http.console.hints import followed
from adapters_http.console.operate import SIZE, operate_page, reader_of
from adapters_http.console.paths import see_other
from adapters_http.console.positions import behind, cursor_after
from adapters_http.request import Request
from wfcore.errors import Conflict, InvalidInput, LimitReached, NotFound, Unreadable
from wfcore.model.access import OPERATOR
from wfcore.model.page import NEWEST, PageCursor, PageRequest
from wfcore.model.webhook import WebhookStatus
from wfcore.rules.webhooks.webhook import may_be_replayed
from wfcore.usecases.webhooks import deliveries, webhooks
from wfcore.usecases.webhooks.webhooks import WebhookChange
from wfcore.usecases.workflows.workflows import read_workflow
from wfcore.wire.common import WEBHOOKS

DELIVERIES = PageRequest(1, 100)


async def show(request: Request) -> Response:
    """The list of webhooks, with their statistics of 14 days."""
    rows, next_position = await _found(request)
    later, next = bool(request.query("after")), cursor_after(WEBHOOKS, next_position)
    return operate_page(
        request, "webhooks", rows=rows, next=next, later=later, follows=_in_short(rows)
    )


async def _found(request: Request) -> tuple[Sequence[Any], PageCursor | None]:
    """A page of webhooks, each with its statistics and workflow, and the next position."""
    reader, services = reader_of(request), request.services
    who = OPERATOR if reader.operator else reader
    found = await webhooks.list_webhooks(services, who, behind(request, WEBHOOKS, SIZE, NEWEST))
    stats = [await webhooks.webhook_stats(services, who, one.id) for one in found.rows]
    names = [await workflow_name(request, one.workflow_id) for one in found.rows]
    return list(zip(found.rows, stats, names, strict=True)), found.next


def _in_short(rows: Sequence[Any]) -> object:
    return [(hook.id, hook.version, stats) for hook, stats, _ in rows]


async def _snapshot(request: Request) -> object:
    return _in_short((await _found(request))[0])


live = followed(_snapshot)


async def show_one(request: Request) -> Response:
    """One webhook with its last deliveries."""
    return await hook_page(request)


async def hook_page(
    request: Request,
    problem: str | None = None,
    *,
    typed: ConditionsForm | None = None,
    wrong: str | None = None,
) -> Response:
    """The page; *typed* with the reason *wrong*: conditions that were not accepted."""
    services, who, id = request.services, request.who, request.params["id"]
    hook = await webhooks.read_webhook(services, who, id)
    return operate_page(
        request,
        "webhook",
        409 if problem else 400 if wrong else 200,
        hook=hook,
        conditions=typed or ConditionsForm(hook.when or "", _lines_of(hook.headers)),
        wrong=wrong,
        replayable=may_be_replayed,
        stats=await webhooks.webhook_stats(services, who, id),
        deliveries=(await deliveries.list_deliveries(services, who, id, DELIVERIES)).rows,
        workflow=await workflow_name(request, hook.workflow_id),
        url=f"{request.base_url}/api/webhooks/{id}/trigger",
        problem=problem,
    )


async def workflow_name(request: Request, id: str) -> str | None:
    """The name of a workflow; None if the workflow is deleted, or the reader may not see it."""
    with suppress(NotFound, Unreadable):
        return (await read_workflow(request.services, request.who, id)).workflow.name
    return None


async def switch(request: Request) -> Response:
    """Disable or enable a webhook."""
    id = request.params["id"]
    try:
        change = WebhookChange(status=WebhookStatus(request.body.status))
    except ValueError:
        raise InvalidInput("status", f"must be one of {', '.join(WebhookStatus)}") from None
    try:
        await webhooks.update_webhook(request.services, request.who, id, change, request.origin)
    except (Conflict, LimitReached) as refusal:
        return await hook_page(request, refusal.message)
    return see_other(request, f"/operate/webhooks/{id}")


async def condition(request: Request) -> Response:
    """Change which deliveries start anything, and which headers become variables. WH-24, WH-25."""
    id, form = request.params["id"], request.body
    assert isinstance(form, ConditionsForm)
    try:
        change = WebhookChange(when=form.when, headers=_headers_in(form.headers))
        await webhooks.update_webhook(request.services, request.who, id, change, request.origin)
    except InvalidInput as wrong:
        return await hook_page(request, typed=form, wrong=str(wrong))
    return see_other(request, f"/operate/webhooks/{id}")


def _lines_of(headers: Mapping[str, str] | None) -> str:
    return "".join(f"{name}: {header}\n" for name, header in (headers or {}).items())


def _headers_in(text: str) -> Mapping[str, str]:
    """The headers in the lines of the form. Raises `InvalidInput`."""
    found: dict[str, str] = {}
    for line in filter(None, map(str.strip, text.splitlines())):
        name, colon, header = line.partition(":")
        if not colon:
            raise InvalidInput("headers", f"{line[:80]!r} must be like variable: Header-Name")
        found[name.strip()] = header.strip()
    return found
