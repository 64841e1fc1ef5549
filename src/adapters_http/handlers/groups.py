"""Groups of the server, for operators with a session. AC-7, AP-49."""

from adapters_http.request import Request
from wfcore.rules.auth.access import require_operator
from wfcore.usecases.accounts import groups
from wfcore.wire.common import DoneView
from wfcore.wire.operating import PeopleGroupDetail, PeopleGroupList, PeopleGroupView, group_detail


async def list_all(request: Request) -> PeopleGroupList:
    """The groups by name, with the addresses of their members."""
    require_operator(request.who)
    found = await groups.list_groups(request.services)
    return PeopleGroupList([PeopleGroupView(name, found[name]) for name in sorted(found)])


async def read(request: Request) -> PeopleGroupDetail:
    """A group: its members with their accounts, and the workflows that name it."""
    require_operator(request.who)
    name = request.params["name"]
    found = await groups.read_group(request.services, name)
    return group_detail(name, found.members, found.uses)


async def create(request: Request) -> PeopleGroupView:
    """A new group. Members need no account."""
    require_operator(request.who)
    body, services = request.body, request.services
    made = await groups.create_group(
        services, request.who, body.name, body.members or (), request.origin
    )
    return PeopleGroupView(body.name, made)


async def change(request: Request) -> PeopleGroupView:
    """Add members and remove others. Open approvals keep their approvers."""
    require_operator(request.who)
    body, name, services = request.body, request.params["name"], request.services
    members = await groups.change_group(
        services, request.who, name, body.add or (), body.remove or (), request.origin
    )
    return PeopleGroupView(name, members)


async def delete(request: Request) -> DoneView:
    """Delete a group; refused while a workflow names it."""
    require_operator(request.who)
    await groups.delete_group(request.services, request.who, request.params["name"], request.origin)
    return DoneView(True)
