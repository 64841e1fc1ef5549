"""Accepting an execution into somebody's unit of work: whoever starts, it is done here. EX-1."""

from wfcore.effects import Outcome
from wfcore.instants import EpochMs
from wfcore.model.execution import Execution
from wfcore.model.workflow import Workflow
from wfcore.ports.store import Unit
from wfcore.rules.start import Start, accept
from wfcore.usecases._apply import collect
from wfcore.usecases._looking import definition_of
from wfcore.usecases.services import Services


async def accepted(
    services: Services, unit: Unit, workflow: Workflow, start: Start, now: EpochMs
) -> Outcome[Execution]:
    """
    A new execution at the workflow's revision, collected into *unit*; hint after the commit.

    Raises `InvalidInput` for inputs that break the declarations.
    """
    definition = await definition_of(unit, workflow.id, workflow.revision)
    outcome = accept(workflow, definition, start, services.ids.new("exec", now), now)
    return await collect(unit, outcome, now)
