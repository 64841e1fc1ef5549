"""
API keys of the account: list, create, rotate, revoke. The text of a new key is in one response and
in no other place.
"""

from starlette.responses import Response

from adapters_http.console.hints import followed, versions
from adapters_http.console.language import _
from adapters_http.console.operate import operate_page
from adapters_http.console.paths import see_other
from adapters_http.handlers.operating import own_key, own_keys, refuse_more_than_own
from adapters_http.request import Request
from wfcore.errors import Conflict, InvalidInput
from wfcore.model.access import Scope
from wfcore.time import DAY, DurationMs
from wfcore.usecases.accounts import keys
from wfcore.usecases.accounts.usage import read_quotas
from wfcore.usecases.executions.browsing import workflow_names


async def show(request: Request) -> Response:
    """The account's keys, and a form for a new key."""
    return await _page(request)


async def _page(request: Request, problem: str | None = None) -> Response:
    found = await own_keys(request)
    used = await read_quotas(request.services, request.who.account)
    return operate_page(
        request,
        "keys",
        400 if problem else 200,
        keys=found,
        minutes={one.id: one.windows[0] for one in used},
        now=request.services.clock.now(),
        scopes=Scope.ordinary(),
        problem=problem,
        follows=versions(found),
    )


async def _snapshot(request: Request) -> object:
    return versions(await own_keys(request))


live = followed(_snapshot)


async def create(request: Request) -> Response:
    """Create a key; only this response shows its text."""
    form, me = request.body, request.who.account
    try:
        scopes = [Scope(name) for name in (form.scopes or {})]
        days = int(form.days) if form.days else None
        if days is not None and not 0 < days <= 36_500:
            raise ValueError
    except ValueError:
        return await _page(request, _("Give a number of days, and scopes from the list."))
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
        return await _page(request, str(wrong))
    except Conflict as full:
        return await _page(request, full.message)
    return await _made(request, made)


async def _made(request: Request, made: keys.IssuedKey, *, rotated: bool = False) -> Response:
    """The page with the text of a key, and lines for a shell that use the key."""
    flows = await workflow_names(request.services, request.who, 1)
    may_start = flows and Scope.WORKFLOW_EXECUTE in made.key.scopes
    starts = flows[0].id if may_start else None
    return operate_page(
        request, "made", made=made, rotated=rotated, base_url=request.base_url, starts=starts
    )


async def show_one(request: Request) -> Response:
    """One key with its scopes and webhooks."""
    return await _one(request)


async def _one(request: Request, problem: str | None = None) -> Response:
    key, hooks = await own_key(request)
    now = request.services.clock.now()
    status = 400 if problem else 200
    return operate_page(request, "key", status, key=key, hooks=hooks, now=now, problem=problem)


async def rotate(request: Request) -> Response:
    """Give a key a new secret; only this response shows the new secret."""
    await own_key(request)
    try:
        made = await keys.rotate_key(
            request.services, request.who, request.params["id"], origin=request.origin
        )
    except Conflict as refusal:
        return await _one(request, refusal.message)
    return await _made(request, made, rotated=True)


async def revoke(request: Request) -> Response:
    """Revoke a key, if its name was typed."""
    key, _hooks = await own_key(request)
    if request.body.name.strip() != key.name:
        return await _one(request, _("The name does not match; nothing was revoked."))
    await keys.revoke_key(request.services, request.who, key.id, request.origin)
    return see_other(request, "/operate/keys")
