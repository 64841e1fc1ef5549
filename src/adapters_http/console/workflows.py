"""
The list of workflows with their activity, and the page of one workflow.

The list reads no definitions, so that its cost does not depend on the size of definitions.
"""

from starlette.responses import Response

from adapters_http.console.formats import as_text
from adapters_http.console.hints import followed
from adapters_http.console.pictures import plain_picture
from adapters_http.console.positions import behind, cursor_after
from adapters_http.console.rendering import page
from adapters_http.console.run_bars import bars_of, durations
from adapters_http.request import Request
from adapters_http.route import EVERY_SCOPE
from wfcore.model.access import Permission
from wfcore.model.page import Page, PageCursor
from wfcore.model.workflow import Variable
from wfcore.rules.auth.access import includes
from wfcore.rules.masking import MASK
from wfcore.rules.overview import percentile
from wfcore.usecases.workflows.browsing import (
    WorkflowSummary,
    list_summaries,
    read_workflow_whole,
)
from wfcore.wire.common import WORKFLOWS

SIZE = 50
NO_NAME = PageCursor("", "")
"""The position before every name, for a first page without a count of all rows."""


async def show(request: Request) -> Response:
    """The list, by name."""
    wanted = behind(request, WORKFLOWS, SIZE, NO_NAME)
    found = await list_summaries(request.services, request.who, wanted)
    now = request.services.store.now()
    return page(
        request,
        "workflows.html",
        rows=[(one, bars_of(one.latest, now)) for one in found.rows],
        follows=_seen(found),
        next=cursor_after(WORKFLOWS, found.next),
        later=wanted.after is not NO_NAME,
        creates=may_create(request),
    )


def _seen(found: Page[WorkflowSummary]) -> object:
    return [(one.workflow.id, one.workflow.version, one.activity, one.pause) for one in found.rows]


async def _snapshot(request: Request) -> object:
    wanted = behind(request, WORKFLOWS, SIZE, NO_NAME)
    return _seen(await list_summaries(request.services, request.who, wanted))


live = followed(_snapshot)


async def show_one(request: Request) -> Response:
    """One workflow: flow, inputs, and its latest executions."""
    whole = await read_workflow_whole(request.services, request.who, request.params["id"])
    workflow, definition = whole.defined.workflow, whole.defined.definition
    took = durations(whole.latest)
    return page(
        request,
        "workflow.html",
        whole=whole,
        workflow=workflow,
        definition=definition,
        picture=plain_picture(definition),
        variables=[(one, _default(one)) for one in definition.variables.values()],
        bars=bars_of(whole.latest, request.services.store.now()),
        p50=percentile(took, 0.5),
        p95=percentile(took, 0.95),
        starts=includes(whole.permission, Permission.EXECUTE),
        edits=may_edit(request, whole.permission),
    )


def may_edit(request: Request, held: Permission) -> bool:
    """Whether the reader, with the permission *held*, may change the workflow here."""
    config = request.context.config
    there = config.console_edits and config.read_definition is not None
    return there and includes(held, Permission.EDIT) and has_every_scope(request)


def may_create(request: Request) -> bool:
    """Whether the reader may create workflows here."""
    return may_edit(request, Permission.EDIT)


def has_every_scope(request: Request) -> bool:
    """Whether the reader has all rights of the account: not through a host with fewer scopes."""
    return not request.who.scopes or request.who.scopes >= EVERY_SCOPE


def _default(one: Variable) -> str | None:
    """The default of a variable as text, masked for a secret; None without a default."""
    if not one.has_default:
        return None
    return MASK if one.secret else as_text(one.default)
