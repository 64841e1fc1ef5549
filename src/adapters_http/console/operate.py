"""
Pages for whoever operates: an owner sees what is the account's own, an operator everything.

What only operators have is not there for others (AC-7). Each page shows what the API answers, by
the same use cases; a secret that was just made is in one response and nowhere else.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from starlette.responses import Response

from adapters_http.console.hints import followed, versions
from adapters_http.console.rendering import after, behind, page, see_other
from adapters_http.console.words import N_, Said, _
from adapters_http.handlers.operating import (
    list_secrets,
    own_key,
    own_keys,
    read_health,
    refuse_more_than_own,
)
from adapters_http.request import Request
from wfcore.errors import (
    Conflict,
    InvalidInput,
    LimitReached,
    NotFound,
    Unreadable,
)
from wfcore.model.access import Scope
from wfcore.model.notice import Notice, NoticeStatus
from wfcore.model.page import NEWEST, Page, PageCursor, PageRequest
from wfcore.model.trigger import Schedule, Shown
from wfcore.model.webhook import WebhookStatus
from wfcore.rules.auth.access import require_operator
from wfcore.time import DAY, DurationMs
from wfcore.usecases.accounts import keys
from wfcore.usecases.accounts.usage import read_usage
from wfcore.usecases.notices import managing
from wfcore.usecases.webhooks import deliveries, webhooks
from wfcore.usecases.webhooks.webhooks import WebhookChange
from wfcore.usecases.workflows import triggers
from wfcore.usecases.workflows.triggers import next_fires, triggers_seen
from wfcore.usecases.workflows.workflows import read_workflow
from wfcore.wire.common import NOTICES, WEBHOOKS

SIZE = 50
FIRES = 20
DELIVERIES = PageRequest(1, 100)
TABS = Said(
    {
        "keys": N_("Keys"),
        "webhooks": N_("Webhooks"),
        "usage": N_("Usage"),
        "schedules": N_("Schedules"),
        "audit": N_("Audit"),
        "secrets": N_("Secrets"),
    }
)
FOR_OPERATORS = Said({"people": N_("People"), "notices": N_("Notices"), "health": N_("Health")})


def operate_page(request: Request, tab: str, status: int = 200, **facts: Any) -> Response:
    """A page below `/operate`, with the tabs that its reader has."""
    operator = request.who.operator
    tabs: Mapping[str, str] = {**TABS, **FOR_OPERATORS} if operator else TABS
    template, shown = f"operate_{tab}.html", _BELOW.get(tab, tab)
    return page(request, template, status, tab=shown, tabs=tabs, operator=operator, **facts)


_BELOW = {"key": "keys", "made": "keys", "webhook": "webhooks", "person": "people"}
"""Pages below a tab."""


async def home(request: Request) -> Response:
    """To the first tab."""
    return see_other(request, "/operate/keys")


# Keys


async def show_keys(request: Request) -> Response:
    """The account's keys, and a form for another one."""
    return await _keys(request)


async def _keys(request: Request, problem: str | None = None) -> Response:
    found = await own_keys(request)
    now = request.services.clock.now()
    return operate_page(
        request, "keys", 400 if problem else 200, keys=found, now=now, scopes=Scope.ordinary(),
        problem=problem, follows=versions(found),
    )  # fmt: skip


async def _look_keys(request: Request) -> object:
    return versions(await own_keys(request))


live_keys = followed(_look_keys)


async def create_key(request: Request) -> Response:
    """A new key, whose text this one answer shows."""
    form, me = request.body, request.who.account
    try:
        scopes = [Scope(name) for name in (form.scopes or {})]
        days = int(form.days) if form.days else None
        if days is not None and not 0 < days <= 36_500:
            raise ValueError
    except ValueError:
        return await _keys(request, _("Give a number of days, and scopes from the list."))
    refuse_more_than_own(request, scopes)
    lasts = DurationMs(days * DAY) if days else None
    try:
        made = await keys.create_key(
            request.services,
            me.id,
            form.name,
            scopes,
            lasts,
            request.origin,
            approvers=form.approvers.replace(",", " ").split(),
        )
    except InvalidInput as wrong:
        return await _keys(request, str(wrong))
    except Conflict as full:
        return await _keys(request, full.message)
    return operate_page(request, "made", made=made, rotated=False, base_url=request.base_url)


async def show_key(request: Request) -> Response:
    """One key: what it opens, and what can be done with it."""
    return await _key(request)


async def _key(request: Request, problem: str | None = None) -> Response:
    key, hooks = await own_key(request)
    now = request.services.clock.now()
    status = 400 if problem else 200
    return operate_page(request, "key", status, key=key, hooks=hooks, now=now, problem=problem)


async def rotate_key(request: Request) -> Response:
    """A new secret, which this one answer shows."""
    await own_key(request)
    try:
        made = await keys.rotate_key(
            request.services, request.params["id"], origin=request.origin, who=request.who
        )
    except Conflict as refusal:
        return await _key(request, refusal.message)
    return operate_page(request, "made", made=made, rotated=True, base_url=request.base_url)


async def revoke_key(request: Request) -> Response:
    """Revoke it, if its name was typed."""
    key, _hooks = await own_key(request)
    if request.body.name.strip() != key.name:
        return await _key(request, _("The name does not match; nothing was revoked."))
    await keys.revoke_key(request.services, key.id, request.origin, request.who)
    return see_other(request, "/operate/keys")


# Webhooks


async def show_webhooks(request: Request) -> Response:
    """Webhooks with the answers of 14 days."""
    rows, behind_them = await _webhooks(request)
    later, next = bool(request.query("after")), after(WEBHOOKS, behind_them)
    return operate_page(
        request, "webhooks", rows=rows, next=next, later=later, follows=_seen_webhooks(rows)
    )


async def _webhooks(request: Request) -> tuple[Sequence[Any], PageCursor | None]:
    """A page of them, each with what it answered."""
    who = None if request.who.operator else request.who
    found = await webhooks.list_webhooks(
        request.services, who, behind(request, WEBHOOKS, SIZE, NEWEST)
    )
    stats = [await webhooks.webhook_stats(request.services, who, one.id) for one in found.rows]
    return list(zip(found.rows, stats, strict=True)), found.next


def _seen_webhooks(rows: Sequence[Any]) -> object:
    return [(hook.id, hook.version, stats) for hook, stats in rows]


async def _look_webhooks(request: Request) -> object:
    return _seen_webhooks((await _webhooks(request))[0])


live_webhooks = followed(_look_webhooks)


async def show_webhook(request: Request) -> Response:
    """One webhook with its last deliveries."""
    return await _webhook(request)


async def _webhook(request: Request, problem: str | None = None) -> Response:
    services, who, id = request.services, request.who, request.params["id"]
    hook = await webhooks.read_webhook(services, who, id)
    return operate_page(
        request,
        "webhook",
        409 if problem else 200,
        hook=hook,
        stats=await webhooks.webhook_stats(services, who, id),
        deliveries=(await deliveries.list_deliveries(services, who, id, DELIVERIES)).rows,
        workflow=await _workflow_name(request, hook.workflow_id),
        url=f"{request.base_url}/api/webhooks/{id}/trigger",
        problem=problem,
    )


async def _workflow_name(request: Request, id: str) -> str | None:
    """None for one that is gone, or that somebody else's webhook starts."""
    with suppress(NotFound, Unreadable):
        return (await read_workflow(request.services, request.who, id)).workflow.name
    return None


async def switch_webhook(request: Request) -> Response:
    """Disable or enable it."""
    id = request.params["id"]
    try:
        change = WebhookChange(status=WebhookStatus(request.body.status))
    except ValueError:
        raise InvalidInput("status", f"must be one of {', '.join(WebhookStatus)}") from None
    try:
        await webhooks.update_webhook(request.services, request.who, id, change, request.origin)
    except (Conflict, LimitReached) as refusal:
        return await _webhook(request, refusal.message)
    return see_other(request, f"/operate/webhooks/{id}")


# Usage, schedules, secrets


async def show_usage(request: Request) -> Response:
    """Windows against the plan, and what models cost."""
    return operate_page(request, "usage", usage=await read_usage(request.services, request.who))


async def show_schedules(request: Request) -> Response:
    """The next fires over all workflows, and what started nothing the last time."""
    seen = await triggers_seen(request.services, request.who)
    schedules = sorted(
        (row for row in seen if isinstance(row[0].trigger.spec, Schedule)),
        key=lambda row: (row[0].standing.next_at is None, row[0].standing.next_at or 0),
    )
    refused = [row for row in seen if row[0].trigger.refusal or row[0].standing.why]
    refused.sort(key=lambda row: -(row[0].trigger.refused_at or 0))
    fires = next_fires(request.services, seen, FIRES)
    return operate_page(
        request,
        "schedules",
        schedules=schedules,
        fires=fires,
        refused=refused[:SIZE],
        follows=_seen_triggers(seen),
    )


def _seen_triggers(seen: Sequence[tuple[Shown, str]]) -> object:
    return [(one.trigger.id, one.trigger.version, one.standing, name) for one, name in seen]


async def _look_schedules(request: Request) -> object:
    return _seen_triggers(await triggers_seen(request.services, request.who))


live_schedules = followed(_look_schedules)


async def switch_trigger(request: Request) -> Response:
    """Pause or resume it, and back to where the button was."""
    services, who, id = request.services, request.who, request.params["id"]
    if request.body.status == "PAUSED":
        found = await triggers.pause_trigger(services, who, id, request.origin)
    elif request.body.status == "ACTIVE":
        found = await triggers.resume_trigger(services, who, id, request.origin)
    else:
        raise InvalidInput("status", "must be ACTIVE or PAUSED")
    return see_other(request, f"/workflows/{found.trigger.workflow_id}")


async def show_secrets(request: Request) -> Response:
    """The names of the account's secrets, never a value."""
    found = await list_secrets(request)
    return operate_page(request, "secrets", secrets=found.secrets, follows=found.secrets)


async def _look_secrets(request: Request) -> object:
    return (await list_secrets(request)).secrets


live_secrets = followed(_look_secrets)


# For operators


async def show_notices(request: Request) -> Response:
    """Notices, by default those that were given up."""
    found = await _notices(request)
    return operate_page(
        request,
        "notices",
        rows=found.rows,
        chosen=_chosen(request),
        statuses=list(NoticeStatus),
        next=after(NOTICES, found.next),
        later=bool(request.query("after")),
        follows=versions(found.rows),
    )


def _chosen(request: Request) -> NoticeStatus | None:
    text = request.query("status")
    return NoticeStatus(text) if text in set(NoticeStatus) else None


async def _notices(request: Request) -> Page[Notice]:
    require_operator(request.who)
    chosen = _chosen(request)
    wanted = behind(request, NOTICES, SIZE, NEWEST)
    return await managing.list_notices(request.services, wanted, (chosen,) if chosen else ())


async def _look_notices(request: Request) -> object:
    return versions((await _notices(request)).rows)


live_notices = followed(_look_notices)


async def retry_notice(request: Request) -> Response:
    """Try one again that was given up."""
    require_operator(request.who)
    await managing.retry_notice(request.services, request.who, request.params["id"], request.origin)
    return see_other(request, "/operate/notices")


async def show_health(request: Request) -> Response:
    """What `/metrics` counts, what the server checked, and how many notices were given up."""
    found = await read_health(request)
    return operate_page(request, "health", health=found)
