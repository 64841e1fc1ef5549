"""Groups of the server, for operators: members, and the workflows that name a group. AP-49."""

from collections.abc import Sequence
from urllib.parse import quote

from starlette.responses import Response

from adapters_http.console.hints import followed
from adapters_http.console.language import _
from adapters_http.console.operate import operate_page
from adapters_http.console.paths import see_other
from adapters_http.handlers.groups import list_all, read
from adapters_http.request import Request
from wfcore.errors import Conflict, InvalidInput
from wfcore.rules.auth.access import require_operator
from wfcore.usecases.accounts import groups
from wfcore.wire.operating import PeopleGroupView


async def show(request: Request) -> Response:
    """All groups, and a form for a new group."""
    return await _all(request)


async def _all(request: Request, problem: str | None = None) -> Response:
    found = (await list_all(request)).groups
    status = 400 if problem else 200
    return operate_page(
        request, "groups", status, rows=found, problem=problem, follows=_state(found)
    )


def _state(found: Sequence[PeopleGroupView]) -> object:
    return [(one.name, *one.members) for one in found]


async def _snapshot(request: Request) -> object:
    return _state((await list_all(request)).groups)


live = followed(_snapshot)


async def create(request: Request) -> Response:
    """Create a group."""
    require_operator(request.who)
    form, services = request.body, request.services
    members = form.members.replace(",", " ").split()
    try:
        await groups.create_group(services, request.who, form.name.strip(), members, request.origin)
    except InvalidInput as wrong:
        return await _all(request, str(wrong))
    except Conflict as taken:
        return await _all(request, taken.message)
    return see_other(request, _path(form.name.strip()))


def _path(name: str) -> str:
    return f"/operate/group/{quote(name)}"


async def show_one(request: Request) -> Response:
    """One group."""
    return await _one(request)


async def _one(request: Request, problem: str | None = None) -> Response:
    found = await read(request)
    status = 400 if problem else 200
    path = _path(found.name)
    return operate_page(request, "group", status, group=found, path=path, problem=problem)


async def change(request: Request) -> Response:
    """Add members, or remove one."""
    require_operator(request.who)
    form, name = request.body, request.params["name"]
    add, remove = form.add.replace(",", " ").split(), form.remove.split()
    try:
        await groups.change_group(request.services, request.who, name, add, remove, request.origin)
    except InvalidInput as wrong:
        return await _one(request, str(wrong))
    return see_other(request, _path(name))


async def delete(request: Request) -> Response:
    """Delete a group, if its name was typed and no workflow names it."""
    require_operator(request.who)
    name = request.params["name"]
    if request.body.name.strip() != name:
        return await _one(request, _("The name does not match; nothing was deleted."))
    try:
        await groups.delete_group(request.services, request.who, name, request.origin)
    except Conflict as used:
        return await _one(request, used.message)
    return see_other(request, "/operate/groups")
