"""Versions of a workflow: the list, one as it was written, the difference of two, and restoring."""

from collections.abc import Sequence
from functools import partial

from starlette.responses import Response

from adapters_http.console.checking import require_editor
from adapters_http.console.forms import RestoreForm
from adapters_http.console.language import _
from adapters_http.console.paths import see_other
from adapters_http.console.rendering import page
from adapters_http.console.workflows import may_edit
from adapters_http.params import page as page_of
from adapters_http.request import Request
from wfcore.errors import Conflict, InvalidDefinition, NotFound, Problem
from wfcore.model.workflow import DefinitionSnapshot
from wfcore.rules.definition.changes import Diff, diff
from wfcore.rules.definition.written import text_of, withheld
from wfcore.rules.limits import WORKFLOW_PAGE
from wfcore.usecases.workflows.authoring import compare_versions, list_changes, restore_version
from wfcore.usecases.workflows.browsing import read_permitted, read_version


async def show_list(request: Request) -> Response:
    """The versions, newest first: who applied each, when, and how much it changed. DF-22."""
    services, who, id = request.services, request.who, request.params["id"]
    found, _held = await read_permitted(services, who, id)
    rows = await list_changes(services, who, id, page_of(request, WORKFLOW_PAGE))
    return page(
        request,
        "versions.html",
        workflow=found.workflow,
        definition=found.definition,
        found=rows,
    )


async def compare(request: Request) -> Response:
    """The difference of any two versions, by `from` and `to` of the query. DF-22."""
    id = request.params["id"]
    old, new = _number(request.query("from") or ""), _number(request.query("to") or "")
    workflow, before, after = await compare_versions(request.services, request.who, id, old, new)
    found, _held = await read_permitted(request.services, request.who, id)
    return page(
        request,
        "difference.html",
        workflow=workflow,
        definition=found.definition,
        old=old,
        new=new,
        changes=await _changes(request, before, after),
    )


async def show(request: Request) -> Response:
    """The text of one version as its author wrote it, with its changes, and those of restoring."""
    return await _show(request)


async def restore(request: Request) -> Response:
    """Apply what this version said as the next version. DF-23."""
    require_editor(request)
    form = request.body
    assert isinstance(form, RestoreForm)
    id, to, version = request.params["id"], _number(request.params["number"]), _number(form.version)
    try:
        await restore_version(request.services, request.who, id, to, version, request.origin)
    except InvalidDefinition as wrong:
        return await _show(request, wrong.problems, 400)
    except Conflict:
        newer = Problem("", _("There is a newer version; see the changes again"))
        return await _show(request, (newer,), 409)
    return see_other(request, f"/workflows/{id}/versions")


async def _show(request: Request, problems: Sequence[Problem] = (), status: int = 200) -> Response:
    number = _number(request.params["number"])
    services, who, id = request.services, request.who, request.params["id"]
    workflow, found, before = await read_version(services, who, id, number)
    newest = (await read_version(services, who, id, workflow.revision))[1]
    held = (await read_permitted(services, who, id))[1]
    restores = number != workflow.revision and may_edit(request, held)
    return page(
        request,
        "version.html",
        status,
        workflow=workflow,
        number=number,
        text=text_of(found),
        tests=found.tests,
        written=bool(found.source) and not withheld(found.definition),
        changes=await _changes(request, before, found) if before else None,
        restoring=await _changes(request, newest, found) if restores else None,
        problems=problems,
    )


async def _changes(request: Request, before: DefinitionSnapshot, after: DefinitionSnapshot) -> Diff:
    """The changes of the text, computed outside of the event loop: long texts take time."""
    return await request.services.offload(partial(diff, text_of(before), text_of(after)))


def _number(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise NotFound("Version")
    return int(text)
