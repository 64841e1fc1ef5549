"""Operations on the groups of the server. AP-49."""

from collections.abc import Sequence

from wfcore.model.access import OPERATOR
from wfcore.usecases.accounts import groups
from wfcore.usecases.administration.operator import Answer, Operator, listed, shown
from wfcore.wire.operating import PeopleGroupView, group_detail


async def create_group(at: Operator, name: str, members: Sequence[str] = ()) -> Answer:
    """A new group, with its members: emails or ids of accounts."""
    return _group(name, await groups.create_group(at.services, OPERATOR, name, members, at.origin))


async def add_members(at: Operator, name: str, members: Sequence[str]) -> Answer:
    """Add members to a group; approvals that are open do not change."""
    return _group(
        name, await groups.change_group(at.services, OPERATOR, name, members, (), at.origin)
    )


async def remove_members(at: Operator, name: str, members: Sequence[str]) -> Answer:
    """Remove members from a group; approvals that are open do not change."""
    return _group(
        name, await groups.change_group(at.services, OPERATOR, name, (), members, at.origin)
    )


async def list_groups(at: Operator) -> Answer:
    """The groups of the server by name, with their members."""
    found = await groups.list_groups(at.services)
    return listed(_group(name, found[name]) for name in sorted(found))


async def read_group(at: Operator, name: str) -> Answer:
    """A group with its members, and the workflows that name it as an approver."""
    found = await groups.read_group(at.services, name)
    return shown(group_detail(name, found.members, found.uses))


async def delete_group(at: Operator, name: str) -> Answer:
    """Delete a group; refused while a workflow names it."""
    await groups.delete_group(at.services, OPERATOR, name, at.origin)
    return {"ok": True, "name": name}


def _group(name: str, members: Sequence[str]) -> Answer:
    return shown(PeopleGroupView(name, members))
