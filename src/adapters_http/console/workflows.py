"""
The list of workflows with their activity, and the page of one workflow.

The list reads no definitions, so that its cost does not depend on the size of definitions.
"""

from datetime import datetime

from starlette.responses import Response

from adapters_http.console.formats import as_text
from adapters_http.console.hints import followed
from adapters_http.console.pictures import plain_picture
from adapters_http.console.positions import behind, cursor_after
from adapters_http.console.rendering import page
from adapters_http.console.words import WEEKDAYS
from adapters_http.request import Request
from adapters_http.route import EVERY_SCOPE
from wfcore.model.access import Permission
from wfcore.model.page import Page, PageCursor
from wfcore.model.trigger import Schedule, TriggerRow
from wfcore.model.workflow import Variable
from wfcore.rules.auth.access import includes
from wfcore.rules.masking import MASK
from wfcore.usecases.workflows.browsing import WorkflowSummary, list_summaries, read_workflow_whole
from wfcore.wire.common import WORKFLOWS

SIZE = 50
VERSIONS = 20
"""The most versions that a page links to."""


NO_NAME = PageCursor("", "")
"""The position before every name, for a first page without a count of all rows."""


async def show(request: Request) -> Response:
    """The list, by name."""
    wanted = behind(request, WORKFLOWS, SIZE, NO_NAME)
    found = await list_summaries(request.services, request.who, wanted)
    return page(
        request,
        "workflows.html",
        rows=found.rows,
        follows=_seen(found),
        next=cursor_after(WORKFLOWS, found.next),
        later=wanted.after is not NO_NAME,
    )


def _seen(found: Page[WorkflowSummary]) -> object:
    return [(one.workflow.id, one.workflow.version, one.activity) for one in found.rows]


async def _snapshot(request: Request) -> object:
    wanted = behind(request, WORKFLOWS, SIZE, NO_NAME)
    return _seen(await list_summaries(request.services, request.who, wanted))


live = followed(_snapshot)


async def show_one(request: Request) -> Response:
    """One workflow: picture, variables, triggers, versions."""
    whole = await read_workflow_whole(request.services, request.who, request.params["id"])
    workflow, definition = whole.defined.workflow, whole.defined.definition
    return page(
        request,
        "workflow.html",
        whole=whole,
        workflow=workflow,
        definition=definition,
        picture=plain_picture(definition),
        variables=[(one, _default(one)) for one in definition.variables.values()],
        triggers=[(one, fires_at(request, one)) for one in whole.defined.triggers],
        versions=range(workflow.revision, max(0, workflow.revision - VERSIONS), -1),
        starts=includes(whole.permission, Permission.EXECUTE),
        edits=includes(whole.permission, Permission.EDIT)
        and (not request.who.scopes or request.who.scopes >= EVERY_SCOPE)
        and request.context.config.console_edits
        and request.context.config.read_definition is not None,
        hook_url=f"{request.base_url}/api/webhooks",
    )


def _default(one: Variable) -> str | None:
    """The default of a variable as text, masked for a secret; None without a default."""
    if not one.has_default:
        return None
    return MASK if one.secret else as_text(one.default)


def fires_at(request: Request, shown: TriggerRow) -> str | None:
    """
    The next time of a schedule in the time zone of the schedule: `Mon 2026-11-23 09:00
    Europe/Berlin`.
    """
    spec, at, calendar = shown.trigger.spec, shown.standing.next_at, request.services.calendar
    if not isinstance(spec, Schedule) or at is None or calendar is None:
        return None
    try:
        local = datetime.fromtimestamp(at / 1_000, calendar.zone(spec.timezone))
    except ValueError:
        return None
    return f"{WEEKDAYS[str(local.weekday())]} {local:%Y-%m-%d %H:%M} {spec.timezone}"
