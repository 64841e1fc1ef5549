"""
The groups of the server: names for people, which approvers of any definition may use. AP-49.

All groups are one record, because there are few and an approval that opens reads them once. A group
of a definition hides the server's group of the same name. Members are addresses: an address needs
no account, as if an author had written it.
"""

import re
from collections.abc import Collection, Mapping

from attrs import evolve

from wfcore.errors import Conflict, InvalidInput, NotFound
from wfcore.model.access import PeopleGroups
from wfcore.rules.limits import MAX_GROUP_MEMBERS, MAX_GROUPS

NO_GROUPS = PeopleGroups("all")
"""The record of a server without groups."""
_NAME = re.compile(r"\w([\w .-]{0,62}[\w.-])?")
WANTED = "up to 64 letters, digits, blanks and _.-, beginning with a letter, a digit or _"


def is_group_name(text: str) -> bool:
    """Whether a group of the server may have that name."""
    return _NAME.fullmatch(text) is not None


def with_group(groups: PeopleGroups, name: str) -> PeopleGroups:
    """*groups* with the new group *name*. Raises `InvalidInput`, `Conflict`."""
    if not is_group_name(name):
        raise InvalidInput("name", f"must be {WANTED}")
    if name in groups.members:
        raise Conflict(f"The group {name} exists already")
    if len(groups.members) >= MAX_GROUPS:
        raise InvalidInput("name", f"a server has at most {MAX_GROUPS} groups")
    return _with(groups, name, ())


def without_group(groups: PeopleGroups, name: str) -> PeopleGroups:
    """*groups* without the group *name*. Raises `NotFound`."""
    members_of(groups, name)
    left = {one: members for one, members in groups.members.items() if one != name}
    return evolve(groups, members=left)


def members_of(groups: PeopleGroups, name: str) -> tuple[str, ...]:
    """The members of the group *name*. Raises `NotFound`."""
    if (members := groups.members.get(name)) is None:
        raise NotFound("Group")
    return members


def with_members(
    groups: PeopleGroups, name: str, add: Collection[str] = (), remove: Collection[str] = ()
) -> PeopleGroups:
    """
    *groups*, in which the group *name* has the members *add* and lacks the members *remove*. Raises
    `NotFound`, `InvalidInput`.
    """
    kept = [one for one in members_of(groups, name) if one not in remove]
    members = tuple(dict.fromkeys((*kept, *add)))
    if len(members) > MAX_GROUP_MEMBERS:
        raise InvalidInput("add", f"a group has at most {MAX_GROUP_MEMBERS} members")
    return _with(groups, name, members)


def without_person(groups: PeopleGroups, address: str) -> PeopleGroups:
    """*groups* without *address* in any of them. AC-9."""
    left = {n: tuple(one for one in all if one != address) for n, all in groups.members.items()}
    return evolve(groups, members=left)


def as_provider_says(
    groups: PeopleGroups, address: str, claimed: Collection[str], decided: Mapping[str, str]
) -> PeopleGroups:
    """
    *groups*, in which *address* is a member of those that the provider decides and *claimed* names,
    and of no other that the provider decides. A group that is missing is created, and a full group
    stays as it is. *decided*: the names of groups by the provider's words. AP-50.
    """
    wanted = {name for word, name in decided.items() if word in claimed}
    for name in sorted({*decided.values()}):
        present = groups.members.get(name, ())
        if name not in wanted:
            left = tuple(one for one in present if one != address)
            groups = _with(groups, name, left) if left != present else groups
        elif address not in present and _has_room(groups, name):
            groups = _with(groups, name, (*present, address))
    return groups


def _has_room(groups: PeopleGroups, name: str) -> bool:
    if name in groups.members:
        return len(groups.members[name]) < MAX_GROUP_MEMBERS
    return len(groups.members) < MAX_GROUPS


def _with(groups: PeopleGroups, name: str, members: tuple[str, ...]) -> PeopleGroups:
    return evolve(groups, members={**groups.members, name: members})
