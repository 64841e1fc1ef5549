"""The groups of the server, managed by operators and by an identity provider. AP-49, AP-50."""

from collections.abc import Callable, Mapping, Sequence

from attrs import frozen

from wfcore.errors import Conflict, InvalidInput
from wfcore.model.access import Account, PeopleGroups, Principal, Unrestricted
from wfcore.model.json import JsonObject
from wfcore.ports.store import Unit, View
from wfcore.rules.approval.groups import (
    NO_GROUPS,
    as_provider_says,
    members_of,
    with_group,
    with_members,
    without_group,
    without_person,
)
from wfcore.rules.definition.review import server_groups
from wfcore.rules.mailbox import FORMS, is_name, same_name
from wfcore.usecases.audit.auditing import UNKNOWN, Origin, note
from wfcore.usecases.services import Services
from wfcore.usecases.unit_of_work import retried


@frozen
class GroupReport:
    """
    A group: the address of each member with the account, if there is one. `uses`: by id, the names
    of the workflows that name the group.
    """

    members: Sequence[tuple[str, Account | None]]
    uses: Mapping[str, str]


async def groups_in(view: View | Unit) -> PeopleGroups:
    """The groups of the server."""
    return await view.get(PeopleGroups, NO_GROUPS.id) or NO_GROUPS


async def list_groups(services: Services) -> Mapping[str, tuple[str, ...]]:
    """The members of each group of the server, by the group's name."""
    async with services.store.view() as view:
        return (await groups_in(view)).members


async def read_group(services: Services, name: str) -> GroupReport:
    """The members of a group, and the workflows that name the group. Raises `NotFound`."""
    async with services.store.view() as view:
        members = members_of(await groups_in(view), name)
        found = [(one, await view.accounts.by_email(one)) for one in members]
        return GroupReport(found, await _uses(view, name))


async def _uses(view: View | Unit, name: str) -> Mapping[str, str]:
    """
    The workflows whose present definition, or that of an open execution, names the group *name* of
    the server. Names that templates give are not found.
    """
    return {
        one.workflow_id: one.definition.name
        for one in await view.definitions.in_use()
        if any(group == name for _, group in server_groups(one.definition))
    }


async def create_group(
    services: Services,
    who: Principal | Unrestricted,
    name: str,
    members: Sequence[str] = (),
    origin: Origin = UNKNOWN,
) -> tuple[str, ...]:
    """
    A new group of the server, with its members. Raises `InvalidInput`; `Conflict` if there is a
    group of that name.
    """

    def change(groups: PeopleGroups, add: Sequence[str]) -> PeopleGroups:
        return with_members(with_group(groups, name), name, add)

    return await _change(services, "group.create", name, change, {"members": members}, origin, who)


async def change_group(
    services: Services,
    who: Principal | Unrestricted,
    name: str,
    add: Sequence[str] = (),
    remove: Sequence[str] = (),
    origin: Origin = UNKNOWN,
) -> tuple[str, ...]:
    """
    Add members to a group and remove others; returns the members. Approvals that are open keep the
    members that the group had at their opening. *add*, *remove*: emails, or ids of accounts.

    Raises `NotFound`, `InvalidInput`.
    """

    def change(groups: PeopleGroups, add: Sequence[str], remove: Sequence[str]) -> PeopleGroups:
        return with_members(groups, name, add, remove)

    given = {"add": add, "remove": remove}
    return await _change(services, "group.change", name, change, given, origin, who)


@retried
async def delete_group(
    services: Services, who: Principal | Unrestricted, name: str, origin: Origin = UNKNOWN
) -> None:
    """
    Delete a group. Raises `NotFound`; `Conflict` while a workflow names the group, because the
    workflow's approvals could not open any more.
    """
    async with services.store.unit() as unit:
        left = without_group(await groups_in(unit), name)
        if uses := await _uses(unit, name):
            named = ", ".join(f"{workflow} ({id})" for id, workflow in uses.items())
            raise Conflict(f"The group {name} is an approver in {named}; change that first")
        unit.put(left)
        note(services, unit, "group.delete", who, name, origin)
        await unit.commit()


@retried
async def _change(
    services: Services,
    event: str,
    name: str,
    change: Callable[..., PeopleGroups],
    given: Mapping[str, Sequence[str]],
    origin: Origin,
    who: Principal | Unrestricted,
) -> tuple[str, ...]:
    """The members after *change*, which gets the addresses of *given*, field by field."""
    async with services.store.unit() as unit:
        people = {field: await _addresses(unit, field, names) for field, names in given.items()}
        before = await groups_in(unit)
        after = change(before, *people.values())
        if after != before:
            unit.put(after)
            note(services, unit, event, who, name, origin, people)
            await unit.commit()
    return after.members[name]


async def _addresses(unit: Unit, field: str, names: Sequence[str]) -> list[str]:
    return [await _address(unit, f"{field}[{at}]", one) for at, one in enumerate(names)]


async def _address(unit: Unit, field: str, name: str) -> str:
    """The address that *name* stands for. Raises `InvalidInput`."""
    if not is_name(name):
        raise InvalidInput(field, f"must be {FORMS}")
    if "@" in name:
        return same_name(name)
    account = await unit.get(Account, same_name(name))
    if account is None:
        raise InvalidInput(field, f"there is no account {name!r}")
    return account.email


async def follow_provider(
    services: Services,
    unit: Unit,
    who: Principal,
    claimed: frozenset[str],
    decided: Mapping[str, str],
    origin: Origin,
) -> None:
    """
    Make the groups that the provider decides agree with the provider's words about *who*. Written
    in the unit of the sign-in. AP-50.
    """
    if not decided:
        return
    before, address = await groups_in(unit), who.email
    after = as_provider_says(before, address, claimed, decided)
    if after == before:
        return
    unit.put(after)
    joined, left = _moved(before, after, address), _moved(after, before, address)
    about: JsonObject = {"by": "oidc", "joined": joined, "left": left}
    note(services, unit, "group.follow", who, who.account.id, origin, about)


def _moved(before: PeopleGroups, after: PeopleGroups, address: str) -> list[str]:
    """The groups that have *address* only in *after*."""
    members = before.members
    return [n for n, all in after.members.items() if address in set(all) - {*members.get(n, ())}]


async def leave_groups(unit: Unit, address: str) -> None:
    """Take *address* out of all groups, with the deletion of its account. AC-9."""
    before = await groups_in(unit)
    after = without_person(before, address)
    if after != before:
        unit.put(after)
