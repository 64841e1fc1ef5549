"""
The first page of a reader by role, and the start page for a reader who has run nothing yet.

The start page runs the sample of the server with one press. The approval of the sample then opens
by itself: the server answers as soon as the run waits, so that no script is needed.
"""

import asyncio
from collections.abc import Sequence

from starlette.responses import Response

from adapters_http.browsers import cookie, preference_cookie
from adapters_http.console.language import _
from adapters_http.console.paths import HOME, see_other
from adapters_http.console.rendering import page
from adapters_http.console.routes import PAGES
from adapters_http.console.starting import KEY_LENGTH
from adapters_http.handlers.executions import rested
from adapters_http.request import Request
from wfcore.errors import InvalidDefinition, InvalidInput, LimitReached, NotFound
from wfcore.model.access import Scope
from wfcore.model.approval import ApprovalStatus
from wfcore.model.execution import TriggerSource
from wfcore.model.page import NEWEST, PageRequest
from wfcore.model.workflow import Definition
from wfcore.ports.records import ApprovalFilter
from wfcore.rules.definition.flow import kind_of
from wfcore.rules.idempotency import check_idempotency_key
from wfcore.rules.notices.facts import MAIL
from wfcore.time import SECOND
from wfcore.usecases.approvals.approvals import list_approvals
from wfcore.usecases.executions.starting import start_execution
from wfcore.usecases.workflows.sample import has_run, provide_sample

HIDDEN = "wfcore_start"
"""The cookie of a browser whose owner does not want to see the start page first."""
_WAIT_MS = 20 * SECOND
"""The longest wait for the sample to ask. After that, the page of the execution shows the run."""


async def home(request: Request) -> Response:
    """Redirect to the first page of the reader, by role."""
    return see_other(request, await _first_page(request))


async def _first_page(request: Request) -> str:
    scopes = request.who.scopes
    reads = not scopes or Scope.EXECUTION_READ in scopes
    if not (reads and _owns(request)):
        return "/inbox"
    if cookie(request, HIDDEN) is None and not await has_run(request.services, request.who):
        return "/start"
    return "/inbox" if request.waiting else "/overview"


def _owns(request: Request) -> bool:
    return request.owns or request.who.operator


async def show(request: Request) -> Response:
    """The start page; 404 for a reader who sees approvals, but no workflow."""
    return await _page(request)


async def _page(request: Request, problem: str | None = None) -> Response:
    if not _owns(request):
        raise NotFound("Page")
    sample = await _sample(request)
    return page(
        request,
        "first_visit.html",
        400 if problem else 200,
        problem=problem,
        sample=sample and sample[0],
        steps=[(one.name, kind_of(one)) for one in sample[0].steps] if sample else (),
        ran=await has_run(request.services, request.who),
        makes=any(one.path == "/workflows/new" for one in PAGES),
        lacks=await _lacks(request) if request.who.operator else (),
        once=request.services.tokens.text(KEY_LENGTH),
    )


async def _sample(request: Request) -> tuple[Definition, str] | None:
    """The sample of this server; None if readers cannot make workflows here."""
    config = request.context.config
    if config.sample is None or not config.console_edits:
        return None
    return await asyncio.to_thread(config.sample)


async def _lacks(request: Request) -> Sequence[tuple[str, str]]:
    """The parts that this server lacks, in words, each with the page that says more."""
    config = request.context.config
    found = []
    if MAIL not in request.services.policy.channels:
        found.append((_("No mail yet: approvers are not told"), "operate/notices"))
    checks = await config.checks() if config.checks is not None else ()
    if any(one.name == "backups" and not one.ok for one in checks):
        found.append((_("No backup yet"), "operate/health"))
    return found


async def hide(request: Request) -> Response:
    """Show other pages first in this browser from now on."""
    response = see_other(request, HOME)
    response.raw_headers.append(preference_cookie(request, HIDDEN, "hidden"))
    return response


async def run_sample(request: Request) -> Response:
    """Start the sample once, and follow the run. The sample is created if missing. IK-1."""
    services, who, once = request.services, request.who, request.body.once
    check_idempotency_key("once", once)
    sample = await _sample(request)
    if sample is None or not _owns(request):
        raise NotFound("Page")
    try:
        workflow = await provide_sample(services, who, *sample, request.origin)
        started = await start_execution(
            services,
            who,
            workflow.id,
            {},
            source=TriggerSource.MANUAL,
            idempotency=once,
            origin=request.origin,
        )
    except (InvalidDefinition, InvalidInput, LimitReached) as wrong:
        return await _page(request, str(wrong))
    return see_other(request, f"/start/runs/{started.execution_id}")


async def follow(request: Request) -> Response:
    """Redirect to the approval of a run as soon as the run waits; otherwise to the run's page."""
    id = request.params["id"]
    await rested(request, id, _WAIT_MS)
    where = ApprovalFilter(statuses=(ApprovalStatus.PENDING,), execution_id=id)
    wanted = PageRequest(size=1, after=NEWEST)
    found = await list_approvals(request.services, request.who, wanted, where)
    path = f"/approvals/{found.rows[0].id}" if found.rows else f"/executions/{id}"
    return see_other(request, path)
