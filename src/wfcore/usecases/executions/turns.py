"""What a turn of an execution came to, staged into a unit of work with all that follows. EX-33."""

from collections.abc import Sequence

from wfcore.effects import Outcome
from wfcore.model.execution import Artifact, Execution
from wfcore.model.workflow import Definition
from wfcore.ports.store import Unit
from wfcore.rules.execution.start import Alone
from wfcore.time import EpochMs
from wfcore.usecases.approvals.opening import opened
from wfcore.usecases.notices.telling import tell_outcome
from wfcore.usecases.services import Services
from wfcore.usecases.unit_of_work import stage


async def stage_turn(
    services: Services,
    unit: Unit,
    outcome: Outcome[Execution],
    now: EpochMs,
    left: Sequence[Artifact] = (),
) -> Outcome[Execution]:
    """
    Stage what a turn of an execution came to, with its approvals as they are stored, and its
    notices. *left*: the artifacts that the same unit stores.

    The outcome with the hints that follow.
    """
    outcome = await opened(services, unit, outcome, now, left)
    return await tell_outcome(services, unit, await stage(unit, outcome, now))


async def stage_alone(
    services: Services,
    unit: Unit,
    alone: Alone,
    outcome: Outcome[Execution],
    definition: Definition,
    now: EpochMs,
) -> Outcome[Execution]:
    """
    Stage *outcome*, with the turn that follows where *alone* finds that no worker is needed. EX-34.
    """

    def new_id(prefix: str) -> str:
        return services.ids.new(prefix, now)

    render, most = services.templates.render, services.policy.facts_at_once
    turned = alone(outcome, definition, now, render, new_id, most)
    if turned is outcome:
        return await stage(unit, outcome, now)
    return await stage_turn(services, unit, turned, now)
