"""The pages of a workflow's owner: with whom it is shared, its pause, its copy, its end. AC-14."""

from typing import Any

from starlette.responses import Response

from adapters_http.console.checking import require_editor
from adapters_http.console.forms import NameForm, ShareForm, StatusForm
from adapters_http.console.language import _
from adapters_http.console.paths import see_other
from adapters_http.console.rendering import page
from adapters_http.console.workflows import may_create, may_edit
from adapters_http.request import Request
from wfcore.errors import InvalidInput, NotFound
from wfcore.model.access import Permission
from wfcore.usecases.workflows.authoring import list_shares, share_own
from wfcore.usecases.workflows.browsing import read_workflow_whole
from wfcore.usecases.workflows.triggers import pause_workflow, resume_workflow
from wfcore.usecases.workflows.workflows import delete_workflow, read_workflow


async def show(request: Request) -> Response:
    """The accounts that may see, start or edit the workflow."""
    return await _show(request)


async def change(request: Request) -> Response:
    """Give somebody a permission, or take it away."""
    form, id = request.body, request.params["id"]
    assert isinstance(form, ShareForm)
    permission, account = _permission(form.permission), form.account.strip()
    try:
        await share_own(request.services, request.who, id, account, permission, request.origin)
    except NotFound:
        await read_workflow(request.services, request.who, id)  # if it is not the account
        problem = _("Nobody here has the address or id {name}").format(name=account[:200])
        return await _show(request, problem, account)
    except InvalidInput as wrong:
        return await _show(request, f"{account[:200]} {wrong.fix}", account)
    return see_other(request, f"/workflows/{id}/sharing")


def _permission(text: str) -> Permission | None:
    if not text:
        return None
    if text not in Permission.__members__:
        raise InvalidInput("permission", f"must be one of {', '.join(Permission)}")
    return Permission(text)


async def _show(request: Request, problem: str = "", typed: str = "") -> Response:
    services, who, id = request.services, request.who, request.params["id"]
    shares = await list_shares(services, who, id)
    found = await read_workflow(services, who, id)
    facts: dict[str, Any] = {"shares": shares, "problem": problem, "typed": typed}
    facts |= {"workflow": found.workflow, "definition": found.definition}
    return page(request, "sharing.html", 400 if problem else 200, **facts)


async def show_settings(request: Request) -> Response:
    """Pausing the workflow, copying it, and deleting it, with what each does."""
    return await _settings(request)


async def switch(request: Request) -> Response:
    """Pause every trigger of the workflow, or resume them. SH-10."""
    form, id = request.body, request.params["id"]
    assert isinstance(form, StatusForm)
    if form.status not in ("PAUSED", "ACTIVE"):
        raise InvalidInput("status", "must be PAUSED or ACTIVE")
    act = pause_workflow if form.status == "PAUSED" else resume_workflow
    await act(request.services, request.who, id, request.origin)
    return see_other(request, f"/workflows/{id}/settings")


async def delete(request: Request) -> Response:
    """Delete the workflow, whose name was typed as a confirmation."""
    require_editor(request)
    form, id = request.body, request.params["id"]
    assert isinstance(form, NameForm)
    found = await read_workflow(request.services, request.who, id)
    if form.name.strip() != found.workflow.name:
        return await _settings(request, _("This is not the name of the workflow"))
    await delete_workflow(request.services, request.who, id, request.origin)
    return see_other(request, "/workflows")


async def _settings(request: Request, problem: str = "") -> Response:
    whole = await read_workflow_whole(request.services, request.who, request.params["id"])
    workflow = whole.defined.workflow
    owns = workflow.owner_id == request.who.account.id
    return page(
        request,
        "settings.html",
        400 if problem else 200,
        whole=whole,
        workflow=workflow,
        definition=whole.defined.definition,
        edits=may_edit(request, whole.permission),
        creates=may_create(request),
        deletes=owns and may_create(request),
        problem=problem,
    )
