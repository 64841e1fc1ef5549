"""
Versions of a workflow, and an editor for the text of the newest version. Decision 165.

The editor is a plain text field. The checker of definitions names mistakes by line and path; before
a text is stored, the page shows the change. If another version was stored meanwhile, the page shows
both changes and keeps the text.
"""

import asyncio
from collections.abc import Sequence
from functools import partial

from starlette.responses import Response

from adapters_http.console.forms import EditForm
from adapters_http.console.language import _
from adapters_http.console.paths import see_other
from adapters_http.console.rendering import page
from adapters_http.request import Request
from wfcore.errors import Conflict, Forbidden, InvalidDefinition, NotFound, Problem
from wfcore.model.access import Permission
from wfcore.model.workflow import Definition, Workflow
from wfcore.rules.auth.access import includes
from wfcore.rules.definition.changes import Diff, diff
from wfcore.rules.definition.written import text_of, withheld
from wfcore.usecases.workflows.browsing import read_permitted, read_version
from wfcore.usecases.workflows.state import dropped_state
from wfcore.usecases.workflows.workflows import edit_workflow


async def show_version(request: Request) -> Response:
    """The text of one version, as its author wrote it, with the changes."""
    number = _number(request.params["number"])
    services, who, id = request.services, request.who, request.params["id"]
    workflow, found, before = await read_version(services, who, id, number)
    text = text_of(found)
    return page(
        request,
        "version.html",
        workflow=workflow,
        number=number,
        text=text,
        written=bool(found.source) and not withheld(found.definition),
        changes=await _compared(request, text_of(before), text) if before else None,
    )


def _number(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise NotFound("Version")
    return int(text)


async def _compared(request: Request, old: str, new: str) -> Diff:
    """The changes from *old* to *new*, computed outside of the event loop: long texts take time."""
    return await request.services.offload(partial(diff, old, new))


async def show(request: Request) -> Response:
    """The newest version in a text field."""
    workflow, definition, text = await _editable(request)
    if withheld(definition):
        return _form(request, workflow, "", workflow.revision, secret=True)
    return _form(request, workflow, text, workflow.revision)


async def _editable(request: Request) -> tuple[Workflow, Definition, str]:
    """
    The workflow, its definition and its text.

    Raises `NotFound` on a server without an editor, `Forbidden` without EDIT.
    """
    config = request.context.config
    if not config.console_edits or config.read_definition is None:
        raise NotFound("Page")
    found, held = await read_permitted(request.services, request.who, request.params["id"])
    if not includes(held, Permission.EDIT):
        raise Forbidden(f"This needs the permission {Permission.EDIT} on the workflow")
    workflow = found.workflow
    _, snapshot, _ = await read_version(
        request.services, request.who, workflow.id, workflow.revision
    )
    return workflow, found.definition, text_of(snapshot)


async def save(request: Request) -> Response:
    """Check the text and show the change; with `apply`, store the text as the next version."""
    workflow, present, stored = await _editable(request)
    form = request.body
    assert isinstance(form, EditForm)
    text, version = form.text.replace("\r\n", "\n"), _number(form.version or "0")
    if withheld(present):
        return _form(request, workflow, "", workflow.revision, secret=True)
    try:
        definition = await _read(request, workflow, text)
        changes = await _compared(request, stored, text)
        if version != workflow.revision:
            return await _conflict(request, workflow, text, version)
        if not form.apply or not changes:
            dropped = await dropped_state(request.services, workflow.owner_id, definition)
            return _form(request, workflow, text, version, changes=changes, dropped=dropped)
        stored_as = await edit_workflow(
            request.services, request.who, workflow.id, definition, text, version, request.origin
        )
    except InvalidDefinition as wrong:
        return _form(request, workflow, text, version, problems=wrong.problems)
    except Conflict:
        now, _, _ = await _editable(request)
        return await _conflict(request, now, text, version)
    if stored_as.revision == version:
        return _form(request, workflow, text, version, same=True)
    return see_other(request, f"/workflows/{workflow.id}")


async def _read(request: Request, workflow: Workflow, text: str) -> Definition:
    """The definition in *text*. Raises `InvalidDefinition`."""
    read = request.context.config.read_definition
    assert read is not None
    definition = await asyncio.to_thread(read, text.encode("utf-8", "replace"))
    if definition.name != workflow.name:
        fix = f"must stay {workflow.name!r}: other workflows and programs refer to it by name"
        raise InvalidDefinition((Problem("name", fix),))
    return definition


async def _conflict(request: Request, workflow: Workflow, text: str, version: int) -> Response:
    """
    The form with both changes since *version*, the version on which the text is based; the text is
    kept.
    """
    services, who, now = request.services, request.who, workflow.revision
    _, newest, _ = await read_version(services, who, workflow.id, now)
    try:
        _, began, _ = await read_version(services, who, workflow.id, version)
        theirs = await _compared(request, text_of(began), text_of(newest))
    except NotFound:
        theirs = []
    changes = await _compared(request, text_of(newest), text)
    return _form(request, workflow, text, now, changes=changes, theirs=theirs, status=409)


def _form(
    request: Request,
    workflow: Workflow,
    text: str,
    version: int,
    *,
    problems: Sequence[Problem] = (),
    changes: Diff | None = None,
    theirs: Diff | None = None,
    secret: bool = False,
    same: bool = False,
    dropped: Sequence[str] = (),
    status: int = 200,
) -> Response:
    return page(
        request,
        "edit.html",
        400 if problems else status,
        workflow=workflow,
        text=text,
        version=version,
        problems=problems,
        changes=changes,
        theirs=theirs,
        secret=secret,
        same=same,
        dropped=dropped,
        nothing=_("Nothing is changed."),
    )
