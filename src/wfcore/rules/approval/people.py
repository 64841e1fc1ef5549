"""
The people of an approval: which names count, who can decide, and whether enough people can. AP-41.

Names in a definition are the author's responsibility. A name from data counts only if it belongs to
an active account, or is an address that the operator trusts (*outsiders*): otherwise the sender of
the data would choose the approver. The same rule holds for gates. GT-5.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from attrs import field, frozen

from wfcore.errors import InvalidInput, TemplateFailed
from wfcore.model.access import Account, AccountStatus
from wfcore.model.approval import Approval
from wfcore.model.json import Json
from wfcore.rules.approval.machine import still_wanted
from wfcore.rules.limits import MAX_APPROVERS
from wfcore.rules.mailbox import FORMS, is_name, same_name

Groups = Mapping[str, tuple[str, ...]]
GROUP_MARK = "group:"
"""The text before the name of a group of approvers."""
ANYBODY = "@"
"""
The entry of `outsiders` that admits every address: for trials of definitions, where nobody has an
account.
"""


class UnreadPeople(Exception):
    """
    Raised for what must be read before an approval can open: the accounts with `names`, as
    `same_name` writes them, or the groups of the server.
    """

    def __init__(self, names: Iterable[str] = ()) -> None:
        super().__init__()
        self.names = frozenset(names)


@frozen
class People:
    """
    The people whom an approval may concern as it opens.

    `accounts`: by each name that was read, as `same_name` writes it, the account with that name;
    None if there is no such account. `editors`: ids of the accounts with EDIT on the workflow.
    `outsiders`: addresses without an account that data may name, and domains of such addresses,
    written `@example.org`. `groups`: the groups of the server; None: they were not read. AP-49.
    """

    accounts: Mapping[str, Account | None] = field(factory=dict)
    editors: tuple[str, ...] = ()
    outsiders: frozenset[str] = frozenset()
    groups: Mapping[str, tuple[str, ...]] | None = None

    def require(self, names: Iterable[str]) -> None:
        """Raises `UnreadPeople` if the accounts of some *names* were not read."""
        wanted = frozenset(map(same_name, names))
        if not wanted <= self.accounts.keys():
            raise UnreadPeople(wanted)

    def members(self, group: str) -> tuple[str, ...] | None:
        """
        The members of a group of the server; None: there is no such group. Raises `UnreadPeople`.
        """
        if self.groups is None:
            raise UnreadPeople
        return self.groups.get(group)

    def admits(self, name: str) -> bool:
        """Whether a name from data counts. AP-41, GT-5."""
        account = self.accounts[same_name(name)]
        if account is not None:
            return account.status is AccountStatus.ACTIVE
        return is_outsider(name, self.outsiders)

    def person(self, name: str) -> str | None:
        """
        The person with that name: the id of an account, or an address without an account; None if
        the name belongs to nobody who can decide.
        """
        account = self.accounts[same_name(name)]
        if account is None:
            return same_name(name) if "@" in name else None
        return account.id if account.status is AccountStatus.ACTIVE else None


def is_outsider(name: str, outsiders: Collection[str]) -> bool:
    """Whether *outsiders* contain the address *name*, or exactly its domain."""
    local, at, domain = same_name(name).rpartition("@")
    return bool(at) and not {local + at + domain, at + domain, ANYBODY}.isdisjoint(outsiders)


def is_template(entry: str) -> bool:
    """Whether an entry of `approvers` is evaluated as the approval opens."""
    return "{{" in entry


def expanded(where: str, name: str, groups: Groups, people: People | None) -> tuple[str, ...]:
    """
    The members of a group, or *name* itself. *groups*: those of the definition, which come before
    the server's groups. *people* None: every name counts. Raises `TemplateFailed`, `UnreadPeople`.
    AP-34, AP-49.
    """
    group = name.removeprefix(GROUP_MARK)
    if group == name or (group not in groups and people is None):
        return (name,)
    members = groups[group] if group in groups or people is None else people.members(group)
    if members is None:
        raise TemplateFailed(where, f"{name!r} is no group of approverGroups or of this server")
    return members


def given_names(where: str, value: Json) -> Sequence[str]:
    """The names in the value of a template. Raises `TemplateFailed`. AP-41."""
    listed = value if isinstance(value, list | tuple) else (value,)
    if len(listed) > MAX_APPROVERS:
        raise TemplateFailed(where, f"gives {len(listed)} names; at most {MAX_APPROVERS}")
    for one in listed:
        if not isinstance(one, str):
            raise TemplateFailed(where, "must give text, or a list of texts")
        if not (one.startswith(GROUP_MARK) or is_name(one)):
            raise TemplateFailed(where, f"gives {one!r}, which is not {FORMS}")
    return [str(one).strip() for one in listed]


def require_enough(approval: Approval, people: People) -> None:
    """
    Raises `TemplateFailed` if nobody can decide *approval*, or if fewer persons can than must
    approve. AP-42.

    A person counts once over all stages, whether named by address, id or both. The person who
    started the execution counts even if they may only reject, because a rejection is a decision.
    """
    asked = [*_asked(approval)]
    people.require(name for names, _ in asked for name in names or _by_default(approval, people))
    places = [
        (_persons(names or _by_default(approval, people), people), wanted)
        for names, wanted in asked
    ]
    wanted = still_wanted(approval)
    persons = frozenset[str]().union(*(found for found, _ in places))
    where = "stages" if approval.stages else "approvers"
    if not persons:
        raise TemplateFailed(where, "names nobody who can decide")
    if len(persons) < wanted or not _all_placed(places):
        count = f"{len(persons)} " + ("person" if len(persons) == 1 else "different people")
        raise TemplateFailed(where, f"names {count} who can approve, and {wanted} must")


def _asked(approval: Approval) -> Iterator[tuple[tuple[str, ...], int]]:
    """The groups of names that decide together, with the number of approvals that each lacks."""
    if not approval.stages:
        yield approval.approvers, still_wanted(approval)
    given = Counter(one.stage for one in approval.assents)
    for at, stage in enumerate(approval.stages):
        yield stage.approvers, max(stage.required_approvals - given[at], 0)


def _by_default(approval: Approval, people: People) -> tuple[str, ...]:
    return (approval.workflow_owner_id, approval.owner_id, *people.editors)


def _persons(names: Iterable[str], people: People) -> frozenset[str]:
    return frozenset(one for name in names if (one := people.person(name)) is not None)


def _all_placed(places: Sequence[tuple[frozenset[str], int]]) -> bool:
    """Whether each place can have as many persons as it needs, with no person at two places."""
    at: dict[str, int] = {}

    def place(number: int, tried: set[int]) -> bool:
        tried.add(number)
        for one in places[number][0]:
            if one not in at or (at[one] not in tried and place(at[one], tried)):
                at[one] = number
                return True
        return False

    slots = (number for number, (_, wanted) in enumerate(places) for _ in range(wanted))
    return all(place(number, set()) for number in slots)


def bound_to(names: Sequence[str]) -> tuple[str, ...]:
    """
    The approvers to which a key is bound, in the form for comparison. Raises `InvalidInput`. GT-5.
    """
    if len(names) > MAX_APPROVERS:
        raise InvalidInput("approvers", f"are {len(names)}; at most {MAX_APPROVERS}")
    for at, name in enumerate(names):
        if not is_name(name):
            raise InvalidInput(f"approvers[{at}]", f"must be {FORMS}")
    return tuple(dict.fromkeys(map(same_name, names)))


def require_choosable(names: Sequence[str], people: People, bound: Collection[str]) -> None:
    """
    Raises `InvalidInput` for the first of *names* that a gate may not choose. GT-5. *bound*: the
    approvers to which the key is bound; if there are any, a gate may choose only among them.
    """
    for at, name in enumerate(names):
        where = f"approvers[{at}]"
        if not is_name(name):
            raise InvalidInput(where, f"must be {FORMS}")
        if bound:
            if people.person(name) not in {people.person(one) for one in bound} - {None}:
                raise InvalidInput(where, "this key is bound to other approvers")
        elif not people.admits(name):
            raise InvalidInput(
                where,
                "must be an active account here, or an address of WFCORE_GATE_APPROVERS",
            )
