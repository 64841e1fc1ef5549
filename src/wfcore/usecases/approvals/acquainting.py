"""The accounts that approvals name, read in the turn in which the approvals open. AP-41, AP-42."""

from collections.abc import Callable, Iterator
from typing import TypeVar

from attrs import evolve

from wfcore.errors import InvalidInput
from wfcore.model.access import Principal
from wfcore.model.workflow import Definition
from wfcore.ports.store import Unit, View
from wfcore.rules.approval.people import People, UnreadPeople, require_choosable
from wfcore.rules.execution.proceed import NewId
from wfcore.rules.gate import approvers_of
from wfcore.rules.mailbox import same_name
from wfcore.time import EpochMs
from wfcore.usecases.accounts.groups import groups_in
from wfcore.usecases.people import met
from wfcore.usecases.services import Services

T = TypeVar("T")


async def acquainted(
    services: Services,
    unit: Unit,
    workflow_id: str,
    now: EpochMs,
    turn: Callable[[NewId, People | None], T],
) -> T:
    """
    Returns the result of *turn*, once every account that *turn* names is known.

    *turn* is pure, so it runs again after each lookup: a name from a template appears only during
    the turn. Ids made in an earlier run are used again.
    """
    if services.policy.one_for_all:
        return turn(lambda prefix: services.ids.new(prefix, now), None)
    people, made = People(outsiders=services.policy.gate_approvers), list[str]()
    while True:
        again = iter(tuple(made))

        def new_id(prefix: str, known: Iterator[str] = again) -> str:
            if (id := next(known, None)) is None:
                id = services.ids.new(prefix, now)
                made.append(id)
            return id

        try:
            return turn(new_id, people)
        except UnreadPeople as unmet:
            people = await met(unit, people, unmet.names, workflow_id)
            if not unmet.names:
                people = evolve(people, groups=(await groups_in(unit)).members)


async def require_own_choice(
    services: Services, view: View | Unit, who: Principal, gate: Definition
) -> None:
    """Raises `InvalidInput` if *gate* names approvers whom *who* may not choose. GT-5."""
    names, bound = approvers_of(gate), who.key.approvers if who.key else ()
    if bound and not names:
        raise InvalidInput("approvers", "this key is bound to its own approvers")
    people = People(outsiders=services.policy.gate_approvers)
    wanted = frozenset(map(same_name, (*names, *bound)))
    require_choosable(names, await met(view, people, wanted), bound)
